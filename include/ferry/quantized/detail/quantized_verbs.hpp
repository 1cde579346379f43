// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// The parts that the verbs on quantized tables share. Rows of codes, scales and records are rows of
/// ordinary arrays: what kernels can't decode or encode where it lies travels by ordinary verbs. So these
/// verbs support every path and space.
namespace ferry::detail {

/// True if kernels of Exec access Space without a link.
template <class Exec, class Space>
inline constexpr bool is_local = is_host_exec<Exec> || std::is_same_v<Space, device_space>;

/// Before anything is enqueued: refuses capture if host threads would take part in each launch.
template <class Path, class... Spaces, class Exec>
void refuse_capture_of_staging(const launch_context<Exec>& call) {
  if constexpr (by_host_alone<Path> || splits_rows<Path> || (std::is_same_v<Spaces, pageable_space> || ...))
    call.refuse_capture(
        "but the rows would pass through the host's threads each time; use path::direct on device, mapped or pinned memory");
}

/// A table as checks and messages take it: rows of `width` numbers.
template <class Table>
auto numbers_of(Table& table) {
  auto numbers = make_ref(stored(table));
  numbers.extents[1] = static_cast<std::int64_t>(table.width());
  return numbers;
}

/// Rows [first, first + count) of an array, with its tracked device writes.
template <class T, class Space>
array_ref<T, Space> piece_of(const array_ref<T, Space>& array, std::int64_t first, std::int64_t count) {
  auto piece = rows_from(array, first, count);
  piece.accesses = array.accesses;
  return piece;
}

/// Scratch of the verb, as a dense table.
template <class T, class Exec>
array_ref<T, near_space<Exec>> near_rows(launch_context<Exec>& call, std::int64_t rows, std::int64_t width,
                                         const char* label) {
  return dense_rows<T, near_space<Exec>>(call.template scratch<T>(rows * width), rows, width, label);
}

/// The row of each position, -1 for none, as an array of rank 1. Findings go to the ticket.
template <class Bounds, class Exec, class Named>
array_ref<const std::int64_t, near_space<Exec>> resolved_rows(launch_context<Exec>& call, const Named& batch,
                                                              std::int64_t table_rows) {
  const std::int64_t n = positions_of(batch);
  const std::int64_t* rows = nullptr;
  if constexpr (is_plan<Named>) {
    rows = batch.storage()->row_of;
  } else {
    auto* const resolved = call.template scratch<std::int64_t>(n);
    launch(call.exec(), call.label("resolve"), n,
           kernels::resolve_indices<std::remove_const_t<typename Named::value_type>, Bounds>{
               rows_for_kernels<Bounds>(call, batch, table_rows), resolved, nullptr, nullptr});
    rows = resolved;
  }
  auto list = dense_rows<const std::int64_t, near_space<Exec>>(rows, n, 1, "rows");
  list.rank = 1;
  return list;
}

/// True if rows of the array can be encoded and decoded.
template <class Array>
consteval void require_quantizable() {
  constexpr bool is_floating = FloatingElement<typename traits_of<Array>::value_type>;
  static_assert(is_floating,
                "ferry: quantized rows are converted from and to float, double, half_t and bhalf_t only.");
}

/// Checks the types of quantize and dequantize: the table of numbers and the quantized table.
template <class Exec, class Array, class Table, class Chosen>
consteval void require_whole_table_verb() {
  require_execution_space<Exec>();
  require_rows<Array>();
  require_quantizable<Array>();
  require_policies<Chosen, false, false>();
  static_assert(
      !Chosen::template get<path_category, path::automatic>::sorts,
      "ferry: quantize and dequantize take whole tables, so there are no rows to sort; path::ordered and path::cooperative are for verbs that take indices.");
  require_reach<Exec, Array>();
  require_reach<Exec, tensor<std::byte, typename Table::memory_space>>();
  require_reach<Exec, tensor<std::byte, typename Table::scale_space>>();
  require_path<typename Chosen::template get<path_category, path::automatic>,
               typename traits_of<Array>::memory_space, typename Table::memory_space>();
}

inline void require_same_rows(const char* verb, const auto& source, const auto& target) {
  require_dense_rows(verb, source);
  require_dense_rows(verb, target);
  if (source.rows() != target.rows() || source.width() != target.width())
    throw invalid_argument(joined("ferry::", verb, ": the rows of ", source.describe(), " and ",
                                  target.describe(), " differ in number or width"));
}

}  // namespace ferry::detail
