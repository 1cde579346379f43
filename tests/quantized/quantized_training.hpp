// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/int8_kit.hpp"
#include "quantized.hpp"

/// Training of quantized rows by plain loops: codes are searched among all numbers of their format.
namespace ferry_test {

/// The format of a quantization's codes.
template <class Q>
constexpr reference::minifloat layout_of() {
  using code_type = typename Q::code_type;
  if constexpr (std::is_same_v<code_type, ferry::fp8_e4m3_t>)
    return reference::e4m3_layout;
  else if constexpr (std::is_same_v<code_type, ferry::fp8_e5m2_t>)
    return reference::e5m2_layout;
  else
    return reference::e2m1_layout;
}

/// The step of a block by the formulas of docs/semantics.md, and its scale as bytes.
template <class Q>
double block_step(double largest, float tensor_scale, std::vector<unsigned char>& scales) {
  using scale_type = typename Q::scale_type;
  const auto put_byte = [&](std::uint8_t byte) { scales.push_back(byte); };
  if constexpr (!ferry::has_scales<Q>) {
    return static_cast<double>(tensor_scale);
  } else if constexpr (std::is_same_v<scale_type, ferry::ue8m0_t>) {
    const auto layout = layout_of<Q>();
    const double most = reference::magnitude_of(layout, layout.largest);
    const int exponent = std::max(-127, std::ilogb(largest == 0.0 ? 1e-300 : largest) - std::ilogb(most));
    put_byte(static_cast<std::uint8_t>(exponent + 127));
    return std::ldexp(1.0, exponent);
  } else if constexpr (std::is_same_v<scale_type, ferry::fp8_e4m3_t>) {
    const float ratio = static_cast<float>(largest) / 6.0f / tensor_scale;
    const auto byte = reference::byte_of(reference::byte_format::e4m3, std::fmax(0x1p-6f, ratio));
    put_byte(byte);
    return static_cast<double>(tensor_scale *
                               static_cast<float>(reference::value_of(reference::byte_format::e4m3, byte)));
  } else {
    const auto layout = layout_of<Q>();
    const float scale =
        static_cast<float>(largest) / static_cast<float>(reference::magnitude_of(layout, layout.largest));
    const auto first = scales.size();
    scales.resize(first + sizeof scale);
    std::memcpy(scales.data() + first, &scale, sizeof scale);
    return static_cast<double>(scale);
  }
}

/// Draws for stochastic rounding: a number in [0, 1) for a column; empty: to nearest.
using column_draw = std::function<double(std::size_t)>;

/// The code of a number. At random: the magnitude above if its distance and the draw reach 1.
template <class Q>
unsigned code_of(float value, double step, std::size_t column, const column_draw& draw) {
  constexpr auto layout = layout_of<Q>();
  constexpr unsigned sign = Q::code_bits == 8 ? 0x80u : 0x8u;
  const float quotient = value == 0.0f ? value : value / static_cast<float>(step);
  const double magnitude = std::fabs(static_cast<double>(quotient));
  unsigned code = std::min(layout.largest, reference::nearest_code(layout, magnitude));
  if (draw && magnitude <= reference::magnitude_of(layout, layout.largest)) {
    code = 0;
    while (code < layout.largest && reference::magnitude_of(layout, code + 1) <= magnitude) ++code;
    const double below = reference::magnitude_of(layout, code);
    const double above = reference::magnitude_of(layout, code + 1);
    if ((magnitude - below) / (above - below) + draw(column) >= 1.0) ++code;
  }
  return code | (std::signbit(quotient) ? sign : 0u);
}

/// Codes and scales of a row of floats.
template <class Q>
coded_bytes encoded_row(const std::vector<float>& numbers, float tensor_scale, const column_draw& draw = {}) {
  const std::size_t width = numbers.size();
  coded_bytes row{1, width, std::vector<unsigned char>(code_bytes<Q>(width)), {}, tensor_scale};
  if constexpr (Q::in_records) {
    plain_records record(1, width);
    record.encode(0, numbers, [&](double place, std::size_t c) {
      if (!draw) return to_nearest(place, c);
      const double below = std::floor(place);
      return draw(c) < place - below ? below + 1.0 : below;
    });
    const auto bytes = bytes_of(record.bytes);
    std::copy_n(bytes.begin(), width, row.codes.begin());
    row.scales.assign(bytes.begin() + static_cast<std::ptrdiff_t>(width),
                      bytes.begin() + static_cast<std::ptrdiff_t>(width + 8));
    return row;
  }
  const std::size_t block = Q::block == 0 ? width : static_cast<std::size_t>(Q::block);
  for (std::size_t first = 0; first < width; first += block) {
    double largest = 0.0;
    for (std::size_t c = first; c < first + block; ++c)
      largest = std::fmax(largest, std::fabs(static_cast<double>(numbers[c])));
    const double step = block_step<Q>(largest, tensor_scale, row.scales);
    for (std::size_t c = first; c < first + block; ++c) {
      const std::size_t bit = c * static_cast<std::size_t>(Q::code_bits);
      const unsigned code = code_of<Q>(numbers[c], step, c, draw);
      row.codes[bit / 8] = static_cast<unsigned char>(row.codes[bit / 8] | code << (bit % 8));
    }
  }
  return row;
}

template <class T>
void replace_part(std::vector<T>& whole, std::size_t number, const std::vector<T>& part) {
  std::copy(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(number * part.size()));
}

/// A table and its state in float.
template <class Q, class Rule, int Fields>
struct plain_quantized_training {
  coded_bytes table;
  std::vector<std::vector<float>> state;

