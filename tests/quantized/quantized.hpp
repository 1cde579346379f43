// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantized/rowwise_int8.hpp"
#include "reference/minifloat.hpp"
#include "rows/conversion.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/quantized.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>

/// Quantized rows as plain loops in double decode them.
namespace ferry_test {

/// A user's quantization: groups of 32 codes of 6 bits with a half as scale.
struct six_bits {
  static constexpr const char* name = "six_bits";
  using code_type = std::uint8_t;
  using scale_type = ferry::half_t;
  using step_type = float;
  static constexpr int code_bits = 6;
  static constexpr int block = 32;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static ferry::half_t scale_of(const ferry::block_range& range, float) {
    return ferry::half_t(range.largest() / 31.0f);
  }
  KOKKOS_FUNCTION static float step_of(ferry::half_t scale, float) { return static_cast<float>(scale); }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) {
    return (static_cast<float>(code) - 32.0f) * step;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    const float steps = step > 0.0f ? value / step : 0.0f;
    const float rounded = std::floor(steps + 0.5f);
    return static_cast<std::uint32_t>((rounded < -32.0f  ? -32.0f
                                       : rounded > 31.0f ? 31.0f
                                                         : rounded) +
                                      32.0f);
  }
};
static_assert(ferry::Quantization<six_bits>);

/// Codes of 4 bits that are decoded by words: the numbers -8 to 7 with a half for 16 of them.
struct nibbles_by_words {
  static constexpr const char* name = "nibbles_by_words";
  using code_type = std::uint8_t;
  using scale_type = ferry::half_t;
  using step_type = float;
  static constexpr int code_bits = 4;
  static constexpr int block = 16;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static ferry::half_t scale_of(const ferry::block_range& range, float) {
    return ferry::half_t(range.largest() / 7.0f);
  }
  KOKKOS_FUNCTION static float step_of(ferry::half_t scale, float) { return static_cast<float>(scale); }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) {
    return (static_cast<float>(code) - 8.0f) * step;
  }
  template <int N>
  KOKKOS_FUNCTION static bool decode_word(std::uint32_t word, float step, float (&value)[N]) {
    static_assert(N == 8);
    for (int k = 0; k < N; ++k) value[k] = decode(word >> (4 * k) & 15u, step);
    return true;
  }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) {
    const float steps = step > 0.0f ? std::floor(value / step + 0.5f) : 0.0f;
    return static_cast<std::uint32_t>((steps < -8.0f ? -8.0f : steps > 7.0f ? 7.0f : steps) + 8.0f);
  }
};
static_assert(ferry::Quantization<nibbles_by_words> && ferry::detail::decodes_words<nibbles_by_words>);
static_assert(!ferry::detail::decodes_words<six_bits> &&
              ferry::detail::decodes_words<ferry::quantization::mxfp4> &&
              ferry::detail::decodes_words<ferry::quantization::nvfp4> &&
              ferry::detail::decodes_words<ferry::quantization::per_row<ferry::quantization::e4m3>>);

/// In blocks that no number of lanes which is a power of two shares.
struct nibbles_of_48 : nibbles_by_words {
  static constexpr const char* name = "nibbles_of_48";
  static constexpr int block = 48;
};
static_assert(ferry::Quantization<nibbles_of_48>);

/// The bytes of codes and scales of a table. In records both lie together.
struct coded_bytes {
  std::size_t rows = 0, width = 0;
  std::vector<unsigned char> codes, scales;
  float tensor_scale = 1.0f;
};

template <class Q>
std::size_t code_bytes(std::size_t width) {
  return width * static_cast<std::size_t>(Q::code_bits) / 8;
}
template <class Q>
std::size_t scale_count(std::size_t width) {
  return Q::block == 0 ? 1 : width / static_cast<std::size_t>(Q::block);
}

