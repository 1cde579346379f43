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
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/pair_rows.hpp>
#include <ferry/rows/detail/row_moves.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
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
  template <class List>
  struct facts;
  template <class... Qs>
  struct facts<policies<Qs...>> {
    static constexpr bool all_known =
        (is_one_of<Qs, path_category, bounds_category, source_bounds_category, target_bounds_category,
                   duplicates_category, occupancy_category, overlap_category>() &&
         ...);
  };
  static constexpr bool all_known = facts<typename asked::list>::all_known;
  static constexpr bool at_most_one =
      asked::template at_most_one<path_category> && asked::template at_most_one<bounds_category> &&
      asked::template at_most_one<source_bounds_category> &&
      asked::template at_most_one<target_bounds_category> &&
      asked::template at_most_one<duplicates_category> && asked::template at_most_one<occupancy_category> &&
      asked::template at_most_one<overlap_category>;
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
/// The shape in bytes of elements of `bytes` bytes.
[[nodiscard]] row_shape in_bytes(const row_shape& shape, std::int64_t bytes);
/// The shape with the rows of one side packed densely.
[[nodiscard]] row_shape packed(const row_shape& shape, copy_box::side side);
/// The greatest power of two, up to 16, that divides the addresses of all tables.
[[nodiscard]] std::int64_t alignment_of(std::span<const kernels::table_pair> tables);

/// Transfers of copy engines: neighbours on both sides are one.
struct engine_copies {
  std::vector<void*> targets;
  std::vector<const void*> sources;
  std::vector<std::size_t> bytes;
};
/// The transfers for pairs of rows in host memory; `shape` is in bytes.
[[nodiscard]] engine_copies list_copies(const row_shape& shape, std::span<const kernels::table_pair> tables,
                                        const std::int64_t* source_rows, const std::int64_t* target_rows,
                                        std::int64_t count);

/// The tables where kernels of the instance read their addresses.
template <class Exec>
void bind_tables(launch_context<Exec>& call, std::span<const kernels::table_pair> tables,
                 kernels::row_moves& moves) {
  moves.table_count = static_cast<std::int64_t>(tables.size());
  if (tables.size() == 1) {
    moves.only = tables[0];
    return;
  }
  auto* const list = call.template pinned<kernels::table_pair>(moves.table_count);
  std::copy(tables.begin(), tables.end(), list);
  moves.tables = list;
  if constexpr (!is_host_exec<Exec>) {
    auto* const copy = call.template scratch<kernels::table_pair>(moves.table_count);
    transfer(call.exec(), "ferry::tables", copy, device_space::name, list, pinned_space::name,
             moves.table_count * static_cast<std::int64_t>(sizeof(kernels::table_pair)));
    moves.tables = copy;
  }
}

/// Enqueues the moves between rows of a shape in elements; `exec` may be the calling thread.
template <class To, class From, class Exec>
void move_rows(const Exec& exec, const std::string& label, const row_shape& shape, std::int64_t alignment,
               kernels::row_moves moves, std::int64_t blocks) {
  if constexpr (std::is_same_v<To, From>) {
    move_row_bytes(exec, label, in_bytes(shape, sizeof(To)), alignment, moves, blocks);
  } else {
    describe_rows(shape, 1, moves);
    launch_moves<To, From>(exec, label, moves, blocks);
  }
}

/// The blocks that kernels may have. A multiprocessor holds 2048 threads.
template <class Occupancy, class Exec>
std::int64_t most_blocks(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return 1;
  else
    return Occupancy::most_blocks(std::max<std::int64_t>(1, exec.concurrency() / 2048));
}

/// The addresses of the tables of both sides.
template <class From, class FromSpace, class To, class ToSpace>
std::vector<kernels::table_pair> addresses_of(std::span<const array_ref<From, FromSpace>> sources,
                                              std::span<const array_ref<To, ToSpace>> targets) {
  std::vector<kernels::table_pair> tables(sources.size());
  for (std::size_t t = 0; t < sources.size(); ++t) tables[t] = {sources[t].data, targets[t].data};
  return tables;
}

