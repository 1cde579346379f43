// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// True if DMA on memory of this space is asynchronous and runs at the link's rate. It does neither on memory
/// that the device maps with large pages, nor on pages that the system may move.
template <class Space>
inline constexpr bool is_page_locked = std::is_same_v<Space, pinned_space>;

/// Finds the runs of neighbouring table rows in a list of rows that are long enough for a DMA transfer of
/// their own. Such a transfer accesses the table directly instead of through the ring.
class long_runs {
 public:
  /// No piece is long enough.
  long_runs() = default;
  /// `table` and `batch` have rows of the same size. `batch` has a row for each item of the list `rows` (-1:
  /// none).
  template <class Exec, class T, class TableSpace, class V, class BatchSpace>
  static long_runs between(const Exec& exec, const std::int64_t* rows, const array_ref<T, TableSpace>& table,
                           const array_ref<V, BatchSpace>& batch) {
    const std::int64_t row_bytes = batch.width() * static_cast<std::int64_t>(sizeof(V));
    const std::int64_t least_bytes = execution_backend<Exec>::tuning(exec).dma_run_bytes;
    const bool dense = table.row_stride() == table.width() && batch.row_stride() == batch.width();
    if (row_bytes <= 0 || (!dense && row_bytes < least_bytes)) return {};
    return {rows, (least_bytes + row_bytes - 1) / row_bytes, dense};
  }
  /// Runs of at least `least` rows. Where the rows are not `dense`, that is contiguous, each row is a run of
  /// its own.
  long_runs(const std::int64_t* rows, std::int64_t least, bool dense)
      : rows_(rows), least_(least), most_(dense ? std::numeric_limits<std::int64_t>::max() : 1) {}

  /// True if each row is a run, so that none goes through the ring.
  [[nodiscard]] bool is_every_row() const { return least_ == 1; }

  /// Cuts items [first, first + count) into runs and the rest between them: on_run(begin, length) and
  /// on_rest(begin, length), in the order of the items.
  ///
  /// Looks at every few items only: a run of `least` items holds a whole window of half that length, wherever
  /// it begins, and the first and last row of a window tell whether it may be part of a run.
  template <class OnRun, class OnRest>
  void split(std::int64_t first, std::int64_t count, const OnRun& on_run, const OnRest& on_rest) const {
    const std::int64_t end = first + count;
    std::int64_t rest = first;
    const std::int64_t window = (least_ + 1) / 2;
    for (std::int64_t position = first; least_ > 0 && position + window <= end;) {
      std::int64_t begin = position, stop = position;
      if (rows_[position] >= 0 && rows_[position + window - 1] == rows_[position] + window - 1) {
        while (begin > rest && rows_[begin - 1] >= 0 && rows_[begin - 1] + 1 == rows_[begin]) --begin;
        for (++stop; stop < end && rows_[stop] == rows_[stop - 1] + 1;) ++stop;
      }
      if (stop - begin < least_) {
        position += window;
        continue;
      }
      if (rest < begin) on_rest(rest, begin - rest);
      for (std::int64_t piece = begin; piece < stop; piece += std::min(most_, stop - piece))
        on_run(piece, std::min(most_, stop - piece));
      rest = stop;
      position = first + (stop - first + window - 1) / window * window;
    }
    if (rest < end) on_rest(rest, end - rest);
  }

 private:
  const std::int64_t* rows_ = nullptr;
  std::int64_t least_ = 0;
  std::int64_t most_ = 1;
};

