// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/pool_rows.hpp>
#include <ferry/bags/detail/pooled_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The launch of pool_rows, for one table of one batch.
namespace ferry::detail {

/// Stands for the array that a call does without: the weights of positions, or the positions of maxima.
struct no_array {
  using value_type = void;
  using memory_space = pageable_space;
  static constexpr void* data = nullptr;
  static constexpr std::int64_t row_stride() { return 0; }
};

template <class Table, class Weight, class Out>
consteval auto pooling_in() {
  using table = std::remove_const_t<Table>;
  using weight = std::remove_const_t<Weight>;
  if constexpr (std::is_same_v<table, double> || std::is_same_v<weight, double> ||
                std::is_same_v<Out, double> || (std::is_integral_v<table> && !std::is_void_v<weight>))
    return std::type_identity<double>{};
  else if constexpr (std::is_integral_v<table>)
    return std::type_identity<accumulation_t<table>>{};
  else
    return std::type_identity<float>{};
}
/// The type that rows are pooled in: double if any operand is double, or weights meet integers; 64 bits for
/// integers; else float.
template <class Table, class Weight, class Out>
using pooling_type = typename decltype(pooling_in<Table, Weight, Out>())::type;

template <class Exec, class Compute>
consteval auto pooling_number_for() {
  if constexpr (is_host_exec<Exec> || std::is_integral_v<Compute>)
    return std::type_identity<Compute>{};
  else
    return std::type_identity<typename execution_backend<Exec>::template number<Compute>>{};
}
/// That type in kernels of Exec: its operations are rounded one by one.
template <class Exec, class Compute>
using pooling_number = typename decltype(pooling_number_for<Exec, Compute>())::type;

/// The operands of one call, with all pointers ready for kernels of one side.
template <class Rows, class Source, class Offset, class Weight, class Chosen>
struct pooling_inputs {
  const Rows& rows;
  Source source;
  kernels::bag_list<Offset> bags;
  const Weight* weights;
  Chosen* chosen;
  std::int64_t chosen_stride;
  bool strict;
  bool has_rows;  ///< true if the table has any
};
template <class Rows, class Source, class Offset, class Weight, class Chosen>
pooling_inputs(const Rows&, Source, kernels::bag_list<Offset>, const Weight*, Chosen*, std::int64_t, bool,
               bool) -> pooling_inputs<Rows, Source, Offset, Weight, Chosen>;

template <class Pooling, class Exec, class Rows, class Source, class Offset, class Weight, class Chosen,
          class Out, class OutSpace>
void launch_pool(const Exec& exec, const std::string& label,
                 const pooling_inputs<Rows, Source, Offset, Weight, Chosen>& in,
                 const array_ref<Out, OutSpace>& out, std::int64_t* changed) {
  const auto& rows = pooled_rows(in.rows);
  using element = typename Rows::value_type;
  using number = pooling_number<Exec, pooling_type<element, Weight, Out>>;
  const auto table = read_in_units(sizeof(element), rows, in.source);
  const auto pooled = pooled_table_of(table.data, table.stride);
  using kernel = kernels::pool_rows<number, Pooling, std::remove_const_t<decltype(pooled)>,
                                    std::remove_const_t<decltype(table.source)>, Offset,
                                    std::remove_const_t<Weight>, Out, Chosen>;
  const bool packed = in_packets<kernels::packed_tile::elements>(rows, out);
  bool wide = false;
  if constexpr (kernel::has_wide_tiles) wide = in_packets<kernels::wide_packed_tile::elements>(rows, out);
  const std::int64_t tiles = out.width() / (wide     ? kernels::wide_packed_tile::elements
                                            : packed ? kernels::packed_tile::elements
                                                     : 1);
  launch(exec, label, schedule::flat{}, in.bags.bags, is_host_exec<Exec> ? 1 : tiles,
         kernel{pooled, table.source, in.bags, in.weights, out.data, out.row_stride(), in.chosen,
                in.chosen_stride, out.width(), fast_divisor(tiles), packed, wide, in.strict, in.has_rows,
                changed});
}

}  // namespace ferry::detail
