// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

/// The extents of codes and scales.
namespace ferry::detail {

[[noreturn]] void refuse_quantized_width(const std::string& label, std::size_t width,
                                         const char* quantization, std::size_t block);
/// Throws invalid_argument unless the factor of a table is positive and finite.
void require_factor(const std::string& label, float factor);

/// Numbers of the shortest row: whole blocks, and whole elements of the array of codes.
template <Quantization Q>
consteval std::size_t least_width() {
  std::size_t width = Q::block == 0 ? 1 : Q::block;
  while (width * Q::code_bits % (8 * sizeof(typename Q::code_type)) != 0)
    width += Q::block == 0 ? 1 : Q::block;
  return width;
}

/// The width of a row, if it is allowed.
template <Quantization Q>
std::size_t quantized_width(const std::string& label, std::span<const std::size_t> extents) {
  const std::size_t width = shape<dynamic_rank>::make(extents, label, sizeof(double)).width();
  if (width % least_width<Q>() != 0) refuse_quantized_width(label, width, Q::name, least_width<Q>());
  return width;
}

/// Elements of a row of codes, or bytes of a record.
template <Quantization Q>
constexpr std::size_t stored_columns(std::size_t width) {
  if constexpr (Q::in_records)
    return Q::record_bytes(width);
  else
    return width * Q::code_bits / (8 * sizeof(typename Q::code_type));
}

/// Scales of a row.
template <Quantization Q>
constexpr std::size_t blocks_of(std::size_t width) {
  if constexpr (Q::block == 0)
    return 1;
  else
    return width / Q::block;
}

template <Quantization Q, class Space>
using scales_of = typename std::conditional_t<
    has_scale_array<Q>,
    std::type_identity<tensor<std::conditional_t<has_scale_array<Q>, typename Q::scale_type, float>, Space>>,
    std::type_identity<no_scale>>::type;

template <Quantization Q, class Space>
scales_of<Q, Space> make_scales([[maybe_unused]] const std::string& label, [[maybe_unused]] auto rows,
                                [[maybe_unused]] std::size_t width) {
  if constexpr (has_scale_array<Q>)
    return scales_of<Q, Space>(joined(label, " (scales)"), rows, blocks_of<Q>(width));
  else
    return {};
}

template <Quantization Q>
consteval void require_scales() {
  static_assert(
      has_scales<Q>,
      "ferry: blocks of this quantization have no scales; its table has one factor, scale() and set_scale(x).");
}

}  // namespace ferry::detail
