// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/policy.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/plan/detail/refusals.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

/// The checks of a verb's arguments. Types are checked here by static_asserts with full sentences, one after
/// the other, since nvcc does not explain concepts. Shapes are checked before anything is launched.
namespace ferry::detail {

/// Policies: only known ones, at most one of each kind, and none that the verb does not use.
template <class Chosen, bool TakesBounds, bool TakesDuplicates, bool TakesStep = false>
consteval void require_policies() {
  static_assert(
      !Chosen::template names<occupancy_category>,
      "ferry: occupancy::* limits gather, scatter, scatter_add, step, copy_rows and resolve; the kernels of this verb take the whole device.");
  static_assert(
      Chosen::facts::all_known,
      "ferry: the trailing arguments must be policies: path::*, bounds::*, duplicates::*, for a step also step_count::*, rounding::*, nonfinite::*, or a policies<...> bundle of them.");
  static_assert(Chosen::template at_most_one<path_category>, "ferry: at most one path policy may be given.");
  static_assert(Chosen::template at_most_one<bounds_category>,
                "ferry: at most one bounds policy may be given.");
  static_assert(Chosen::template at_most_one<duplicates_category>,
                "ferry: at most one duplicates policy may be given.");
  static_assert(TakesBounds || !Chosen::template names<bounds_category>,
                "ferry: this verb uses no indices, so it takes no bounds policy.");
  static_assert(
      TakesDuplicates || !Chosen::template names<duplicates_category>,
      "ferry: this verb reads or copies every row it is asked for, so it takes no duplicates policy.");
  static_assert(
      TakesStep || !(Chosen::template names<step_count_category> ||
                     Chosen::template names<rounding_category> || Chosen::template names<nonfinite_category>),
      "ferry: step_count::*, rounding::* and nonfinite::* say how an optimizer steps, so ferry::step takes them, and of the others ferry::catch_up a rounding.");
  static_assert(Chosen::template at_most_one<step_count_category>,
                "ferry: at most one step_count policy may be given.");
  static_assert(Chosen::template at_most_one<rounding_category>,
                "ferry: at most one rounding policy may be given.");
  static_assert(Chosen::template at_most_one<nonfinite_category>,
                "ferry: at most one nonfinite policy may be given.");
}

template <class Indices>
consteval void require_indices() {
  require_role<roles::indices.kinds, Indices>();
  static_assert(
      !is_plan_object<Indices>,
      "ferry: a sharded_plan is for verbs on one sharded table; give this one the indices, or a row_plan if its table is not sharded.");
}

/// path::staged goes through host memory, so one side must be in host memory.
template <class... Spaces>
inline constexpr bool any_host_space = (Spaces::is_host_accessible || ...);

template <class Path, class TableSpace, class BatchSpace>
consteval void require_path() {
  static_assert(
      !reads_shards<Path>,
      "ferry: path::peer reads the shards of a sharded_table, so it serves gather from one alone; give other verbs and tables no path or another one.");
  static_assert(
      !is_between_ranks<Path>,
      "ferry: path::exchange moves rows between the ranks of a sharded_table, so it serves gathers from sharded tables only.");
  static_assert(
      !Path::takes_copy_engines,
      "ferry: path::copy_engine moves whole rows by the device's copy engines, which copy_rows alone does; give other verbs path::staged, or no path.");
  static_assert(
      !by_host_alone<Path> || any_host_space<TableSpace, BatchSpace>,
      "ferry: path::staged moves rows through host memory, but table and batch both live in device_space; use path::direct.");
  static_assert(
      !splits_rows<Path> || (TableSpace::is_host_accessible && std::is_same_v<BatchSpace, device_space>),
      "ferry: path::cooperative lets device and host share the rows of a table in host memory, so the table must be in pinned_space, mapped_space or pageable_space and the batch in device_space.");
}

template <class Path>
consteval void require_one_end() {
  static_assert(
      !splits_rows<Path>,
      "ferry: path::cooperative serves gather and scatter only: device and host may both do the same row where they meet, which a sum or an optimizer step must not.");
}

template <class A, class B>
consteval void require_same_width() {
  constexpr std::size_t a = traits_of<A>::static_width;
  constexpr std::size_t b = traits_of<B>::static_width;
  static_assert(a == dyn || b == dyn || a == b,
                "ferry: the widths of table and batch are fixed by their types and differ.");
}

template <class To, class From>
consteval void require_convertible() {
  static_assert(
      ConvertibleElement<To, From>,
      "ferry: the element types of table and batch differ and at least one of them is no number, so rows can't be converted.");
}

/// The policies but for an occupancy, for verbs that take one.
template <class Chosen>
consteval auto take_occupancy() {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  static_assert(Chosen::template at_most_one<occupancy_category>,
                "ferry: at most one occupancy policy may be given.");
  static_assert(
      !Chosen::template names<occupancy_category> || path_policy::chosen_at_run_time ||
          !splits_rows<path_policy>,
      "ferry: path::cooperative shares the rows among teams of its own number, so it takes no occupancy policy.");
  return std::type_identity<typename Chosen::template without<occupancy_category>>{};
}
template <class Chosen>
using without_occupancy = typename decltype(take_occupancy<Chosen>())::type;

/// The checks common to all verbs on table, indices and batch.
template <class Exec, class Table, class Indices, class Batch, class Chosen, bool TakesDuplicates,
          bool TakesStep = false>
consteval void require_row_verb() {
  require_execution_space<Exec>();
  require_rows<Table>();
  require_rows<Batch>();
  require_indices<Indices>();
  require_policies<Chosen, true, TakesDuplicates, TakesStep>();
  require_same_width<Table, Batch>();
  require_reach<Exec, Table>();
  require_reach<Exec, Batch>();
  if constexpr (!is_plan<Indices> && !is_plan_object<Indices>) require_reach<Exec, Indices>();
  require_path<typename Chosen::template get<path_category, path::automatic>,
               typename traits_of<Table>::memory_space, typename traits_of<Batch>::memory_space>();
}

/// True if two arrays with dense rows have a byte in common. Arrays of equal stride may interleave, as
/// columns of one array do.
bool overlap(const untyped_array& a, const untyped_array& b);

/// Checks that a batch has a row for each position, of the table's width.
void require_sizes(const char* verb, const untyped_array& table, std::int64_t positions,
                   const untyped_array& batch);
[[noreturn]] void refuse_overlap(const char* verb, const untyped_array& table, const untyped_array& batch);

/// Checks the shapes of a verb on rows. An array of rank 1 has rows of one element.
void require_shapes(const char* verb, const untyped_array& table, std::int64_t positions,
                    const untyped_array& batch);

void require_rank_one(const char* verb, const untyped_array& array, const char* role = "indices");

/// `table`: as the error names it.
[[noreturn]] void refuse_to_clamp(const char* verb, std::int64_t positions, const std::string& table);

/// Checks that a verb of the backend may use the plan for a table of `rows` rows. `bounds` is the policy that
/// the verb names; none if empty.
void require_plan(const char* verb, const row_plan& plan, std::string_view backend, std::int64_t rows,
                  function_ref<std::string()> describe_table, std::string_view bounds);

template <class Exec, class Chosen, class Table>
void require_plan(const char* verb, const row_plan& plan, const Table& table) {
  std::string_view bounds;
  if constexpr (Chosen::template names<bounds_category>)
    bounds = Chosen::template get<bounds_category, void>::name;
  require_plan(
      verb, plan, execution_backend<Exec>::name, table.rows(), [&] { return table.describe(); }, bounds);
}

/// The indices of a verb as array_ref. Those of rank 2, K for each sample say, are read row by row.
template <class Indices>
auto index_ref(const Indices& indices) {
  auto array = read_only(make_ref(indices));
  if (array.rank == 2 && array.is_contiguous()) {
    array.extents[0] = array.size();
    array.extents[1] = 1;
    array.rank = 1;
    array.make_dense();
  }
  return array;
}

/// The rows that a verb's indices name: a plan as it is, an index array as array_ref of const elements.
template <class Indices>
decltype(auto) rows_named_by(const Indices& indices) {
  if constexpr (is_plan<Indices>)
    return (indices);
  else
    return index_ref(indices);
}
/// In place of the rows that indices name: all rows of the table, in their order.
struct every_row {
  using value_type = std::int64_t;
  std::int64_t count;

