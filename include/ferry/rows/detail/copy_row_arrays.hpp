// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/policy/overlap.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/move_staged_rows.hpp>
#include <ferry/rows/detail/pair_rows.hpp>
#include <ferry/rows/detail/row_moves.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// copy_rows between arrays. Tables of one side are a span of arrays of equal extents and strides.
namespace ferry::detail {

/// The policies of a copy of rows.
template <class... Ps>
struct row_copy_policies {
  using asked = chosen_policies<Ps...>;
  using path = typename asked::template get<path_category, ferry::path::automatic>;
  using duplicates = typename asked::template get<duplicates_category, ferry::duplicates::last>;
  using occupancy = typename asked::template get<occupancy_category, ferry::occupancy::full>;
  using overlap = typename asked::template get<overlap_category, ferry::overlap::reject>;
  using both_bounds = typename asked::template get<bounds_category, ferry::bounds::check>;
  using source_bounds =
      typename asked::template get<source_bounds_category, ferry::source_bounds<both_bounds>>::bounds;
  using target_bounds =
      typename asked::template get<target_bounds_category, ferry::target_bounds<both_bounds>>::bounds;
  static constexpr bool names_bounds = asked::template names<bounds_category>;
  static constexpr bool names_source_bounds = names_bounds || asked::template names<source_bounds_category>;
  static constexpr bool names_target_bounds = names_bounds || asked::template names<target_bounds_category>;
  using checks = typename asked::template takes<path_category, bounds_category, source_bounds_category,
                                                target_bounds_category, duplicates_category,
                                                occupancy_category, overlap_category>;
};

/// Tables of one side, without their types.
using untyped_tables = std::vector<untyped_array>;
template <class T, class Space>
untyped_tables untyped(std::span<const array_ref<T, Space>> tables) {
  return untyped_tables(tables.begin(), tables.end());
}

/// The shape of the rows of both sides, in elements. Throws invalid_argument unless there are as many tables
/// on both sides, all tables of a side have equal extents and strides, and the rows of both sides have equal
/// extents; for written elements that share memory; and if the sides share memory, unless `buffers`.
[[nodiscard]] row_shape match_rows(const untyped_tables& sources, const untyped_tables& targets,
                                   bool buffers);
/// Throws invalid_argument for lists of different lengths.
void require_pairs(std::int64_t source_count, std::int64_t target_count, const untyped_array& source,
                   const untyped_array& target);
/// The addresses of the tables of both sides.
template <class From, class FromSpace, class To, class ToSpace>
std::vector<kernels::table_pair> addresses_of(std::span<const array_ref<From, FromSpace>> sources,
                                              std::span<const array_ref<To, ToSpace>> targets) {
  std::vector<kernels::table_pair> tables(sources.size());
  for (std::size_t t = 0; t < sources.size(); ++t) tables[t] = {sources[t].data, targets[t].data};
  return tables;
}

/// Moves rows by at most `blocks` blocks of the instance, which reaches both sides.
template <class Choice, class To, class From, class Exec>
void move_by_kernels(launch_context<Exec>& call, const row_shape& shape,
                     std::span<const kernels::table_pair> tables, const kernels::row_pairs& pairs,
                     std::int64_t count, std::int64_t blocks) {
  const std::string& label = call.label("direct");
  kernels::row_moves moves;
  moves.pairs = pairs;
  moves.items = count;
  if constexpr (!Choice::overlap::buffers) {
    bind_tables(call, tables, moves);
    before_writing();
    move_rows<To, From>(call.exec(), label, shape, alignment_of(tables), moves, blocks);
  } else {
    const std::int64_t bytes = buffered_tables::bytes_each(shape, count, sizeof(To));
    const buffered_tables parts(
        tables, call.template scratch<std::byte>(bytes * static_cast<std::int64_t>(tables.size())), bytes);
    moves.pairs.target = nullptr;
    bind_tables<Exec>(call, parts.reads, moves);
    move_rows<To, From>(call.exec(), call.label_part(label, "read"), packed(shape, copy_box::side::target),
                        alignment_of(parts.reads), moves, blocks);
    moves.pairs = pairs;
    moves.pairs.source = nullptr;
    bind_tables<Exec>(call, parts.writes, moves);
    before_writing();
    move_rows<To, To>(call.exec(), label, packed(shape, copy_box::side::source), alignment_of(parts.writes),
                      moves, blocks);
  }
}

/// Blocks that move rows. Eight fill the link with rows of 32 KiB; both ways at once get the most, 0.81 of
/// DMA's, if twice as many read host memory as write it. Within a device, four times as many blocks as it
/// holds at once are 4 % faster than those (H200).
template <class Occupancy, class FromSpace, class ToSpace, class Exec>
std::int64_t most_moving_blocks(const Exec& exec) {
  const std::int64_t most = most_blocks<Occupancy>(exec);
  if constexpr (FromSpace::is_host_accessible)
    return std::min<std::int64_t>(most, 32);
  else if constexpr (ToSpace::is_host_accessible)
    return std::min<std::int64_t>(most, 16);
  else
    return std::is_same_v<Occupancy, occupancy::full> ? 4 * most : most;
}

/// One array of the tables of both sides.
template <class From, class FromSpace, class To, class ToSpace>
struct paired_tables {
  static constexpr bool in_pageable_memory =
      std::is_same_v<FromSpace, pageable_space> || std::is_same_v<ToSpace, pageable_space>;

