#pragma once

#include <ferry/algorithm/index_access.hpp>
#include <ferry/algorithm/launch_order.hpp>
#include <ferry/algorithm/meeting.hpp>
#include <ferry/algorithm/move_rows.hpp>
#include <ferry/execution/call.hpp>
#include <ferry/execution/ring.hpp>
#include <ferry/execution/transfer.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// A table in host memory, a batch on the device, and places sorted there. The device's teams gather from the
/// front of the sorted places; the host's workers gather from the back into the ring, DMA carries that to a dense
/// buffer on the device, and one more kernel moves it from there to where it belongs.
template <class Exec, class T, class TableSpace, class Out>
void gather_cooperative(call<Exec>& of, const array_ref<T, TableSpace>& table,
                        const kernels::sorted_places& places, const array_ref<Out, device_space>& out) {
  using backend = execution_backend<Exec>;
  const auto label = label_of("gather", "cooperative");
  const std::int64_t n = out.rows();
  const std::int64_t wide = out.width();
  const std::int64_t row_bytes = wide * static_cast<std::int64_t>(sizeof(Out));

  Out* arrived = of.template scratch<Out>(n * wide);
  ring<Exec> slots(of, of.lane(), label, n, row_bytes, backend::tuning().cooperative_workers);
  const meeting meet(of, n, row_bytes);
  list_from_back<Exec, std::uint64_t> list(of, n);
  meet.after(of);
  launch_gather(of.exec(), label, table, out, places, n,
                in_few_teams{nullptr, meet.chunk(), meet.for_device()});

  list.bring(of, places.sorted_rows);
  auto claims = meet.for_host(slots.pieces());
  slots.to_device(
      claims,
      [&](const auto& here, std::byte* slot, std::int64_t first, std::int64_t count) {
        const auto packed = dense_rows<Out, pinned_space>(reinterpret_cast<Out*>(slot), count, wide, "slot");
        launch_gather(here, label, table, packed, kernels::own_sorted{list.from(first), places.rows}, count);
      },
      [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
        transfer(of.lane(), "ferry::gather::cooperative", arrived + first * wide, device_space::name, slot,
                 pinned_space::name, count * row_bytes);
      });
  meet.behind(of);
  const std::int64_t begin = claims.begin();
  const auto dense = dense_rows<const Out, device_space>(arrived + begin * wide, n - begin, wide, "arrived");
  launch_gather(of.exec(), label + "::place", dense, out,
                kernels::staged_places{{places.sorted_rows + begin, places.order + begin, places.rows}},
                n - begin);
}

}  // namespace ferry::detail
