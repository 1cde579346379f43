// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/block_bounds.hpp>
#include <ferry/quantized/detail/code_bits.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/row_weights.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::kernels {

/// True if a quantization has an encode_at_random.
template <class Q>
inline constexpr bool rounds_at_random = requires(float value, typename Q::step_type step,
                                                  std::uint32_t random) {
  Q::encode_at_random(value, step, random);
};

/// A row of codes and scales, decoded tile by tile. Tiles begin at multiples of their size.
template <class Q, class Byte = const std::byte, class Scale = const typename Q::scale_type>
struct coded_row {
  Byte* codes;
  Scale* scales;
  float tensor_scale;

  KOKKOS_FORCEINLINE_FUNCTION typename Q::step_type step_at([[maybe_unused]] std::int64_t column) const {
    if constexpr (!has_scales<Q>)
      return Q::step_of(no_scale{}, tensor_scale);
    else if constexpr (Q::block == 0)
      return Q::step_of(scales[0], tensor_scale);
    else
      return Q::step_of(scales[column / Q::block], tensor_scale);
  }

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(Compute (&weight)[Tile::elements], std::int64_t column,
                                        int count) const {
    constexpr bool shares_scale = Q::block % Tile::elements == 0;
    auto step = step_at(column);
    [[maybe_unused]] std::uint8_t bytes[Tile::elements];
    if constexpr (Q::code_bits == 8)
      load_tile<Tile>(bytes, reinterpret_cast<const std::uint8_t*>(codes) + column, count);
    for (int e = 0; e < live<Tile>(count); ++e) {
      if constexpr (!shares_scale) step = step_at(column + e);
      if constexpr (Q::code_bits == 8)
        weight[e] = convert<Compute>(Q::decode(bytes[e], step));
      else
        weight[e] = convert<Compute>(Q::decode(code_at<Q::code_bits>(codes, column + e), step));
    }
  }
};

/// The weights of a table of quantized rows in a step. Each block of a row is read with its old scale and
/// written with that of its new numbers; the factor of the table stays. Codes are written first, since all
/// lanes that share a row read the old scale.
template <class Q, bool Random>
struct quantized_weights {
  static constexpr int bits = Q::code_bits;
  static constexpr bool needs_range = false;
  static constexpr bool has_block_scales = has_scales<Q>;

  std::byte* codes;
  std::int64_t row_bytes;
  typename Q::scale_type* scales;
  std::int64_t blocks;  ///< scales of a row
  float tensor_scale;
  step_randomness randomness;

  /// A row, or a block of it when it is written.
  struct row_view : coded_row<Q, std::byte, typename Q::scale_type> {
    std::int64_t row;
    step_randomness randomness;
    typename Q::step_type step;  ///< by which numbers are encoded

    template <class Tile, class Compute>
    KOKKOS_FORCEINLINE_FUNCTION void store(const Compute (&weight)[Tile::elements], std::int64_t column,
                                           int count) const {
      std::uint8_t bytes[Tile::elements];
      std::uint32_t code[Tile::elements];
      for (int e = 0; e < live<Tile>(count); ++e) code[e] = encoded(convert<float>(weight[e]), column + e);
      if constexpr (bits == 8) {
        for (int e = 0; e < live<Tile>(count); ++e) bytes[e] = static_cast<std::uint8_t>(code[e]);
        store_tile<Tile>(bytes, reinterpret_cast<std::uint8_t*>(this->codes) + column, count);
      } else {
        for (int e = 0; e < live<Tile>(count); ++e) put_code<bits>(this->codes, column + e, code[e]);
      }
    }

   private:
    KOKKOS_FORCEINLINE_FUNCTION std::uint32_t encoded(float value, std::int64_t column) const {
      [[maybe_unused]] constexpr int words = step_randomness::columns;
      if constexpr (Random)
        return Q::encode_at_random(value, step, randomness.draw(row, column / words).word[column % words]);
      else
        return Q::encode(value, step);
    }
  };

  KOKKOS_FORCEINLINE_FUNCTION row_view row(std::int64_t index, std::int64_t) const {
    row_view view;
    view.codes = codes + index * row_bytes;
    view.scales = scales + (has_block_scales ? index * blocks : 0);
    view.tensor_scale = tensor_scale;
    view.row = index;
    view.randomness = randomness;
    if constexpr (!has_block_scales) view.step = Q::step_of(no_scale{}, tensor_scale);
    return view;
  }

  /// Numbers of a block.
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t block_width(std::int64_t width) {
    return Q::block == 0 ? width : Q::block;
  }
  /// The scale of numbers with these bounds.
  KOKKOS_FORCEINLINE_FUNCTION typename Q::scale_type scale_of(const block_bounds::values& bounds) const {
    return Q::scale_of(block_bounds::range_of(bounds), tensor_scale);
  }
  KOKKOS_FORCEINLINE_FUNCTION row_view scaled_by(row_view view, typename Q::scale_type scale) const {
    view.step = Q::step_of(scale, tensor_scale);
    return view;
  }
};

/// True if the numbers of a table's blocks have scales of their own, which a step computes anew.
template <class Weights>
inline constexpr bool has_block_scales = requires {
  requires Weights::has_block_scales;
};

}  // namespace ferry::kernels