  std::span<const array_ref<From, FromSpace>> sources;
  std::span<const array_ref<To, ToSpace>> targets;
};

/// The path of a copy. A device reaches pageable memory through slots.
template <class Path, class Exec, class... Arrays>
using row_copy_path = std::conditional_t<
    is_host_exec<Exec>, path::direct,
    std::conditional_t<!Path::chosen_at_run_time, Path,
                       std::conditional_t<(Arrays::in_pageable_memory || ...), path::staged, path::direct>>>;

[[noreturn]] void refuse_peer(const array_note& table, int device, int own_device);

/// Checks that a path reaches the tables of one side, and orders the call after other work on them.
template <class Path, bool Writes, class Exec, class T, class Space>
void touch_tables(launch_context<Exec>& call, std::span<const array_ref<T, Space>> tables) {
  for (const auto& table : tables) {
    if constexpr (std::is_same_v<Path, path::direct>) require_direct_reach("copy_rows", call.exec(), table);
    if constexpr (!is_host_exec<Exec> && !Space::is_host_accessible)
      if (const int device = table.device(); device >= 0 && device != call.device() &&
                                             !execution_backend<Exec>::reaches_device(call.exec(), device))
        refuse_peer(table.note(), device, call.device());
    if constexpr (std::is_same_v<Path, path::staged> && Writes)
      call.wait_for_host_access(table);
    else if constexpr (std::is_same_v<Path, path::staged>)
      call.wait_for_host_access(read_only(table));
    else if constexpr (Writes)
      call.writes_to(table, true);
    else
      call.reads_from(table, true);
  }
}

/// The plan that says which of several positions writes a row; none if all do.
template <class Choice, class Exec, class Named>
std::optional<row_plan> plan_of_targets(const Exec& exec, const Named& list, std::int64_t rows) {
  using list_type = std::remove_cvref_t<Named>;
  if constexpr (is_plan<list_type>)
    return list;
  else if constexpr (std::is_same_v<list_type, row_range> || !Choice::duplicates::needs_plan)
    return std::nullopt;
  else
    return plan_rows_of<typename Choice::target_bounds>(exec, list, rows);
}

/// Checks one list of rows. `Names`: whether the call names the policy, which can't change that of a plan.
template <class Bounds, bool Names, class Exec, class Named>
void require_list(const char* side, const Named& list, const untyped_array& table) {
  using list_type = std::remove_cvref_t<Named>;
  if constexpr (std::is_same_v<list_type, row_range>) {
    require_range(side, list, table);
  } else if constexpr (is_plan<list_type>) {
    require_plan(
        "copy_rows", list, execution_backend<Exec>::name, table.shape.rows(),
        [&] { return table.note().describe(); }, Names ? Bounds::name : std::string_view());
  } else {
    require_rank_one("copy_rows", list);
    if (std::is_same_v<Bounds, bounds::clamp> && table.shape.rows() == 0 && list.rows() != 0)
      refuse_to_clamp("copy_rows", list.rows(), table.note().describe());
  }
}

/// Moves the rows of one array of the tables, by pairs that a kernel has made.
template <class Choice, class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
void move_paired(launch_context<Exec>& call, const paired_tables<From, FromSpace, To, ToSpace>& arrays,
                 const row_shape& shape, const kernels::row_pairs& pairs,
                 const kernels::row_pairs& host_pairs, std::int64_t count, copy_meter& meter,
                 [[maybe_unused]] std::size_t& progress) {
  using plain = std::remove_const_t<From>;
  if (shape.box.size() == 0) return;
  const auto tables = addresses_of(arrays.sources, arrays.targets);
  const std::int64_t elements = static_cast<std::int64_t>(tables.size()) * count * shape.box.size();
  [[maybe_unused]] const auto traffic = count_transfer<Path>(
      call, arrays.sources[0], arrays.targets[0], elements * static_cast<std::int64_t>(sizeof(From)),
      std::is_same_v<Path, path::direct>);
  if constexpr (std::is_same_v<Path, path::copy_engine>)
    move_by_engines(call, shape, sizeof(To), tables, host_pairs, count);
  else if constexpr (std::is_same_v<Path, path::staged> && any_host_space<FromSpace, ToSpace>)
    move_staged<Choice, plain, FromSpace, To, ToSpace>(call, shape, tables, pairs, host_pairs, count, meter,
                                                       progress);
  else
    move_by_kernels<Choice, To, plain>(
        call, shape, tables, pairs, count,
        most_moving_blocks<typename Choice::occupancy, FromSpace, ToSpace>(call.exec()));
}

/// One copy of rows: pairs them once, then moves those of each array of the tables.
template <class Choice, class Exec, class Sources, class Targets, class First, class... More>
ticket copy_row_arrays(const Exec& exec, const Sources& source_rows, const Targets& target_rows,
                       const First& first, const More&... more) {
  using path_policy = row_copy_path<typename Choice::path, Exec, First, More...>;
  constexpr bool by_host = !std::is_same_v<path_policy, path::direct>;
  const std::int64_t count = listed_count(source_rows);
  const auto shape_of = [](const auto& arrays) {
    return match_rows(untyped(arrays.sources), untyped(arrays.targets), Choice::overlap::buffers);
  };
  const row_shape shapes[] = {shape_of(first), shape_of(more)...};
  if (first.sources.empty()) return {};
  const auto& source = first.sources[0];
  const auto& target = first.targets[0];
  require_list<typename Choice::source_bounds, Choice::names_source_bounds, Exec>("source", source_rows,
                                                                                  source);
  require_list<typename Choice::target_bounds, Choice::names_target_bounds, Exec>("target", target_rows,
                                                                                  target);
  require_pairs(count, listed_count(target_rows), source, target);
  const auto plan = plan_of_targets<Choice>(exec, target_rows, target.rows());
  launch_context<Exec> call(exec, "copy_rows");
  if constexpr (by_host)
    call.refuse_capture(
        "but the host takes part in path::staged and path::copy_engine, which a graph can't repeat; use path::direct, and pinned_space or mapped_space in place of pageable memory");
  const auto bytes_of = [count](const auto& arrays) {
    const auto& table = arrays.targets[0];
    return arrays.targets.size() * static_cast<std::size_t>(count * table.width()) * sizeof(table.data[0]);
  };
  copy_meter meter(source.label.view(), target.label.view(), (bytes_of(first) + ... + bytes_of(more)));
  auto descriptions = std::make_shared<table_descriptions>();
  descriptions->tables = {target.note(), source.note()};
  call.name_tables(std::move(descriptions));
  const auto touch = [&](const auto& arrays) {
    touch_tables<path_policy, false>(call, arrays.sources);
    touch_tables<path_policy, true>(call, arrays.targets);
  };
  touch(first);
  (touch(more), ...);
  if (count != 0) {
    const auto pairs = pair_rows<typename Choice::source_bounds, typename Choice::target_bounds,
                                 typename Choice::duplicates>(call, source_rows, source.rows(), target_rows,
                                                              target.rows(), plan ? &*plan : nullptr, count);
    auto host_pairs = pairs;
    bool is_good = true;
    if constexpr (by_host) is_good = bring_pairs(call, plan ? &*plan : nullptr, host_pairs, count);
    if (is_good) {
      std::size_t progress = 0;
      // Without memory for one array none is written.
      write_jointly(0, 1 + static_cast<int>(sizeof...(more)), [&](int chosen) {
        int number = 0;
        const auto move = [&](const auto& arrays) {
          if (number++ == chosen)
            move_paired<Choice, path_policy>(call, arrays, shapes[chosen], pairs, host_pairs, count, meter,
                                             progress);
        };
        move(first);
        (move(more), ...);
      });
    }
  }
  ticket work = call.finish(target, count, true);
  meter.finish();
  return work;
}

}  // namespace ferry::detail
