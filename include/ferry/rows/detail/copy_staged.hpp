// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_kernels.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/launch_box.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/serve_ring.hpp>
#include <ferry/rows/detail/staging_ring.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// Offsets of the elements on one side, in the order of the box. Neighbouring dimensions are merged.
inline kernels::strided_places places_of(const copy_box& box, copy_box::side end) {
  kernels::strided_places places;
  for (std::size_t d = 0; d <= box.last(); ++d) {
    const std::int64_t extent = box.extents[d], stride = box.strides(end)[d];
    if (places.rank > 0 && places.strides[places.rank - 1] == extent * stride) {
      places.extents[places.rank - 1] *= extent;
      places.strides[places.rank - 1] = stride;
    } else {
      places.extents[places.rank] = extent;
      places.strides[places.rank++] = stride;
    }
  }
  return places;
}

/// Reports the progress of a ring. Its workers are many, but the observer's thread is one of them, and the
/// only one that is watched.
class ring_meter {
 public:
  explicit ring_meter(copy_meter& meter) : meter_(meter) {}
  void add(std::size_t bytes) {
    const std::size_t now = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (copy_progress::is_watched()) meter_.advance(now);
  }

 private:
  copy_meter& meter_;
  std::atomic<std::size_t> bytes_{0};
};

/// How elements of one type travel through the staging ring: as units that types of one size share.
template <class T>
using ring_unit = std::conditional_t<sizeof(unit_of<T>) == sizeof(T), unit_of<T>, kernels::whole_element<T>>;

/// Elements of an item of the staging ring, at most: a few items fit one slot.
template <class Exec, class T>
std::int64_t ring_item(const Exec& exec) {
  return std::max<std::int64_t>(
      1, execution_backend<Exec>::tuning(exec).ring_slot_bytes / 8 / static_cast<std::int64_t>(sizeof(T)));
}

/// Host threads pack pieces of the source, converted, in the order of the destination. Transfers take them to
/// the device, also into long rows at any distance; the ring's kernel takes them to other places.
template <class Exec, class From, class To>
void copy_to_device(launch_context<Exec>& call, const std::string& label, const From* source, To* target,
                    const copy_box& layout, const slot_tuning& how, copy_meter& meter) {
  using side = copy_box::side;
  constexpr auto element = static_cast<std::int64_t>(sizeof(To));
  const copy_box box = layout.ordered(side::target);
  const auto pack = [&](const auto& host, const box_items& items, std::byte* slot, std::int64_t first,
                        std::int64_t count, bool past_caches) {
    items.visit(first, count,
                [&](const copy_box& part, std::int64_t, std::int64_t offset, std::int64_t packed) {
                  launch_box(host, label, reinterpret_cast<To*>(slot) + packed, source + offset,
                             part.packed(side::target), past_caches);
                });
  };
  const copy_box device_box = box.packed(side::source).ordered(side::target);
  if (suits_transfer(call.exec(), device_box, sizeof(To))) {
    const box_items items(box, how.slot_bytes / element);
    copy_slots<Exec> slots(call, label, items.count(), items.item() * element, how, meter);
    slots.to_device(
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          pack(caller_thread{}, items, slot, first, count, how.fills_past_caches);
        },
        [&](std::byte* slot, std::int64_t first, std::int64_t count) {
          const auto* packed_data = reinterpret_cast<const To*>(slot);
          if (device_box.is_one_run()) {
            copy_box run;
            run.append(count * items.item(), 1, 1);
            return transfer_box(call.exec(), label.c_str(), target + first * items.item(), packed_data, run);
          }
          items.visit(first, count,
                      [&](const copy_box& part, std::int64_t offset, std::int64_t, std::int64_t packed) {
                        transfer_box(call.exec(), label.c_str(), target + offset, packed_data + packed,
                                     part.packed(side::source).ordered(side::target));
                      });
        });
    return;
  }
  using moved = std::conditional_t<std::is_same_v<From, To>, ring_unit<To>, To>;
  const box_items items(box, ring_item<Exec, To>(call.exec()));
  ring_meter progress(meter);
  ring<Exec> slots(call, call.exec(), label, items.count(), items.item() * element,
                   execution_backend<Exec>::tuning(call.exec()).staging_workers);
  slots.to_device(
      kernels::elements_from_slot<Exec, moved, kernels::strided_places>{
          reinterpret_cast<moved*>(target), places_of(box, side::target), items.item()},
      all_by_ring{}, [&](const auto& host, std::byte* slot, std::int64_t first, std::int64_t count) {
        pack(host, items, slot, first, count, false);
        progress.add(static_cast<std::size_t>(count * items.item() * element));
        return false;
      });
}

