// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry::kernels {

/// Row k of a slot goes to position k, unless rows[k] is negative.
struct rows_of_slot {
  const std::int64_t* rows;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const { return rows[k] < 0 ? -1 : k; }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Item k is row sorted_rows[k], which goes to row k of a slot.
struct sorted_identity {
  const std::uint64_t* sorted_rows = nullptr;
  std::uint64_t rows = 0;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const {
    return sorted_rows[k] < rows ? static_cast<std::int64_t>(sorted_rows[k]) : -1;
  }
  KOKKOS_FUNCTION static std::int64_t position(std::int64_t k) { return k; }
};

/// Row k of such a slot goes to its position of the batch.
struct sorted_positions {
  const std::uint64_t* sorted_rows = nullptr;
  const std::int64_t* order = nullptr;
  std::uint64_t rows = 0;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t k, bool) const { return sorted_rows[k] < rows ? k : -1; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows in a slot.
template <class T, class Byte>
auto rows_in_slot(Byte* slot, std::int64_t count, std::int64_t width) {
  return dense_rows<T, pinned_space>(reinterpret_cast<T*>(slot), count, width, "slot");
}

/// launch_gather between a slot and the device, which several host threads call at the same time. Rows that
/// lie side by side in both are one transfer; kernels access slots over the link.
template <class Exec, class Rows, class Out, class OutSpace, class Source>
void gather_by_slot(const Exec& exec, const std::string& label, const Rows& rows,
                    const array_ref<Out, OutSpace>& out, const Source& source, std::int64_t items) {
  if constexpr (!is_host_exec<Exec> && std::is_same_v<Source, kernels::identity> &&
                std::is_same_v<std::remove_const_t<typename Rows::value_type>, Out>)
    if (rows.row_stride() == rows.width() && out.row_stride() == out.width())
      return execution_backend<Exec>::copy_async(exec, label.c_str(), out.data, rows.data,
                                                 static_cast<std::size_t>(bytes_of_rows(out, items)));
  if constexpr (is_host_exec<Exec>)
    launch_gather(caller_thread{}, label, rows, out, source, items);
  else
    launch_gather(exec, label, rows, out, source, items, schedule::team_chunks{.is_reported = false});
}

/// Gathers rows through host memory, by the host's threads. `rows` lists the table row of each position, -1
/// for none.
template <class Exec, class T, class TableSpace, class Out, class OutSpace>
void gather_staged(launch_context<Exec>& call, const array_ref<T, TableSpace>& table,
                   const std::int64_t* rows, const array_ref<Out, OutSpace>& out) {
  const std::string label = label_of("gather", "staged");
  const std::int64_t n = out.rows(), width = out.width();
  if constexpr (TableSpace::is_host_accessible && OutSpace::is_host_accessible) {
    const auto host = host_side(call.exec());
    launch_gather(host, label, table, out, kernels::listed_rows{rows}, n);
    host.fence(label);
    return;
  }
  copy_slots<Exec> slots(call, {label, n, bytes_of_rows(out, 1)}, slot_tuning::of_rows(call.exec()),
                         call.exec());
  if constexpr (TableSpace::is_host_accessible) {
    const tool_kernel report(call.exec(), label);
    slots.to_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          launch_gather(caller_thread{}, label, table, rows_in_slot<Out>(slot, count, width),
                        kernels::listed_rows{rows + first}, count);
        },
        [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
          const auto packed = rows_in_slot<const Out>(slot, count, width);
          const auto target = rows_from(out, first, count);
          if (std::any_of(rows + first, rows + first + count, [](std::int64_t row) { return row < 0; }))
            gather_by_slot(call.exec(), label, packed, target, kernels::rows_of_slot{rows + first}, count);
          else
            gather_by_slot(call.exec(), label, packed, target, kernels::identity{}, count);
        });
  } else {
    auto* const device_list = call.template scratch<std::int64_t>(n);
    transfer(call.exec(), "ferry::indices", device_list, device_space::name, rows, pinned_space::name,
             n * static_cast<std::int64_t>(sizeof(std::int64_t)));
    const tool_kernel report(call.exec(), label);
    slots.from_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          gather_by_slot(call.exec(), label, table, rows_in_slot<Out>(slot, count, width),
                         kernels::listed_rows{device_list + first}, count);
        },
        [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
          launch_gather(caller_thread{}, label, rows_in_slot<const Out>(slot, count, width),
                        rows_from(out, first, count), kernels::rows_of_slot{rows + first}, count);
        });
  }
}

inline constexpr const char* cooperative_needs_the_host =
    "but path::cooperative needs the host's threads each time that it runs";

/// path::cooperative: the device's teams take the items of a list from the front, and host threads take them
/// from the back. launch_teams(order) enqueues the kernel of the teams; serve(slots, queue, side, rows) moves
/// the other items through slots by kernels of the instance `side`; `rows` are those of the items in host
/// memory. Returns the number of items that the teams take.
template <class Exec, class Row, class LaunchTeams, class Serve>
std::int64_t share_rows(launch_context<Exec>& call, const std::string& label,
                        const std::pair<const Row*, std::int64_t>& sorted, std::int64_t item_bytes,
                        const LaunchTeams& launch_teams, const Serve& serve) {
  using backend = execution_backend<Exec>;
  const auto& tuning = backend::tuning(call.exec());
  const auto [rows, items] = sorted;
  // All memory comes first, so that no allocation can fail after the device has begun.
  const Exec& side = call.side_stream();
  slot_tuning how = slot_tuning::of_rows(call.exec());
  how.workers = tuning.cooperative_workers;
  copy_slots<Exec> slots(call, {label, items, item_bytes}, how, side);
  auto* const limit = call.template pinned<std::int64_t>(1);
  auto* const progress = call.template pinned<std::int64_t>(tuning.ordered_teams);
  auto* const host_list = call.template pinned<Row>(items);
  const auto arrival = call.event_to_record(), end = call.event_to_record();
  *limit = items;
  std::fill_n(progress, tuning.ordered_teams, 0);
  // Even a small batch gives every team a few chunks, so that the two ends can end between chunks.
  constexpr std::int64_t chunk_rows = 256;
  const std::int64_t bytes =
      std::clamp(chunk_rows * item_bytes, tuning.split_chunk_bytes, 4 * tuning.split_chunk_bytes);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(items / (std::int64_t{4} * tuning.ordered_teams), 1,
                               std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, item_bytes)));
  // The side stream may then write to the call's buffers and read the results of the call's kernels.
  if (const auto point = call.mark(); point != nullptr) backend::wait_for(side, *point);
  launch_teams(schedule::team_chunks{nullptr, chunk, {progress, limit}});

  transfer(side, "ferry::indices", host_list, pinned_space::name, rows, device_space::name,
           items * static_cast<std::int64_t>(sizeof(Row)));
  backend::record_at(side, *arrival);
  arrival->wait();
  split_queue queue(limit, progress, tuning.ordered_teams, tuning.ordered_teams * chunk, slots.per_slot());
  serve(slots, queue, side, static_cast<const Row*>(host_list));
  backend::record_at(side, *end);
  backend::wait_for(call.exec(), *end);
  return *limit;
}

}  // namespace ferry::detail
