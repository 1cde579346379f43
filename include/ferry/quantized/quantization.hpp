// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry {

/// The type of the scales of a quantization whose blocks have none.
struct no_scale {};

/// The least and the largest number of a block, after they were rounded to float. If one is NaN, so is one of
/// the two ends.
struct block_range {
  float least;  ///< the least number
  float most;   ///< the largest number

  /// The largest magnitude; NaN if a number is NaN.
  [[nodiscard]] KOKKOS_FUNCTION constexpr float largest() const {
    const auto low = detail::bit_cast<std::uint32_t>(least) & 0x7fffffffu;
    const auto high = detail::bit_cast<std::uint32_t>(most) & 0x7fffffffu;
    const auto larger = low > high ? low : high;
    return detail::bit_cast<float>(larger > 0x7f800000u ? 0x7fc00000u : larger);
  }
};

/// How the numbers of a table's rows are encoded: each number as a code of a few bits, and each block of
/// neighbouring numbers of a row with a scale. Quantizations are empty types with these members:
///
///   name               text for messages
///   code_type          the element of the array of codes, of one or several bytes
///   code_bits          bits of a code, even. Codes follow each other without gaps, lowest bits first
///   block              numbers with a scale of their own, whole bytes of codes; 0: those of a row
///   scale_type         the element of the array of scales, or no_scale
///   has_tensor_scale   whether the whole table has a factor, a float
///   in_records         whether the scale lies behind the codes of a row, in one record; else in an array. Of
///                      rowwise_int8 alone, whose scale_type reads and writes it there
///   step_type          what codes of a block are decoded and encoded by, trivially copyable
///   scale_of(range, tensor_scale)
///                      the scale of a block whose numbers have a block_range
///   step_of(scale, tensor_scale)
///                      a block's step_type. `tensor_scale` is 1 unless has_tensor_scale
///   decode(code, step) the value, as float or double
///   decode_word(word, step, values)
///                      optional, if decode returns float and 32 is a multiple of code_bits: sets values[k],
///                      of float (&)[32 / code_bits], to decode of word >> (k * code_bits), or returns false
///                      to have decode called. For devices whose instructions convert several codes; hosts
///                      call decode alone
///   encode(value, step)
///                      the code of a float, below 2^code_bits
///   encoder            optional, constructed from a step_type: encode_four(values, codes) sets `codes` to
///                      encode of float (&)[4] by that step, the first one in the lowest bits, or returns
///                      false to have encode called. The numbers are those of the block. For devices; hosts
///                      call encode alone
///   encode_at_random(value, step, random)
///                      optional: one of the two neighbouring codes by 32 random bits, for
///                      rounding::stochastic
///
/// Kernels of all backends call the functions, so they are KOKKOS_FUNCTIONs.
template <class T>
concept Quantization = std::is_empty_v<T> && Element<typename T::code_type> &&
    std::is_trivially_copyable_v<typename T::scale_type> &&
    std::is_trivially_copyable_v<typename T::step_type> &&
    requires(const block_range& range, typename T::scale_type scale, typename T::step_type step, float number,
             std::uint32_t code) {
  { T::name } -> std::convertible_to<const char*>;
  requires T::code_bits >
  0 && T::code_bits <= 16 && T::code_bits % 2 == 0 && T::block >= 0 && T::block* T::code_bits % 8 == 0;
  { T::has_tensor_scale } -> std::convertible_to<bool>;
  { T::in_records } -> std::convertible_to<bool>;
  { T::scale_of(range, number) } -> std::same_as<typename T::scale_type>;
  { T::step_of(scale, number) } -> std::same_as<typename T::step_type>;
  { T::decode(code, step) } -> std::floating_point;
  { T::encode(number, step) } -> std::same_as<std::uint32_t>;
};

/// True if blocks have scales.
template <Quantization T>
inline constexpr bool has_scales = !std::is_same_v<typename T::scale_type, no_scale>;

namespace detail {
/// True if scales of blocks are an array, not in records.
template <class Q>
inline constexpr bool has_scale_array = !Q::in_records && !std::is_same_v<typename Q::scale_type, no_scale>;

/// True if a quantization decodes the codes of a word at once.
template <class T>
inline constexpr bool decodes_words = false;
template <class T>
  requires requires {
    T::decode_word(0u, std::declval<typename T::step_type>(), std::declval<float(&)[32 / T::code_bits]>());
  }
inline constexpr bool decodes_words<T> = true;

/// The encoder of a quantization, or one that has encode called.
/// @{
template <class T>
struct no_encoder {
  KOKKOS_FUNCTION explicit no_encoder(const typename T::step_type&) {}
  KOKKOS_FUNCTION static bool encode_four(const float (&)[4], std::uint32_t&) { return false; }
};
template <class T>
consteval auto encoder_for() {
  if constexpr (requires { typename T::encoder; })
    return std::type_identity<typename T::encoder>{};
  else
    return std::type_identity<no_encoder<T>>{};
}
template <class T>
using encoder_of = typename decltype(encoder_for<T>())::type;
/// @}
}  // namespace detail

}  // namespace ferry
