// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/row_range.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/copy_row_arrays.hpp>
#include <ferry/rows/for_each_table.hpp>
#include <ferry/rows/rows_along.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

/// The tables of one side of a copy of rows: one array, or those of a list.
template <class Table>
class row_tables {
 public:
  explicit row_tables(Table& table) : array_(make_ref(table)) {}
  [[nodiscard]] auto span() const { return std::span<const decltype(array_of())>(&array_, 1); }

 private:
  static auto array_of() -> decltype(make_ref(std::declval<Table&>()));
  decltype(make_ref(std::declval<Table&>())) array_;
};
template <class T, class Space>
class row_tables<const table_list<T, Space>> {
 public:
  explicit row_tables(const table_list<T, Space>& tables) : tables_(tables.tables) {}
  [[nodiscard]] auto span() const { return std::span<const array_ref<T, Space>>(tables_); }

 private:
  const std::vector<array_ref<T, Space>>& tables_;
};

/// The checks of the types of a copy of rows.
template <class Exec, class Choice, class SourceRows, class TargetRows>
consteval void require_row_copy() {
  require_execution_space<Exec>();
  static_assert(
      Choice::checks::all_known,
      "ferry: copy_rows takes the policies path::*, bounds::*, source_bounds<>, target_bounds<>, duplicates::*, overlap::* and occupancy::* after its arguments.");
  static_assert(Choice::checks::at_most_one, "ferry: at most one policy of each kind may be given.");
  using path_policy = typename Choice::path;
  static_assert(
      path_policy::chosen_at_run_time || std::is_same_v<path_policy, path::direct> ||
          std::is_same_v<path_policy, path::staged> || std::is_same_v<path_policy, path::copy_engine>,
      "ferry: copy_rows has rows of two tables in the order of the lists: path::direct, path::staged or path::copy_engine.");
  static_assert(
      !Choice::duplicates::combines,
      "ferry: copy_rows replaces rows: duplicates::last, first, reject or assume_unique; for sums gather the rows and call scatter_add.");
  static_assert(
      !(Choice::overlap::buffers && !path_policy::chosen_at_run_time &&
        !std::is_same_v<path_policy, path::direct>),
      "ferry: overlap::buffer lies in memory of the execution space, so it goes with path::direct.");
  if constexpr (!is_plan<SourceRows> && !std::is_same_v<SourceRows, row_range>)
    require_reach<Exec, SourceRows>();
  if constexpr (!is_plan<TargetRows> && !std::is_same_v<TargetRows, row_range>)
    require_reach<Exec, TargetRows>();
}

/// The checks of the elements of one array on both sides.
template <class Exec, class Choice, class From, class FromSpace, class To, class ToSpace>
consteval void require_moved_elements(std::type_identity<paired_tables<From, FromSpace, To, ToSpace>>) {
  static_assert(!std::is_const_v<To>, "ferry: the verb writes to this array, but its elements are const.");
  require_convertible<To, std::remove_const_t<From>>();
  static_assert(
      may_dereference<Exec, FromSpace>() && may_dereference<Exec, ToSpace>(),
      "ferry: a host execution space can't dereference rows in device_space; pass an instance of the device's execution space.");
  constexpr bool by_engines = std::is_same_v<typename Choice::path, path::copy_engine>;
  static_assert(!by_engines || std::is_same_v<std::remove_const_t<From>, To>,
                "ferry: copy engines move bytes, so path::copy_engine takes rows of one element type.");
  static_assert(
      !by_engines || ((std::is_same_v<FromSpace, device_space> || std::is_same_v<FromSpace, pinned_space>)&&(
                         std::is_same_v<ToSpace, device_space> || std::is_same_v<ToSpace, pinned_space>)),
      "ferry: path::copy_engine moves rows between device_space and pinned_space; the engines read mapped_space at a tenth of the rate of the link, and pageable memory not at all.");
  static_assert(
      !std::is_same_v<typename Choice::path, path::staged> || any_host_space<FromSpace, ToSpace>,
      "ferry: path::staged moves rows through host memory, but both tables live in device_space; use path::direct.");
}

}  // namespace detail

/// target[target_rows[p]] = source[source_rows[p]] for each position p, with conversion if the element types
/// differ: blocks of caches, pages, particles that change owners.
///
///   exec         the execution space instance that the work is enqueued on
///   source       the table whose rows are read: an array of any rank and strides, whose rows are what
///                follows its first extent; rows_along<D>(array); or for_each_table of arrays of equal
///                extents and strides
///   source_rows  rank-1 array of int32, uint32, int64 or uint64 in any space, a row_plan, or a row_range
///   target       the table whose rows are written, likewise: of rows with equal extents, in that order, in
///                any memory space and with any strides. Of lists table t is copied to table t
///   target_rows  as many rows, likewise
///   policies     path         default path::automatic: kernels, for pageable memory and a device host
///                             threads and page-locked slots; path::copy_engine
///                bounds       default bounds::check, of both sides; source_bounds and target_bounds of one
///                duplicates   in target_rows, default duplicates::last; first, assume_unique, reject
///                overlap      default overlap::reject; overlap::buffer for tables that share memory
///                occupancy    default occupancy::full; blocks and background for kernels beside other work
///
/// The result is that of reading all rows before writing any, on every backend and path. A position that has
/// no row on one side, under bounds::skip, is left out before duplicates are looked for. Asynchronous on a
/// device, except path::staged and path::copy_engine, which occupy the calling thread. A capture takes
/// path::direct, and rows to write that are a plan, a range, or assumed to be unique. The operands must live
/// until the work has ended, see ferry::ticket; rows in pageable memory may be reused when the call returns.
/// Throws invalid_argument for shapes, lists and plans that do not fit, and for tables that share memory;
/// out_of_range for a row_range outside of its table. ticket::wait() throws out_of_range under bounds::check,
/// naming side, position and row, and invalid_argument under duplicates::reject; nothing is then written.
template <class Exec, class Source, class SourceRows, class Target, class TargetRows, class... Policies>
  requires(!detail::is_quantized<Source> && !detail::is_quantized<std::remove_cvref_t<Target>> &&
           detail::Fits<detail::copy_rows_arguments, const Exec&, const Source&, const SourceRows&, Target,
                        const TargetRows&, Policies...>)
[[nodiscard]] ticket copy_rows(const Exec& exec, const Source& source, const SourceRows& source_rows,
                               Target&& target, const TargetRows& target_rows, Policies...) {
  using choice = detail::row_copy_policies<Policies...>;
  detail::require_row_copy<Exec, choice, SourceRows, TargetRows>();
  if constexpr (detail::AnArray<Target>) detail::require_output<Target>();
  const detail::row_tables<const Source> sources(source);
  const detail::row_tables<
      std::conditional_t<detail::is_table_list<std::remove_cvref_t<Target>>,
                         const std::remove_cvref_t<Target>, std::remove_reference_t<Target>>>
      targets(target);
  const detail::paired_tables arrays{sources.span(), targets.span()};
  detail::require_moved_elements<Exec, choice>(std::type_identity<std::remove_const_t<decltype(arrays)>>{});
  return detail::copy_row_arrays<choice>(exec, detail::listed_rows_of(source_rows),
                                         detail::listed_rows_of(target_rows), arrays);
}

}  // namespace ferry