  [[nodiscard]] std::int64_t rows() const { return count; }
};
template <class Named>
inline constexpr bool is_every_row = std::is_same_v<std::remove_cvref_t<Named>, every_row>;

template <class Named>
std::int64_t positions_of(const Named& batch) {
  if constexpr (is_plan<Named>)
    return batch.positions();
  else
    return batch.rows();
}

/// Checks that a batch has a row for each row of the table, of its width.
void require_every_row(const char* verb, const untyped_array& table, const untyped_array& batch);

/// Checks the values of a row verb's arguments, with the indices as an array.
void require_batch(const char* verb, const untyped_array& table, const untyped_array& indices,
                   const untyped_array& batch, bool clamps);

/// As above. `rows` comes from rows_named_by.
template <class Exec, class Chosen, class Named>
void require_batch(const char* verb, const auto& table, const Named& rows, const auto& batch) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  if constexpr (is_every_row<Named>) {
    require_every_row(verb, table, batch);
  } else if constexpr (is_plan<Named>) {
    require_plan<Exec, Chosen>(verb, rows, table);
    require_shapes(verb, table, rows.positions(), batch);
  } else {
    require_batch(verb, table, rows, batch, std::is_same_v<bounds_policy, bounds::clamp>);
  }
}

[[noreturn]] void refuse_direct_reach(const char* verb, const array_note& array);

/// Checks that path::direct reaches an array. A device reaches pageable memory only on machines with HMM or
/// ATS.
template <class Exec, class Array>
void require_direct_reach([[maybe_unused]] const char* verb, [[maybe_unused]] const Exec& exec,
                          [[maybe_unused]] const Array& array) {
  if constexpr (!is_host_exec<Exec> && std::is_same_v<typename Array::memory_space, pageable_space>)
    if (!execution_backend<Exec>::reaches_pageable(exec)) refuse_direct_reach(verb, array.note());
}

}  // namespace ferry::detail
