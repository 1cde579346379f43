// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/split_cursor.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// Gathers from a table in host memory into a batch on the device, by places sorted on the device. The
/// device's teams gather from the front of the sorted places. The host's workers gather from the back into
/// the ring, and other teams move those rows to the batch.
template <class Exec, class T, class TableSpace, class Out>
void gather_cooperative(launch_context<Exec>& call, const array_ref<T, TableSpace>& table,
                        const kernels::sorted_places& places, const array_ref<Out, device_space>& out) {
  const auto label = label_of("gather", "cooperative");
  const std::int64_t n = out.rows();
  const std::int64_t wide = out.width();
  const std::int64_t row_bytes = wide * static_cast<std::int64_t>(sizeof(Out));

  ring<Exec> slots(call, call.side_stream(), label, n, row_bytes,
                   execution_backend<Exec>::tuning(call.exec()).cooperative_workers);
  const split_cursor split(call, n, row_bytes);
  list_from_back<Exec, std::uint64_t> list(call, n);
  split.after(call);
  launch_gather(call.exec(), label, table, out, places, n,
                schedule::team_chunks{nullptr, split.chunk(), split.for_device()});

  list.bring(call, places.sorted_rows);
  auto queue = split.for_host(slots.per_slot());
  slots.to_device(
      queue, mover_from_slot<Exec>(out, places), all_by_ring{},
      [&](const auto& host, std::byte* slot, std::int64_t first, std::int64_t count) {
        const kernels::sorted_identity source{list.await_rows(first, slots), places.rows};
        const auto packed = dense_rows<Out, pinned_space>(reinterpret_cast<Out*>(slot), count, wide, "slot");
        launch_gather(host, label, table, packed, source, count);
        const auto* of_piece = source.sorted_rows;
        return std::any_of(of_piece, of_piece + count, [&](std::uint64_t row) { return row >= places.rows; });
      });
  moved_by_kernels<path::cooperative>(table, out, bytes_of_rows(table, split.left_to_device()));
  split.join(call);
}

}  // namespace ferry::detail