template <class Q>
coded_bytes random_codes(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  coded_bytes bytes{rows, width, std::vector<unsigned char>(rows * code_bytes<Q>(width)), {}, 1.0f};
  for (auto& byte : bytes.codes) byte = static_cast<unsigned char>(random());
  if constexpr (ferry::has_scales<Q>) {
    using scale = typename Q::scale_type;
    std::vector<scale> scales(rows * scale_count<Q>(width));
    for (auto& scale_value : scales) {
      if constexpr (Q::in_records)
        scale_value = {std::ldexp(1.0f, static_cast<int>(random() % 9) - 8),
                       std::ldexp(static_cast<float>(random() % 4096) - 2048.0f, -8)};
      else if constexpr (sizeof(scale) == 1)
        scale_value =
            scale::from_bits(static_cast<std::uint8_t>(random() % 23 == 0 ? random() : 100 + random() % 40));
      else
        scale_value = scale(std::ldexp(1.0f + static_cast<float>(random() % 128) / 128.0f,
                                       static_cast<int>(random() % 9) - 4));
    }
    bytes.scales.resize(scales.size() * sizeof(scale));
    std::memcpy(bytes.scales.data(), scales.data(), bytes.scales.size());
  }
  if constexpr (Q::has_tensor_scale) bytes.tensor_scale = 0.37f;
  return bytes;
}

/// The number that a code stands for, without its scale.
template <class Q>
double code_value(unsigned code) {
  using code_type = typename Q::code_type;
  if constexpr (std::is_same_v<Q, six_bits>)
    return static_cast<double>(code) - 32.0;
  else if constexpr (std::is_same_v<Q, nibbles_by_words>)
    return static_cast<double>(code) - 8.0;
  else if constexpr (std::is_same_v<code_type, ferry::fp8_e4m3_t>)
    return reference::value_of(reference::byte_format::e4m3, static_cast<std::uint8_t>(code));
  else if constexpr (std::is_same_v<code_type, ferry::fp8_e5m2_t>)
    return reference::value_of(reference::byte_format::e5m2, static_cast<std::uint8_t>(code));
  else
    return (code & 8u) != 0 ? -reference::magnitude_of(reference::e2m1_layout, code & 7u)
                            : reference::magnitude_of(reference::e2m1_layout, code & 7u);
}

/// The numbers of a table: products of two floats, which a double holds exactly, rounded to float and then to Out.
/// 8-bit rows, which have offsets, are rounded once.
template <class Q, class Out = float>
std::vector<Out> decoded(const coded_bytes& bytes) {
  std::vector<Out> result;
  const std::size_t row_bytes = code_bytes<Q>(bytes.width), blocks = scale_count<Q>(bytes.width);
  for (std::size_t row = 0; row < bytes.rows; ++row)
    for (std::size_t c = 0; c < bytes.width; ++c) {
      unsigned code = 0;
      for (std::size_t b = 0; b < static_cast<std::size_t>(Q::code_bits); ++b) {
        const std::size_t bit = c * static_cast<std::size_t>(Q::code_bits) + b;
        code |= static_cast<unsigned>(bytes.codes[row * row_bytes + bit / 8] >> (bit % 8) & 1) << b;
      }
      double step = static_cast<double>(bytes.tensor_scale);
      if constexpr (ferry::has_scales<Q>) {
        const std::size_t block = Q::block == 0 ? 0 : c / static_cast<std::size_t>(Q::block);
        typename Q::scale_type scale;
        std::memcpy(&scale, bytes.scales.data() + (row * blocks + block) * sizeof scale, sizeof scale);
        if constexpr (Q::in_records) {
          result.push_back(converted_once<Out>(static_cast<double>(scale.offset) +
                                               static_cast<double>(scale.scale) * code));
          continue;
        } else if constexpr (std::is_same_v<typename Q::scale_type, ferry::ue8m0_t>) {
          step = reference::value_of(reference::byte_format::e8m0, scale.bits());
        } else if constexpr (std::is_same_v<typename Q::scale_type, ferry::fp8_e4m3_t>) {
          step = static_cast<double>(
              static_cast<float>(step * reference::value_of(reference::byte_format::e4m3, scale.bits())));
        } else {
          step = number(scale);
        }
      }
      if constexpr (!Q::in_records)
        result.push_back(converted_once<Out>(static_cast<float>(code_value<Q>(code) * step)));
    }
  return result;
}

template <class Out>
std::vector<Out> rounded_once(const std::vector<float>& numbers) {
  std::vector<Out> result;
  for (const float value : numbers) result.push_back(converted_once<Out>(value));
  return result;
}

template <class T>
std::vector<T> elements_of(const std::vector<unsigned char>& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(static_cast<void*>(result.data()), bytes.data(), bytes.size());
  return result;
}
template <class T>
std::vector<unsigned char> bytes_of(const std::vector<T>& codes) {
  std::vector<unsigned char> result(codes.size() * sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), codes.data(), result.size());
  return result;
}