/// Moves rows by kernels of the instance, which reach both sides.
template <class Choice, class To, class From, class Exec>
void move_by_kernels(launch_context<Exec>& call, const row_shape& shape,
                     std::span<const kernels::table_pair> tables, const kernels::row_pairs& pairs,
                     std::int64_t count) {
  const std::string& label = call.label("direct");
  const std::int64_t blocks = most_blocks<typename Choice::occupancy>(call.exec());
  kernels::row_moves moves;
  moves.pairs = pairs;
  moves.items = count;
  if constexpr (!Choice::overlap::buffers) {
    bind_tables(call, tables, moves);
    move_rows<To, From>(call.exec(), label, shape, alignment_of(tables), moves, blocks);
  } else {
    const std::int64_t table_bytes =
        (count * shape.box.size() * static_cast<std::int64_t>(sizeof(To)) + 15) / 16 * 16;
    auto* const buffer =
        call.template scratch<std::byte>(table_bytes * static_cast<std::int64_t>(tables.size()));
    std::vector<kernels::table_pair> reads(tables.begin(), tables.end()), writes = reads;
    for (std::size_t t = 0; t < tables.size(); ++t)
      writes[t].source = reads[t].target = buffer + static_cast<std::int64_t>(t) * table_bytes;
    moves.pairs.target = nullptr;
    bind_tables(call, reads, moves);
    move_rows<To, From>(call.exec(), call.label_part(label, "read"), packed(shape, copy_box::side::target),
                        alignment_of(reads), moves, blocks);
    moves.pairs = pairs;
    moves.pairs.source = nullptr;
    bind_tables(call, writes, moves);
    move_rows<To, To>(call.exec(), label, packed(shape, copy_box::side::source), alignment_of(writes), moves,
                      blocks);
  }
}

/// Brings the pairs to the host, after the kernel that makes them. Returns false if it found a fault, for
/// which nothing may be written.
template <class Exec>
bool bring_pairs(launch_context<Exec>& call, const row_plan* plan, kernels::row_pairs& pairs,
                 std::int64_t count) {
  if constexpr (!is_host_exec<Exec>) {
    auto* const lists = call.template pinned<std::int64_t>(2 * count);
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(std::int64_t));
    transfer(call.exec(), "ferry::indices", lists, pinned_space::name, pairs.source, device_space::name,
             bytes);
    transfer(call.exec(), "ferry::indices", lists + count, pinned_space::name, pairs.target,
             device_space::name, bytes);
    pairs.source = lists;
    pairs.target = lists + count;
  }
  static const std::string label = "ferry::copy_rows::pairs";
  execution_backend<Exec>::fence(call.exec(), label);
  const index_report report = read_report<Exec>(call.report());
  const bool plan_failed =
      plan != nullptr && plan->storage()->checked && plan->storage()->read_report().out_of_range != 0;
  pairs.findings = pairs.plan_findings = nullptr;
  return report.out_of_range == 0 && report.duplicates == 0 && !plan_failed;
}

/// Rows of one table on the device through page-locked slots, which the host's threads fill or drain while
/// the device moves others.
template <class Choice, class To, class From, bool ToDevice, class Exec>
void move_by_slots(launch_context<Exec>& call, const std::string& label, const row_shape& shape,
                   const kernels::table_pair& table, const kernels::row_pairs& on_device,
                   const kernels::row_pairs& on_host, std::int64_t count, copy_meter& meter) {
  const std::int64_t row_bytes = shape.box.size() * static_cast<std::int64_t>(sizeof(To));
  constexpr slot_tuning how{std::int64_t{1} << 23, 1, 2, false, false};
  copy_slots<Exec> slots(call, label, count, row_bytes, how, meter);
  const auto host = host_side(call.exec());
  const std::int64_t blocks = most_blocks<typename Choice::occupancy>(call.exec());
  const auto read = [&](const auto& exec, const kernels::row_pairs& pairs, std::byte* slot,
                        std::int64_t first, std::int64_t items) {
    kernels::row_moves moves;
    moves.pairs.source = pairs.source + first;
    moves.items = items;
    moves.only = {table.source, slot};
    move_rows<To, From>(exec, label, packed(shape, copy_box::side::target), alignment_of({&moves.only, 1}),
                        moves, blocks);
  };
  const auto write = [&](const auto& exec, const kernels::row_pairs& pairs, const std::byte* slot,
                         std::int64_t first, std::int64_t items) {
    kernels::row_moves moves;
    moves.pairs.target = pairs.target + first;
    moves.items = items;
    moves.only = {slot, table.target};
    move_rows<To, To>(exec, label, packed(shape, copy_box::side::source), alignment_of({&moves.only, 1}),
                      moves, blocks);
  };
  if constexpr (ToDevice)
    slots.to_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t items) {
          read(host, on_host, slot, first, items);
          host.fence(label);
        },
        [&](std::byte* slot, std::int64_t first, std::int64_t items) {
          write(call.exec(), on_device, slot, first, items);
        });
  else
    slots.from_device([&](std::byte* slot, std::int64_t first,
                          std::int64_t items) { read(call.exec(), on_device, slot, first, items); },
                      [&](const std::byte* slot, std::int64_t first, std::int64_t items) {
                        write(host, on_host, slot, first, items);
                        host.fence(label);
                      });
}