  plain_quantized_training(const Rule& rule, std::mt19937_64& random, std::size_t rows, std::size_t width)
      : table{rows, width, {}, {}, Q::has_tensor_scale ? 0.037f : 1.0f} {
    std::normal_distribution<float> unit;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<float> numbers(width);
      for (auto& value : numbers) value = std::ldexp(unit(random), static_cast<int>(random() % 5) - 3);
      const auto bytes = encoded_row<Q>(numbers, table.tensor_scale);
      table.codes.insert(table.codes.end(), bytes.codes.begin(), bytes.codes.end());
      table.scales.insert(table.scales.end(), bytes.scales.begin(), bytes.scales.end());
    }
    boost::hana::for_each(rule.fields(), [&](const auto& field) {
      if (field.active) state.emplace_back(rows * width, static_cast<float>(field.initial));
    });
    REQUIRE(state.size() == static_cast<std::size_t>(Fields));
  }

  /// Decodes a row, applies the rule in float, and encodes the row.
  void step(const Rule& rule, std::int64_t number, std::size_t row, const std::vector<float>& gradient,
            const column_draw& draw) {
    const auto update = rule.template coefficients<float>(number);
    const auto before = decoded<Q>(table);
    std::vector<float> after;
    for (std::size_t c = 0; c < table.width; ++c) {
      const std::size_t place = row * table.width + c;
      float weight = before[place];
      float field[Fields == 0 ? 1 : Fields] = {};
      for (std::size_t f = 0; f < state.size(); ++f) field[f] = state[f][place];
      update.apply(weight, gradient[c], field);
      for (std::size_t f = 0; f < state.size(); ++f) state[f][place] = field[f];
      after.push_back(weight);
    }
    const auto bytes = encoded_row<Q>(after, table.tensor_scale, draw);
    replace_part(table.codes, row, bytes.codes);
    replace_part(table.scales, row, bytes.scales);
  }
};

/// The draws of a row in one step of a state.
template <class Rounding>
column_draw draws_of(std::uint64_t seed, std::int64_t step, std::size_t row) {
  if constexpr (Rounding::is_random) {
    const ferry::kernels::step_randomness bits{seed, static_cast<std::uint64_t>(step)};
    return [bits, row](std::size_t c) {
      const auto column = static_cast<std::int64_t>(c);
      return bits.draw(static_cast<std::int64_t>(row), column / 4).word[column % 4] * 0x1p-32;
    };
  } else {
    return {};
  }
}

}  // namespace ferry_test
