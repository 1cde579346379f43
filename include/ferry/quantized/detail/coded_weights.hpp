// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/quantized_weights.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Tables of quantized rows as a step trains them.
namespace ferry::detail {

/// Codes with the extents of the numbers, and what belongs to them. Scales: an array_ref, or no_scale.
template <class Q, class Space, class Scales>
struct coded_weights : array_ref<typename Q::code_type, Space> {
  using quantization = Q;

  Scales scales;
  float tensor_scale;

  template <bool Random>
  [[nodiscard]] kernels::quantized_weights<Q, Random> for_kernels(
      const kernels::step_randomness& randomness) const {
    kernels::quantized_weights<Q, Random> weights{
        reinterpret_cast<std::byte*>(this->data),
        this->row_stride() * static_cast<std::int64_t>(sizeof(typename Q::code_type)),
        nullptr,
        0,
        tensor_scale,
        randomness};
    if constexpr (has_scales<Q>) {
      weights.scales = scales.data;
      weights.blocks = scales.width();
    }
    return weights;
  }
};

template <class Table>
inline constexpr bool is_coded_weights = requires {
  typename Table::quantization;
};
template <class Table>
inline constexpr bool has_weight_scales = false;
template <class Q, class Space, class Scales>
inline constexpr bool has_weight_scales<coded_weights<Q, Space, Scales>> = has_scales<Q>;
/// True if lanes of a device share the blocks of such weights in tiles of eight numbers.
template <class Table>
inline constexpr bool lanes_share_wide_tiles = true;
template <class Q, class Space, class Scales>
inline constexpr bool lanes_share_wide_tiles<coded_weights<Q, Space, Scales>> =
    Q::block == 0 || kernels::sharing_lanes<kernels::wide_packed_tile, Q::block> != 0;
/// True if a table is one of codes, as a step takes it.
template <class Table>
inline constexpr bool is_encoded_table =
    is_coded_weights<Table> || std::is_same_v<typename Table::value_type, std::byte>;

/// The weights of a quantized table as a step takes them.
template <class Table>
auto weights_of(Table& table) {
  using quantization = typename Table::quantization;
  if constexpr (quantization::in_records) {
    return numbers_of(table);
  } else {
    using scales_type = decltype(scales_ref(table));
    return coded_weights<quantization, typename Table::memory_space, scales_type>{
        numbers_of(table), scales_ref(table), table.scale()};
  }
}

/// The addresser of a quantized table in a step: of codes with scales in arrays, and of records.
template <class Table>
class weights_access
    : public plain_rows<typename Table::quantization::code_type, typename Table::memory_space,
                        array_ref<typename Table::quantization::code_type, typename Table::memory_space>> {
 public:
  using table_type = decltype(weights_of(std::declval<Table&>()));

  weights_access(Table& table, const char*) : weights_access(weights_of(table)) {}
  explicit weights_access(const table_type& weights)
      : weights_access::plain_rows(
            array_ref<typename Table::quantization::code_type, typename Table::memory_space>(weights)),
        weights_(weights) {}

  template <class Exec, class Chosen>
  static consteval void require() {
    require_reach<Exec, tensor<std::byte, typename Table::scale_space>>();
  }
  [[nodiscard]] const table_type& table() const { return weights_; }

 private:
  table_type weights_;
};

template <class Table>
consteval auto step_access_for() {
  using plain = std::remove_reference_t<Table>;
  if constexpr (is_quantized<std::remove_const_t<plain>>)
    return std::type_identity<weights_access<plain>>{};
  else
    return std::type_identity<access_to<Table>>{};
}
/// The addresser of a table that a step changes, constructed by (table, verb).
template <class Table>
using step_access = typename decltype(step_access_for<Table>())::type;

/// The array_ref of an addresser's table, or the type that it names.
/// @{
template <class Access>
struct step_table {
  using type = array_ref<typename Access::value_type, typename Access::memory_space>;
};
template <class Access>
  requires requires { typename Access::table_type; }
struct step_table<Access> {
  using type = typename Access::table_type;
};
/// @}

/// The memory space of a table's scales, or that of the table.
/// @{
template <class Table>
struct scale_space_of {
  using type = typename Table::memory_space;
};
template <class Table>
  requires has_weight_scales<Table>
struct scale_space_of<Table> {
  using type = typename decltype(Table::scales)::memory_space;
};
/// @}

/// Checks that rows of the quantization may be trained.
template <class Q, class Rounding>
consteval void require_trainable() {
  static_assert(
      Q::block % 16 == 0,
      "ferry: step trains quantized rows whose blocks are multiples of 16 numbers; gather rows of other quantizations, step on them in floats, and scatter them.");
  static_assert(
      !Rounding::is_random || kernels::rounds_at_random<Q>,
      "ferry: rounding::stochastic is for quantizations with encode_at_random(value, step, random); use rounding::nearest, or add the function.");
}

}  // namespace ferry::detail