/// Moves rows by host threads, through slots if one side is in the memory of the device.
template <class Choice, class From, class FromSpace, class To, class ToSpace, class Exec>
void move_staged(launch_context<Exec>& call, const row_shape& shape,
                 std::span<const kernels::table_pair> tables, const kernels::row_pairs& on_device,
                 const kernels::row_pairs& on_host, std::int64_t count, copy_meter& meter) {
  const std::string& label = call.label("staged");
  if constexpr (FromSpace::is_host_accessible && ToSpace::is_host_accessible) {
    const auto host = host_side(call.exec());
    kernels::row_moves moves;
    moves.pairs = on_host;
    moves.items = count;
    for (const kernels::table_pair& table : tables) {
      moves.only = table;
      move_rows<To, From>(host, label, shape, alignment_of({&table, 1}), moves, 1);
    }
    host.fence(label);
  } else {
    for (const kernels::table_pair& table : tables)
      move_by_slots<Choice, To, From, FromSpace::is_host_accessible>(call, label, shape, table, on_device,
                                                                     on_host, count, meter);
  }
}

/// Moves rows by the device's copy engines, on a stream of their own: they take no part of the default
/// stream.
template <class Exec>
void move_by_engines(launch_context<Exec>& call, const row_shape& shape, std::int64_t element,
                     std::span<const kernels::table_pair> tables, const kernels::row_pairs& on_host,
                     std::int64_t count) {
  using backend = execution_backend<Exec>;
  const std::string& label = call.label("copy_engine");
  const engine_copies copies =
      list_copies(in_bytes(shape, element), tables, on_host.source, on_host.target, count);
  if (copies.bytes.empty()) return;
  const Exec& side = call.side_stream();
  if (const event_handle before = call.mark(); before != nullptr) backend::wait_for(side, *before);
  backend::copy_batch_async(side, label.c_str(), copies.targets.data(), copies.sources.data(),
                            copies.bytes.data(), copies.bytes.size());
  if (const event_handle end = call.mark(side); end != nullptr) backend::wait_for(call.exec(), *end);
}

/// The same array of the tables of both sides.
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
std::optional<row_plan> plan_of_targets(const Exec& exec, const Named& named, std::int64_t rows) {
  using list = std::remove_cvref_t<Named>;
  if constexpr (is_plan<list>)
    return named;
  else if constexpr (std::is_same_v<list, row_range> || !Choice::duplicates::needs_plan)
    return std::nullopt;
  else
    return plan_rows_of<typename Choice::target_bounds>(exec, named, rows);
}

/// Checks one list of rows.
template <class Bounds, class Exec, class Named>
void require_list(const char* side, const Named& named, const untyped_array& table) {
  using list = std::remove_cvref_t<Named>;
  if constexpr (std::is_same_v<list, row_range>) {
    require_range(side, named, table);
  } else if constexpr (is_plan<list>) {
    require_plan("copy_rows", named, execution_backend<Exec>::name, table.shape.rows(),
                 [&] { return table.note().describe(); }, {});
  } else {
    require_rank_one("copy_rows", named);
    if (std::is_same_v<Bounds, bounds::clamp> && table.shape.rows() == 0 && named.rows() != 0)
      refuse_to_clamp("copy_rows", named.rows(), table.note().describe());
  }
}

