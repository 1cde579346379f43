// SPDX-License-Identifier: Apache-2.0
#include "io_kit.hpp"
#include "reference/minifloat.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

namespace ferry_test::fp8_files_test {

using scale_t = ferry::ue8m0_t;
using pair_t = ferry::fp4_e2m1_pair_t;

template <class T>
std::vector<T> random_codes(std::size_t count) {
  auto random = generator();
  std::vector<T> codes(count);
  for (auto& code : codes) code = std::bit_cast<T>(static_cast<std::uint8_t>(random()));
  return codes;
}

/// True for the codes of make_golden.py: those of 0, 1, ... 255 and 0.
template <class T>
bool are_golden(const std::vector<T>& codes) {
  for (std::size_t i = 0; i < codes.size(); ++i)
    if (codes[i].bits() != i % 256) return false;
  return codes.size() == 257;
}

/// A safetensors file of one tensor.
void write_tensor(const std::string& path, const std::string& type, const std::string& shape,
                  const std::string& data) {
  const std::string json = R"({"codes":{"dtype":")" + type + R"(","shape":)" + shape +
                           R"(,"data_offsets":[0,)" + std::to_string(data.size()) + "]}}";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(json.size());
  write_bytes(path, bytes + json + data);
}

template <class T>
constexpr const char* name_in_safetensors() {
  if constexpr (std::is_same_v<T, ferry::fp8_e4m3_t>) return "F8_E4M3";
  if constexpr (std::is_same_v<T, ferry::fp8_e5m2_t>) return "F8_E5M2";
  if constexpr (std::is_same_v<T, scale_t>) return "F8_E8M0";
  if constexpr (std::is_same_v<T, pair_t>) return "F4";
}

TEST_CASE("arrays of ml_dtypes load from .npy", "[io][npy][fp8]") {
  CHECK(are_golden(take(ferry::io::load_npy<ferry::fp8_e4m3_t>(golden("float8_e4m3fn.npy")))));
  CHECK(are_golden(take(ferry::io::load_npy<ferry::fp8_e5m2_t>(golden("float8_e5m2.npy")))));
  CHECK(are_golden(take(ferry::io::load_npy<scale_t>(golden("float8_e8m0fnu.npy")))));
  // NumPy's name for one type tells it apart; records of one byte may be any of them.
  CHECK_THROWS_MATCHES(ferry::io::load_npy<ferry::fp8_e4m3_t>(golden("float8_e5m2.npy")),
                       ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("float8_e5m2 ('<f1'), not float8_e4m3fn")));
  CHECK_THROWS_AS(ferry::io::load_npy<std::uint8_t>(golden("float8_e4m3fn.npy")), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::load_npy<ferry::fp8_e4m3_t>(golden("u1.npy")), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::io::load_npy<ferry::fp8_e4m3_t>(golden("bf16.npy")), ferry::invalid_argument);

  const auto values =
      take(ferry::io::load_npy<float>(golden("float8_e5m2.npy"), "values", ferry::io::convert_dtype{}));
  REQUIRE(values.size() == 257);
  for (std::size_t i = 0; i < 256; ++i) {
    const double expected = reference::value_of(reference::byte_format::e5m2, static_cast<std::uint8_t>(i));
    CHECK((std::isnan(expected) ? std::isnan(values[i]) : static_cast<double>(values[i]) == expected));
  }
  const auto narrow =
      take(ferry::io::load_npy<ferry::fp8_e4m3_t>(golden("f4.npy"), "narrow", ferry::io::convert_dtype{}));
  for (std::size_t i = 0; i < narrow.size(); ++i)
    CHECK(narrow[i].bits() == reference::byte_of(reference::byte_format::e4m3, golden_value<float>(i)));
}

