// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/split_cursor.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Writes to a table in host memory by values and a plan on the device. The device's teams write from the
/// front of the sorted rows. Other teams bring rows from the back to the ring, and the host's workers write
/// them.
template <class Duplicates, class Exec, class Job, class Value>
void write_cooperative(launch_context<Exec>& call, const std::string& label, const Job& job,
                       const row_plan& plan, const array_ref<Value, device_space>& values) {
  using unique = duplicates::assume_unique;
  const auto labels = update_labels::of<Job>(call, label);
  const plan_storage& store = *plan.storage();
  const std::int64_t items = plan.unique_count();
  if (items == 0 || (store.checked && store.read_report().out_of_range != 0)) return;
  const std::int64_t wide = values.width();
  const auto* combined = combine_on_device<Duplicates>(call, label, job, plan, items, values);
  if (combined == nullptr) return;
  using wire = std::remove_cvref_t<decltype(*combined)>;
  const std::int64_t row_bytes = wide * static_cast<std::int64_t>(sizeof(wire));

  ring<Exec> slots(call, call.side_stream(), label, items, row_bytes,
                   execution_backend<Exec>::tuning(call.exec()).cooperative_workers);
  const split_cursor split(call, items, row_bytes);
  list_from_back<Exec, std::int64_t> list(call, items);
  split.after(call);
  const auto batch = dense_rows<const wire, device_space>(combined, items, wide, "combined");
  launch_update<unique>(call.exec(), labels, job, kernels::listed_rows{store.unique_rows}, items, batch,
                        schedule::team_chunks{nullptr, split.chunk(), split.for_device()});

  list.bring(call, store.unique_rows);
  auto queue = split.for_host(slots.per_slot());
  slots.from_device(
      queue, mover_to_slot(batch, kernels::identity{}), all_by_ring{},
      [&](const auto& host, const std::byte* slot, std::int64_t first, std::int64_t count) {
        const auto packed =
            dense_rows<const wire, pinned_space>(reinterpret_cast<const wire*>(slot), count, wide, "slot");
        launch_update<unique>(host, labels, job, kernels::listed_rows{list.await_rows(first, slots)}, count,
                              packed);
      });
  moved_by_kernels<path::cooperative>(values, job.table, bytes_of_rows(values, split.left_to_device()));
  split.join(call);
}

}  // namespace ferry::detail