/// Moves the rows of one array of the tables, by pairs that a kernel has made.
template <class Choice, class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
void move_paired(launch_context<Exec>& call, const paired_tables<From, FromSpace, To, ToSpace>& arrays,
                 const row_shape& shape, const kernels::row_pairs& pairs,
                 const kernels::row_pairs& host_pairs, std::int64_t count, copy_meter& meter) {
  using plain = std::remove_const_t<From>;
  if (shape.box.size() == 0) return;
  const auto tables = addresses_of(arrays.sources, arrays.targets);
  const std::int64_t elements = static_cast<std::int64_t>(tables.size()) * count * shape.box.size();
  [[maybe_unused]] const auto traffic = count_transfer<Path>(
      call, arrays.sources[0], arrays.targets[0], elements * static_cast<std::int64_t>(sizeof(From)),
      std::is_same_v<Path, path::direct>);
  if constexpr (std::is_same_v<Path, path::copy_engine>)
    move_by_engines(call, shape, sizeof(To), tables, host_pairs, count);
  else if constexpr (std::is_same_v<Path, path::staged>)
    move_staged<Choice, plain, FromSpace, To, ToSpace>(call, shape, tables, pairs, host_pairs, count, meter);
  else
    move_by_kernels<Choice, To, plain>(call, shape, tables, pairs, count);
}

/// One copy of rows: pairs them once, then moves those of each array of the tables.
template <class Choice, class Exec, class Sources, class Targets, class First, class... Rest>
ticket copy_row_arrays(const Exec& exec, const Sources& source_rows, const Targets& target_rows,
                       const First& first, const Rest&... rest) {
  using path_policy = row_copy_path<typename Choice::path, Exec, First, Rest...>;
  constexpr bool by_host = !std::is_same_v<path_policy, path::direct>;
  const std::int64_t count = listed_count(source_rows);
  const auto shape_of = [](const auto& arrays) {
    return match_rows(untyped(arrays.sources), untyped(arrays.targets), Choice::overlap::buffers);
  };
  const row_shape shapes[] = {shape_of(first), shape_of(rest)...};
  if (first.sources.empty()) return {};
  const auto& source = first.sources[0];
  const auto& target = first.targets[0];
  require_list<typename Choice::source_bounds, Exec>("source", source_rows, source);
  require_list<typename Choice::target_bounds, Exec>("target", target_rows, target);
  require_pairs(count, listed_count(target_rows), source, target);
  const auto plan = plan_of_targets<Choice>(exec, target_rows, target.rows());
  launch_context<Exec> call(exec, "copy_rows");
  if constexpr (by_host)
    call.refuse_capture(
        "but the host takes part in path::staged and path::copy_engine, which a graph can't repeat; use path::direct, and pinned_space or mapped_space in place of pageable memory");
  copy_meter meter(source.label.view(), target.label.view(),
                   static_cast<std::size_t>(count * target.width()) * sizeof(target.data[0]));
  auto notes = std::make_shared<table_notes>();
  notes->tables = {target.note(), source.note()};
  call.name_tables(std::move(notes));
  const auto touch = [&](const auto& arrays) {
    touch_tables<path_policy, false>(call, arrays.sources);
    touch_tables<path_policy, true>(call, arrays.targets);
  };
  touch(first);
  (touch(rest), ...);
  if (count != 0) {
    const auto pairs = pair_rows<typename Choice::source_bounds, typename Choice::target_bounds,
                                 typename Choice::duplicates>(call, source_rows, source.rows(), target_rows,
                                                              target.rows(), plan ? &*plan : nullptr, count);
    auto host_pairs = pairs;
    bool is_good = true;
    if constexpr (by_host) is_good = bring_pairs(call, plan ? &*plan : nullptr, host_pairs, count);
    if (is_good) {
      std::size_t number = 0;
      const auto move = [&](const auto& arrays) {
        move_paired<Choice, path_policy>(call, arrays, shapes[number++], pairs, host_pairs, count, meter);
      };
      move(first);
      (move(rest), ...);
    }
  }
  ticket work = call.finish(target, count, true);
  meter.finish();
  return work;
}

}  // namespace ferry::detail
