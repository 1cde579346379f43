// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/pair_rows.hpp>
#include <ferry/rows/detail/row_moves.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Copies of rows in which the host takes part.
namespace ferry::detail {

/// The shape in bytes of elements of `bytes` bytes.
[[nodiscard]] row_shape in_bytes(const row_shape& shape, std::int64_t bytes);
/// The shape with the rows of one side packed densely.
[[nodiscard]] row_shape packed(const row_shape& shape, copy_box::side side);
/// The greatest power of two, up to 16, that divides the addresses of all tables.
[[nodiscard]] std::int64_t alignment_of(std::span<const kernels::table_pair> tables);

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

/// The tables of a copy by way of a buffer, in which each has `bytes` bytes.
struct buffered_tables {
  std::vector<kernels::table_pair> reads, writes;

  buffered_tables(std::span<const kernels::table_pair> tables, std::byte* buffer, std::int64_t bytes);
  /// Bytes of the rows of one table, so that all begin at whole units.
  [[nodiscard]] static std::int64_t bytes_each(const row_shape& shape, std::int64_t count,
                                               std::int64_t element) {
    return (count * shape.box.size() * element + 15) / 16 * 16;
  }
};

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

/// Transfers of copy engines: neighbours on both sides are one.
struct engine_copies {
  std::vector<void*> targets;
  std::vector<const void*> sources;
  std::vector<std::size_t> bytes;
};
/// Calls visit(target, source) with the first bytes of all pairs of rows in host memory; `shape` is in bytes.
template <class Visit>
void for_each_pair(const row_shape& shape, std::span<const kernels::table_pair> tables,
                   const kernels::row_pairs& pairs, std::int64_t count, const Visit& visit) {
  for (const kernels::table_pair& table : tables)
    for (std::int64_t k = 0; k < count; ++k)
      if (pairs.source[k] >= 0 && pairs.target[k] >= 0)
        visit(static_cast<std::byte*>(table.target) + pairs.target[k] * shape.target_stride,
              static_cast<const std::byte*>(table.source) + pairs.source[k] * shape.source_stride);
}
/// The transfers of these pairs, piece by piece.
[[nodiscard]] engine_copies list_copies(const row_shape& shape, std::span<const kernels::table_pair> tables,
                                        const kernels::row_pairs& pairs, std::int64_t count);

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

/// Rows of tables on the device through page-locked slots, which the host's threads fill or drain while the
/// device moves others. All tables share the slots: item k is position k % count of table k / count.
template <class Choice, class To, class From, bool ToDevice, class Exec>
void move_by_slots(launch_context<Exec>& call, const std::string& label, const row_shape& shape,
                   std::span<const kernels::table_pair> tables, const kernels::row_pairs& on_device,
                   const kernels::row_pairs& on_host, std::int64_t count, copy_meter* meter) {
  const std::int64_t row_bytes = shape.box.size() * static_cast<std::int64_t>(sizeof(To));
  constexpr slot_tuning how{std::int64_t{1} << 23, 1, 2, false, false};
  copy_slots<Exec> slots(call, {label, static_cast<std::int64_t>(tables.size()) * count, row_bytes, meter},
                         how, call.exec());
  const auto host = host_side(call.exec());
  const std::int64_t blocks = most_blocks<typename Choice::occupancy>(call.exec());
  // visit(table, slot, position, items) for the items of each table.
  const auto each_table = [&](auto* slot, std::int64_t first, std::int64_t items, const auto& visit) {
    while (items > 0) {
      const std::int64_t position = first % count, part = std::min(items, count - position);
      visit(tables[static_cast<std::size_t>(first / count)], slot, position, part);
      first += part;
      items -= part;
      slot += part * row_bytes;
    }
  };
  const auto read = [&](const auto& exec, const kernels::row_pairs& pairs, std::byte* slot,
                        std::int64_t first, std::int64_t items) {
    each_table(slot, first, items,
               [&](const kernels::table_pair& table, std::byte* part_slot, std::int64_t position,
                   std::int64_t part) {
                 kernels::row_moves moves;
                 moves.pairs.source = pairs.source + position;
                 moves.items = part;
                 moves.only = {table.source, part_slot};
                 move_rows<To, From>(exec, label, packed(shape, copy_box::side::target),
                                     alignment_of({&moves.only, 1}), moves, blocks);
               });
  };
  const auto write = [&](const auto& exec, const kernels::row_pairs& pairs, const std::byte* slot,
                         std::int64_t first, std::int64_t items) {
    each_table(slot, first, items,
               [&](const kernels::table_pair& table, const std::byte* part_slot, std::int64_t position,
                   std::int64_t part) {
                 kernels::row_moves moves;
                 moves.pairs.target = pairs.target + position;
                 moves.items = part;
                 moves.only = {part_slot, table.target};
                 move_rows<To, To>(exec, label, packed(shape, copy_box::side::source),
                                   alignment_of({&moves.only, 1}), moves, blocks);
               });
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

/// Moves rows by host threads, through slots if one side is in the memory of the device. `progress`: the
/// bytes of the arrays before.
template <class Choice, class From, class FromSpace, class To, class ToSpace, class Exec>
void move_staged(launch_context<Exec>& call, const row_shape& shape,
                 std::span<const kernels::table_pair> tables, const kernels::row_pairs& on_device,
                 const kernels::row_pairs& on_host, std::int64_t count, copy_meter& meter,
                 [[maybe_unused]] std::size_t& progress) {
  const std::string& label = call.label("staged");
  if constexpr (FromSpace::is_host_accessible && ToSpace::is_host_accessible) {
    const auto host = host_side(call.exec());
    const auto move = [&]<class Read>(std::type_identity<Read>, const row_shape& rows,
                                      std::span<const kernels::table_pair> list,
                                      const kernels::row_pairs& pairs) {
      kernels::row_moves moves;
      moves.pairs = pairs;
      moves.items = count;
      for (const kernels::table_pair& table : list) {
        moves.only = table;
        move_rows<To, Read>(host, label, rows, alignment_of({&table, 1}), moves, 1);
      }
      host.fence(label);
    };
    if constexpr (!Choice::overlap::buffers) {
      move(std::type_identity<From>{}, shape, tables, on_host);
    } else {
      const std::int64_t bytes = buffered_tables::bytes_each(shape, count, sizeof(To));
      const buffered_tables parts(
          tables, call.template pinned<std::byte>(bytes * static_cast<std::int64_t>(tables.size())), bytes);
      kernels::row_pairs read = on_host, write = on_host;
      read.target = write.source = nullptr;
      move(std::type_identity<From>{}, packed(shape, copy_box::side::target), parts.reads, read);
      move(std::type_identity<To>{}, packed(shape, copy_box::side::source), parts.writes, write);
    }
  } else {
    move_by_slots<Choice, To, From, FromSpace::is_host_accessible>(
        call, label, shape, tables, on_device, on_host, count,
        progress == 0 ? &meter : nullptr);  // slots count from 0 on
    progress += tables.size() * static_cast<std::size_t>(count * shape.box.size()) * sizeof(To);
    meter.advance(progress);
  }
}

/// Moves rows by the device's copy engines, on a stream of their own: they take no part of the default
/// stream. A row of long pieces at equal distances is one transfer, other pieces are a batch.
template <class Exec>
void move_by_engines(launch_context<Exec>& call, const row_shape& shape, std::int64_t element,
                     std::span<const kernels::table_pair> tables, const kernels::row_pairs& on_host,
                     std::int64_t count) {
  using backend = execution_backend<Exec>;
  const std::string& label = call.label("copy_engine");
  const row_shape rows = in_bytes(shape, element);
  const Exec& side = call.side_stream();
  const bool are_pitched = !rows.box.is_one_run() && suits_transfer(side, rows.box, 1);
  const engine_copies copies = are_pitched ? engine_copies() : list_copies(rows, tables, on_host, count);
  if (!are_pitched && copies.bytes.empty()) return;
  if (const event_handle before = call.mark(); before != nullptr) backend::wait_for(side, *before);
  before_writing();
  if (are_pitched)
    for_each_pair(rows, tables, on_host, count, [&](std::byte* target, const std::byte* source) {
      transfer_box(side, label.c_str(), target, source, rows.box);
    });
  else
    backend::copy_batch_async(side, label.c_str(), copies.targets.data(), copies.sources.data(),
                              copies.bytes.data(), copies.bytes.size());
  if (const event_handle end = call.mark(side); end != nullptr) backend::wait_for(call.exec(), *end);
}

}  // namespace ferry::detail