/// The other direction, in the order of the source. The ring's kernel converts; transfers move elements of
/// one type.
template <class Exec, class From, class To>
void copy_from_device(launch_context<Exec>& call, const std::string& label, const From* source, To* target,
                      const copy_box& layout, const slot_tuning& how, copy_meter& meter) {
  using side = copy_box::side;
  constexpr auto element = static_cast<std::int64_t>(sizeof(To));
  constexpr bool same = std::is_same_v<From, To>;
  const copy_box box = layout.ordered(side::source);
  const auto unpack = [&](const auto& host, const box_items& items, const std::byte* slot, std::int64_t first,
                          std::int64_t count, bool past_caches) {
    items.visit(first, count,
                [&](const copy_box& part, std::int64_t offset, std::int64_t, std::int64_t packed) {
                  launch_box(host, label, target + offset, reinterpret_cast<const To*>(slot) + packed,
                             part.packed(side::source), past_caches);
                });
  };
  if constexpr (same) {
    const copy_box device_box = box.packed(side::target).ordered(side::source);
    if (suits_transfer(call.exec(), device_box, sizeof(To))) {
      const box_items items(box, how.slot_bytes / element);
      copy_slots<Exec> slots(call, label, items.count(), items.item() * element, how, meter);
      slots.from_device(
          [&](std::byte* slot, std::int64_t first, std::int64_t count) {
            auto* const packed_data = reinterpret_cast<To*>(slot);
            if (device_box.is_one_run()) {
              copy_box run;
              run.append(count * items.item(), 1, 1);
              return transfer_box(call.exec(), label.c_str(), packed_data, source + first * items.item(),
                                  run);
            }
            items.visit(first, count,
                        [&](const copy_box& part, std::int64_t, std::int64_t offset, std::int64_t packed) {
                          transfer_box(call.exec(), label.c_str(), packed_data + packed, source + offset,
                                       part.packed(side::target).ordered(side::source));
                        });
          },
          [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
            unpack(caller_thread{}, items, slot, first, count, how.drains_past_caches);
          });
      return;
    }
  }
  using moved = std::conditional_t<same, ring_unit<To>, To>;
  using source_element = std::conditional_t<same, moved, From>;
  const box_items items(box, ring_item<Exec, To>(call.exec()));
  ring_meter progress(meter);
  ring<Exec> slots(call, call.exec(), label, items.count(), items.item() * element,
                   execution_backend<Exec>::tuning(call.exec()).staging_workers);
  slots.from_device(
      kernels::elements_to_slot<moved, source_element, kernels::strided_places>{
          reinterpret_cast<const source_element*>(source), places_of(box, side::source), items.item()},
      all_by_ring{}, [&](const auto& host, const std::byte* slot, std::int64_t first, std::int64_t count) {
        unpack(host, items, slot, first, count, false);
        progress.add(static_cast<std::size_t>(count * items.item() * element));
      });
}

/// Copies by host threads, which exchange page-locked slots with the device if one side lies there. A copy
/// to the host has ended when this returns.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_staged(launch_context<Exec>& call, const array_ref<From, FromSpace>& source,
                 const array_ref<To, ToSpace>& target, const slot_tuning& how, copy_meter& meter) {
  using plain = std::remove_const_t<From>;
  const std::string& label = call.label("staged");
  const copy_box box = box_of(source, target);
  if constexpr (FromSpace::is_host_accessible && ToSpace::is_host_accessible) {
    const auto host = host_side(call.exec());
    launch_box<std::remove_const_t<decltype(host)>, To, plain>(host, label, target.data, source.data, box);
    host.fence(label);
  } else if constexpr (FromSpace::is_host_accessible) {
    copy_to_device<Exec, plain, To>(call, label, source.data, target.data, box, how, meter);
  } else {
    copy_from_device<Exec, plain, To>(call, label, source.data, target.data, box, how, meter);
  }
}

}  // namespace ferry::detail