TEMPLATE_TEST_CASE("numbers of 8 and 4 bits are saved and load again", "[io][fp8]", ferry::fp8_e4m3_t,
                   ferry::fp8_e5m2_t, scale_t, pair_t) {
  const temporary_folder folder;
  const auto codes = random_codes<TestType>(31 * 6);
  const auto table = make<ferry::device_space>("table", 31, 6, codes);
  const auto is_right = [&](const auto& loaded) {
    return loaded.rows() == 31 && loaded.width() == 6 && same_bits(take(loaded), codes);
  };

  const std::string npy = folder.path() + "/codes.npy";
  ferry::io::save_npy(npy, table);
  const std::string descr = std::is_same_v<TestType, pair_t> ? "'|V1'" : "'<V1'";
  CHECK(bytes_of(npy).substr(10).starts_with("{'descr': " + descr + ", "));
  CHECK(is_right(ferry::io::load_npy<TestType, ferry::device_space>(npy)));
  CHECK(ferry::io::map_npy<TestType>(npy).rows() == 31);

  const std::string path = folder.path() + "/codes.safetensors";
  const std::string name = name_in_safetensors<TestType>();
  ferry::io::save_safetensors(path, {{"codes", table}, {"one", std::vector<TestType>(1)}});
  const auto file = ferry::io::open_safetensors(path);
  CHECK(file.dtype("codes") == name);
  const std::size_t numbers = std::is_same_v<TestType, pair_t> ? 2 : 1;
  CHECK(file.shape("codes") == std::vector<std::size_t>{31, 6 * numbers});
  CHECK(file.shape("one") == std::vector<std::size_t>{numbers});
  CHECK(is_right(file.load<TestType, ferry::device_space>("codes")));
  CHECK(is_right(file.load<TestType>("codes")));
  const auto middle_rows = file.load<TestType>("codes", 7, 9);
  CHECK(same_bits(take(middle_rows), std::vector<TestType>(codes.begin() + 42, codes.begin() + 54)));
  CHECK(file.map<TestType>("codes").width() == 6);
  CHECK_THROWS_AS(file.load<std::uint8_t>("codes"), ferry::invalid_argument);
  CHECK_THROWS_AS(file.load<float>("codes"), ferry::invalid_argument);
  if constexpr (std::is_same_v<TestType, ferry::fp8_e4m3_t>)
    CHECK_THROWS_AS(file.load<ferry::fp8_e5m2_t>("codes"), ferry::invalid_argument);
  else
    CHECK_THROWS_AS(file.load<ferry::fp8_e4m3_t>("codes"), ferry::invalid_argument);

  ferry::tensor<TestType, ferry::pageable_space> loaded("loaded", 31, 6);
  {
    ferry::io::checkpoint run(folder.path() + "/run");
    run.add("codes", table);
    run.save();
    ferry::io::checkpoint later(folder.path() + "/run");
    later.add("codes", loaded);
    later.load();
  }
  CHECK(is_right(loaded));
  ferry::tensor<float, ferry::pageable_space> floats("floats", 31, 6);
  ferry::io::checkpoint float_run(folder.path() + "/run");
  float_run.add("codes", floats);
  CHECK_THROWS_MATCHES(float_run.load(), ferry::io_error, MessageMatches(ContainsSubstring("f32 [31 x 6]")));
  if constexpr (!std::is_same_v<TestType, pair_t>) {
    float_run.load({.convert = true});
    const auto values = take(floats);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const float value = codes[i];
      CHECK((std::isnan(value) ? std::isnan(values[i]) : values[i] == value));
    }
    ferry::io::checkpoint back(folder.path() + "/floats");
    back.add("codes", floats);
    back.save();
    ferry::io::checkpoint narrowed(folder.path() + "/floats");
    narrowed.add("codes", loaded);
    narrowed.load({.convert = true});
    const auto narrow_codes = take(loaded);
    for (std::size_t i = 0; i < codes.size(); ++i)
      if (std::isfinite(values[i])) CHECK(narrow_codes[i].bits() == codes[i].bits());
  }
}

TEST_CASE("4-bit numbers of a safetensors file are pairs along the rows", "[io][safetensors][fp8]") {
  const temporary_folder folder;
  const std::string path = folder.path() + "/codes.safetensors";
  write_tensor(path, "F4", "[2,4]", "\x21\x43\x65\x87");
  const auto pairs = take(ferry::io::open_safetensors(path).load<pair_t>("codes"));
  REQUIRE(pairs.size() == 4);
  CHECK((pairs[0].first() == 0.5f && pairs[0].second() == 1.0f && pairs[3].first() == 6.0f));
  CHECK(pairs[3].bits() == 0x87);
  write_tensor(path, "F4", "[4,2]", "\x21\x43\x65\x87");
  CHECK(ferry::io::open_safetensors(path).load<pair_t>("codes", 2, 4).rows() == 2);
  write_tensor(path, "F4", "[2,3]", "\x21\x43\x65");
  CHECK_THROWS_MATCHES(ferry::io::open_safetensors(path).load<pair_t>("codes"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("rows of 3 numbers of 4 bits, which are no pairs")));
  write_tensor(path, "F8_E4M3FNUZ", "[3]", "\x21\x43\x65");
  CHECK_THROWS_AS(ferry::io::open_safetensors(path).load<ferry::fp8_e4m3_t>("codes"),
                  ferry::invalid_argument);
}

}  // namespace ferry_test::fp8_files_test