/// The memory of a table's rows: codes, or records of codes and a scale with zeros behind them.
template <class Q>
std::vector<unsigned char> row_memory(const coded_bytes& bytes) {
  if constexpr (!Q::in_records) {
    return bytes.codes;
  } else {
    constexpr std::size_t scale = sizeof(typename Q::scale_type);
    const std::size_t record = record_bytes(bytes.width);
    std::vector<unsigned char> memory(bytes.rows * record);
    for (std::size_t row = 0; row < bytes.rows; ++row) {
      std::copy_n(bytes.codes.data() + row * bytes.width, bytes.width, memory.data() + row * record);
      std::copy_n(bytes.scales.data() + row * scale, scale, memory.data() + row * record + bytes.width);
    }
    return memory;
  }
}

template <class Q, class Space, class ScaleSpace = Space>
ferry::quantized_tensor<Q, Space, ScaleSpace> table_of(const coded_bytes& bytes,
                                                       const char* label = "weights") {
  ferry::quantized_tensor<Q, Space, ScaleSpace> table(label, bytes.rows, bytes.width);
  const auto memory = elements_of<typename Q::code_type>(row_memory<Q>(bytes));
  if constexpr (Q::in_records) {
    put(table.records(), memory);
  } else {
    put(table.codes(), memory);
    if constexpr (ferry::has_scales<Q>)
      put(table.scales(), elements_of<typename Q::scale_type>(bytes.scales));
  }
  if constexpr (Q::has_tensor_scale) table.set_scale(bytes.tensor_scale);
  return table;
}

/// The bytes that a table has now. Records end with zeros.
template <class Q, class Space, class ScaleSpace>
coded_bytes bytes_of(const ferry::quantized_tensor<Q, Space, ScaleSpace>& table) {
  coded_bytes bytes{table.rows(), table.width(), {}, {}, table.scale()};
  if constexpr (Q::in_records) {
    const auto records = bytes_of(take(table.records()));
    for (std::size_t begin = 0; begin < records.size(); begin += record_bytes(bytes.width)) {
      const auto codes = records.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto scale = codes + static_cast<std::ptrdiff_t>(bytes.width), padding = scale + 8;
      bytes.codes.insert(bytes.codes.end(), codes, scale);
      bytes.scales.insert(bytes.scales.end(), scale, padding);
      const auto end = codes + static_cast<std::ptrdiff_t>(record_bytes(bytes.width));
      CHECK(std::count(padding, end, 0) == end - padding);
    }
  } else {
    bytes.codes = bytes_of(take(table.codes()));
    if constexpr (ferry::has_scales<Q>) bytes.scales = bytes_of(take(table.scales()));
  }
  return bytes;
}

/// Numbers of several magnitudes.
template <class V>
std::vector<V> numbers_for(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<float> unit;
  std::vector<V> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(V(std::ldexp(unit(random), static_cast<int>(random() % 9) - 4)));
  return result;
}

/// The kernel that decodes rows on devices, run by a host: by units, and by parts where it takes them.
template <class Out, class Memory, class Source>
void check_decode(const Memory& table, const Source& source, std::size_t n, std::size_t width, Out* out,
                  const std::vector<Out>& poison, const std::vector<Out>& expected) {
  using kernel = ferry::kernels::decode_rows<Memory, Out, Source, false>;
  const auto columns = static_cast<std::int64_t>(width), items = static_cast<std::int64_t>(n);
  for (const bool in_parts : {false, kernel::takes_parts(table, false)}) {
    std::copy(poison.begin(), poison.end(), out);
    const std::int64_t units = kernel::units_of(table, columns, in_parts);
    const kernel decode{table, columns, out,     columns, ferry::detail::fast_divisor(units),
                        items, source,  in_parts};
    for (std::int64_t i = 0; i < items * units; ++i) decode(i);
    CHECK(same_values(std::vector<Out>(out, out + n * width), expected));
  }
}

inline bool same(const coded_bytes& a, const coded_bytes& b) {
  return a.codes == b.codes && a.scales == b.scales && a.tensor_scale == b.tensor_scale;
}

}  // namespace ferry_test
