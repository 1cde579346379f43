// SPDX-License-Identifier: Apache-2.0
#include "rows/conversion.hpp"
#include "support/folder.hpp"
#include "support/test.hpp"

#include <ferry/quantized.hpp>

#include <fstream>

/// The bits of every quantization against files of make_golden_quantized.py.
namespace ferry_test::quantized_golden_test {

constexpr std::size_t width = 64;

std::vector<std::string> words_of(const std::string& name) {
  std::ifstream file(tests_folder() + "/reference/golden_quantized/" + name + ".txt");
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  REQUIRE(words.size() > 50);
  return words;
}

std::vector<float> golden_rows() {
  std::vector<float> result;
  for (const std::string& row : words_of("rows"))
    for (std::size_t c = 0; c < width; ++c)
      result.push_back(
          std::bit_cast<float>(static_cast<std::uint32_t>(std::stoul(row.substr(8 * c, 8), nullptr, 16))));
  return result;
}

template <class T>
std::string hex_of(const std::vector<T>& list, std::size_t row, std::size_t columns) {
  constexpr const char* digits = "0123456789abcdef";
  std::vector<unsigned char> bytes(columns * sizeof(T));
  std::memcpy(bytes.data(), list.data() + row * columns, bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string hash_of(const std::vector<float>& numbers, std::size_t row) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (std::size_t c = 0; c < width; ++c) {
    const float number = numbers[row * width + c];
    const auto bits = std::isnan(number) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(number);
    for (unsigned shift = 0; shift < 32; shift += 8)
      value = (value ^ (bits >> shift & 0xffu)) * 0x100000001b3u;
  }
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[value >> shift & 15u];
  return text;
}

template <class Q>
void check_golden(const std::string& name, float tensor_scale) {
  const exec_space exec;
  const auto words = words_of(name);  // codes, scales and the hash of the decoded numbers, for each row
  const auto numbers = golden_rows();
  const std::size_t rows = numbers.size() / width;
  REQUIRE(words.size() == 3 * rows);
  const auto values = make<ferry::device_space>("values", rows, width, numbers);
  ferry::quantized_tensor<Q, ferry::mapped_space, ferry::device_space> table("table", rows, width);
  if constexpr (Q::has_tensor_scale) table.set_scale(tensor_scale);
  ferry::quantize(exec, values, table).wait();
  auto decoded = make<ferry::device_space>("decoded", rows, width, std::vector<float>(rows * width, 77.0f));
  ferry::dequantize(exec, table, decoded).wait();
  const auto codes = take(table.codes());
  const auto results = take(decoded);
  for (std::size_t row = 0; row < rows; ++row) {
    CAPTURE(name, row);
    CHECK(hex_of(codes, row, table.codes().width()) == words[3 * row]);
    if constexpr (ferry::has_scales<Q>)
      CHECK(hex_of(take(table.scales()), row, table.blocks()) == words[3 * row + 1]);
    else
      CHECK(words[3 * row + 1] == "-");
    CHECK(hash_of(results, row) == words[3 * row + 2]);
  }
}

namespace quantization = ferry::quantization;

TEST_CASE("quantized rows have the bits of the reference formulas", "[quantized]") {
  check_golden<quantization::e4m3>("e4m3", 0.0123f);
  check_golden<quantization::e5m2>("e5m2", 3e-4f);
  check_golden<quantization::per_row<quantization::e4m3>>("per_row_e4m3", 1.0f);
  check_golden<quantization::per_row<quantization::e5m2>>("per_row_e5m2", 1.0f);
  check_golden<quantization::mxfp8>("mxfp8", 1.0f);
  check_golden<quantization::mxfp8_e5m2>("mxfp8_e5m2", 1.0f);
  check_golden<quantization::mxfp4>("mxfp4", 1.0f);
  check_golden<quantization::nvfp4>("nvfp4", 0.37f);
}

}  // namespace ferry_test::quantized_golden_test