/// Gathers rows through host memory, by the host's threads. `rows` lists the table row of each position, -1
/// for none.
template <class Exec, class T, class TableSpace, class Out, class OutSpace>
void gather_staged(launch_context<Exec>& call, const array_ref<T, TableSpace>& table,
                   const std::int64_t* rows, const array_ref<Out, OutSpace>& out) {
  const auto label = label_of("gather", "staged");
  const std::int64_t n = out.rows();
  const std::int64_t wide = out.width();
  const std::int64_t row_bytes = wide * static_cast<std::int64_t>(sizeof(Out));
  [[maybe_unused]] const int workers = execution_backend<Exec>::tuning(call.exec()).staging_workers;
  if constexpr (TableSpace::is_host_accessible && OutSpace::is_host_accessible) {
    const auto host = host_side(call.exec());
    launch_gather(host, label, table, out, kernels::listed_rows{rows}, n);
    host.fence(label);
  } else if constexpr (TableSpace::is_host_accessible) {
    // Runs of neighbouring rows of a page-locked table go by DMA directly, the others through the ring.
    long_runs runs;
    if constexpr (is_page_locked<TableSpace> && std::is_same_v<std::remove_const_t<T>, Out>)
      runs = long_runs::between(call.exec(), rows, table, out);
    transfer_batch<Exec> straight(call.exec(), label, OutSpace::name, TableSpace::name);
    std::mutex adding;
    const auto rest_of = [&](std::int64_t first, std::int64_t count, const auto& on_rest) {
      runs.split(
          first, count,
          [&](std::int64_t begin, std::int64_t length) {
            const std::lock_guard lock(adding);
            straight.add(out.data + begin * out.row_stride(), table.data + rows[begin] * table.row_stride(),
                         length * row_bytes);
          },
          on_rest);
    };
    if (runs.is_every_row()) {
      rest_of(0, n, [](std::int64_t, std::int64_t) {});
      return straight.enqueue();
    }
    ring<Exec> slots(call, call.exec(), label, n, row_bytes, workers);
    const kernels::listed_rows source{rows};
    slots.to_device(mover_from_slot<Exec>(out, source), rest_of,
                    [&](const auto& host, std::byte* slot, std::int64_t first, std::int64_t count) {
                      const auto packed =
                          dense_rows<Out, pinned_space>(reinterpret_cast<Out*>(slot), count, wide, "slot");
                      launch_gather(host, label, table, packed, kernels::listed_rows{rows + first}, count);
                      return std::any_of(rows + first, rows + first + count,
                                         [](std::int64_t row) { return row < 0; });
                    });
    // Enqueued after the ring has finished: a full queue after the ring's kernel would block the workers that
    // it waits for.
    straight.enqueue();
  } else {
    // From the device: its teams fill the ring, and the host's threads empty it. Rows of another element type
    // are first gathered into a batch on the device, which converts them.
    auto* listed = call.template scratch<std::int64_t>(n);
    transfer(call.exec(), "ferry::indices", listed, device_space::name, rows, pinned_space::name,
             n * static_cast<std::int64_t>(sizeof(std::int64_t)));
    ring<Exec> slots(call, call.exec(), label, n, row_bytes, workers);
    const auto bring = [&](const auto& mover) {
      slots.from_device(mover, all_by_ring{},
                        [&](const auto& host, const std::byte* slot, std::int64_t first, std::int64_t count) {
                          const auto packed = dense_rows<const Out, pinned_space>(
                              reinterpret_cast<const Out*>(slot), count, wide, "slot");
                          launch_gather(host, label, packed, rows_from(out, first, count),
                                        kernels::masked_identity{rows + first}, count);
                        });
    };
    const kernels::listed_rows source{listed};
    if constexpr (std::is_same_v<std::remove_const_t<T>, Out>) {
      bring(mover_to_slot(table, source));
    } else {
      const auto dense =
          dense_rows<Out, device_space>(call.template scratch<Out>(n * wide), n, wide, "batch");
      launch_gather(call.exec(), label, table, dense, source, n);
      bring(mover_to_slot(dense, kernels::identity{}));
    }
  }
}

inline constexpr const char* cooperative_needs_the_host =
    "but path::cooperative needs the host's threads each time that it runs";

/// path::cooperative: the device's teams take the items of a list from the front, and host threads take them
/// from the back. launch_teams(order) enqueues the kernel of the teams; serve(slots, queue, rows_from) moves
/// the other items through the ring, and rows_from(first) are the rows of items [first, ...) in host memory.
/// Returns the number of items that the teams take.
template <class Exec, class Row, class LaunchTeams, class Serve>
std::int64_t share_rows(launch_context<Exec>& call, const std::string& label,
                        const std::pair<const Row*, std::int64_t>& sorted, std::int64_t item_bytes,
                        const LaunchTeams& launch_teams, const Serve& serve) {
  using backend = execution_backend<Exec>;
  const auto& tuning = backend::tuning(call.exec());
  const auto [rows, items] = sorted;
  // All memory comes first, so that no allocation can fail after the device has begun.
  const Exec& side = call.side_stream();
  ring<Exec> slots(call, side, label, items, item_bytes, tuning.cooperative_workers);
  auto* const limit = call.template pinned<std::int64_t>(1);
  auto* const progress = call.template pinned<std::int64_t>(tuning.ordered_teams);
  auto* const arrived = call.template pinned<std::int64_t>(1);
  auto* const near_rows = call.template pinned<Row>(items);
  const auto arrival = call.event_to_record(), end = call.event_to_record();
  *limit = items;
  *arrived = 0;
  std::fill_n(progress, tuning.ordered_teams, 0);
  // Even a small batch gives every team a few chunks, so that the two ends can meet between chunks.
  constexpr std::int64_t chunk_rows = 256;
  const std::int64_t bytes =
      std::clamp(chunk_rows * item_bytes, tuning.split_chunk_bytes, 4 * tuning.split_chunk_bytes);
  const std::int64_t chunk =
      std::clamp<std::int64_t>(items / (std::int64_t{4} * tuning.ordered_teams), 1,
                               std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, item_bytes)));
  // The side stream may then write to the call's buffers and read the results of the call's kernels.
  if (const auto now = call.mark(); now != nullptr) backend::wait_for(side, *now);
  launch_teams(schedule::team_chunks{nullptr, chunk, {progress, limit}});

  transfer(side, "ferry::indices", near_rows, pinned_space::name, rows, device_space::name,
           items * static_cast<std::int64_t>(sizeof(Row)));
  backend::launch_blocks(side, "ferry::indices", 1, 1, kernels::raise_word<Exec>{arrived});
  backend::record_at(side, *arrival);
  split_queue queue(limit, progress, tuning.ordered_teams, tuning.ordered_teams * chunk, slots.per_slot());
  serve(slots, queue, [&](std::int64_t first) -> const Row* {
    slots.await(*arrived, arrival.get());  // a word: querying the device may block, see ring_progress
    return near_rows + first;
  });
  backend::record_at(side, *end);
  backend::wait_for(call.exec(), *end);
  return *limit;
}

}  // namespace ferry::detail
