// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/copy_progress.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_kernels.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The innermost dimension of the source in a box that is ordered by its target; the last one if the box
/// is no transpose that is worth tiles.
inline std::size_t transposed_dimension(const copy_box& box) {
  constexpr std::int64_t least = 4;
  std::size_t inner = box.last();
  for (std::size_t d = 0; d < box.last(); ++d)
    if (std::abs(box.source[d]) < std::abs(box.source[inner])) inner = d;
  return box.extents[inner] < least || box.inner() < least ? box.last() : inner;
}

template <class T>
bool is_aligned(const T* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// Host kernels. `exec` is a host instance or the calling thread.
template <class Exec, class To, class From>
void launch_box_on_host(const Exec& exec, const std::string& label, To* target, const From* source,
                        const copy_box& box, bool past_caches) {
  const std::size_t b = box.last(), a = transposed_dimension(box);
  if (a == b) {
    const kernels::copy_rows<To, From> rows{target, source, box, past_caches};
    launch(exec, label, rows.count(), rows);
    return;
  }
  using kernel = kernels::transpose_blocks<To, From>;
  const kernels::box_offsets outer(box, a, b);
  const std::int64_t tiles_a = (box.extents[a] + kernel::edge - 1) / kernel::edge;
  const std::int64_t tiles_b = (box.extents[b] + kernel::edge - 1) / kernel::edge;
  launch(exec, label, box.size() / box.extents[a] / box.extents[b] * tiles_a * tiles_b,
         kernel{target, source, box.extents[a], box.target[a], box.source[a], box.extents[b], box.target[b],
                box.source[b], tiles_a, tiles_b, outer});
}

/// Device kernels.
template <class Exec, class To, class From>
void launch_box_on_device(const Exec& exec, const std::string& label, To* target, const From* source,
                          const copy_box& box) {
  if constexpr (!std::is_same_v<To, From>) {
    using tile = kernels::packed_tile;
    using kernel = kernels::convert_elements<To, From, tile>;
    if (box.is_one_run() && is_aligned(target, tile::elements * sizeof(To)) &&
        is_aligned(source, tile::elements * sizeof(From)))
      return launch(exec, label, (box.inner() + kernel::elements - 1) / kernel::elements,
                    kernel{target, source, box.inner()});
  }
  const std::size_t b = box.last(), a = transposed_dimension(box);
  if (a == b) {
    launch(exec, label, box.size(),
           kernels::copy_strided<To, From>{target, source, kernels::box_offsets(box)});
    return;
  }
  using kernel = kernels::transpose_tiles<To, From>;
  const auto whole_packets = [&](const auto* data, const copy_box::numbers& strides, std::size_t inner) {
    if (strides[inner] != 1 || !is_aligned(data, kernel::edge * sizeof(*data))) return false;
    for (std::size_t d = 0; d <= box.last(); ++d)
      if (d != inner && strides[d] % kernel::edge != 0) return false;
    return true;
  };
  constexpr std::int64_t reach_a = kernel::edge * kernel::along_a, reach_b = kernel::edge * kernel::along_b;
  const std::int64_t tiles_a = (box.extents[a] + reach_a - 1) / reach_a;
  const std::int64_t tiles_b = (box.extents[b] + reach_b - 1) / reach_b;
  launch(exec, label, box.size() / box.extents[a] / box.extents[b] * tiles_a * tiles_b * kernel::warp,
         kernel{target, source, box.extents[a], box.target[a], box.source[a], box.extents[b], box.target[b],
                box.source[b], fast_divisor(tiles_a), fast_divisor(tiles_b), kernels::box_offsets(box, a, b),
                whole_packets(source, box.source, a), whole_packets(target, box.target, b)});
}

/// Moves the units of a box that is ordered by its destination. Compiled for units of 1, 2, 4 and 8 bytes,
/// the execution spaces that Kokkos has and the calling thread.
template <class Unit, class Exec>
void move_units(const Exec& exec, const std::string& label, void* target, const void* source,
                const copy_box& box, bool past_caches);

/// target = source for the elements of a box, converted, by a kernel of `exec` or in the calling thread.
/// Elements of one type are moved as opaque units, which share their kernels.
template <class Exec, class To, class From>
void launch_box(const Exec& exec, const std::string& label, To* target, const From* source,
                const copy_box& box, [[maybe_unused]] bool past_caches = false) {
  constexpr auto by_target = copy_box::side::target;
  if constexpr (std::is_same_v<To, From>) {
    using unit = unit_of<To>;
    constexpr auto units = static_cast<std::int64_t>(sizeof(To) / sizeof(unit));
    move_units<unit>(exec, label, target, source, box.split(units).ordered(by_target), past_caches);
  } else if constexpr (is_host_exec<Exec>) {
    launch_box_on_host(exec, label, target, source, box.ordered(by_target), false);
  } else {
    launch_box_on_device(exec, label, target, source, box.ordered(by_target));
  }
}

/// Between memory of a host and of a device: host threads pack pieces of the box into slots, in the order of
/// the device's side, or unpack them. On the way to the device they convert. Transfers take slots to or from
/// long rows on the device, at any distance. Kernels take them to or from shorter pieces, over the link, and
/// convert elements that come from there.
template <bool ToDevice, class Exec, class From, class To>
void copy_over_link(launch_context<Exec>& call, const From* source, To* target, const copy_box& layout,
                    const slot_tuning& how, copy_meter& meter) {
  using side = copy_box::side;
  using slot_bytes = std::conditional_t<ToDevice, std::byte, const std::byte>;
  using slot_element = std::conditional_t<ToDevice, To, const To>;
  constexpr side host_side_of_box = ToDevice ? side::source : side::target;
  constexpr side device_side = ToDevice ? side::target : side::source;
  constexpr auto element = static_cast<std::int64_t>(sizeof(To));
  constexpr bool moves_on_device = ToDevice || std::is_same_v<From, To>;
  const std::string& label = call.label("staged");
  const copy_box box = layout.ordered(device_side);
  const copy_box device_box = box.packed(host_side_of_box).ordered(device_side);
  const bool transfers = moves_on_device && suits_transfer(call.exec(), device_box, sizeof(To));
  slot_tuning tuning = how;
  if (!transfers) {  // the calling thread launches all kernels
    tuning.slot_bytes *= 4;
    tuning.workers = 1;
  }
  const box_items items(box, std::max<std::int64_t>(1, tuning.slot_bytes / element));
  const auto move_on_host = [&](const auto& host, slot_bytes* slot, std::int64_t first, std::int64_t count,
                                bool past_caches) {
    auto* const elements = reinterpret_cast<slot_element*>(slot);
    items.visit(first, count,
                [&](const copy_box& part, std::int64_t target_offset, std::int64_t source_offset,
                    std::int64_t packed) {
                  if constexpr (ToDevice)
                    launch_box(host, label, elements + packed, source + source_offset,
                               part.packed(device_side), past_caches);
                  else
                    launch_box(host, label, target + target_offset, elements + packed,
                               part.packed(device_side), past_caches);
                });
  };
  const auto pack = [&](slot_bytes* slot, std::int64_t first, std::int64_t count) {
    if (transfers)
      return move_on_host(caller_thread{}, slot, first, count,
                          ToDevice ? how.fills_past_caches : how.drains_past_caches);
    const auto host = host_side(call.exec());
    move_on_host(host, slot, first, count, false);
    host.fence(label);
  };
  const auto move_part = [&](To* slot, std::int64_t offset, const copy_box& part) {
    if constexpr (ToDevice) {
      const auto* const elements = static_cast<const To*>(slot);
      if (transfers) return transfer_box(call.exec(), label.c_str(), target + offset, elements, part);
      launch_box(call.exec(), label, target + offset, elements, part);
    } else {
      if constexpr (moves_on_device)
        if (transfers) return transfer_box(call.exec(), label.c_str(), slot, source + offset, part);
      launch_box(call.exec(), label, slot, source + offset, part);
    }
  };
  const auto move_on_device = [&](std::byte* slot, std::int64_t first, std::int64_t count) {
    auto* const elements = reinterpret_cast<To*>(slot);
    if (device_box.is_one_run()) {
      copy_box run;
      run.append(count * items.item(), 1, 1);
      return move_part(elements, first * items.item(), run);
    }
    items.visit(first, count,
                [&](const copy_box& part, std::int64_t target_offset, std::int64_t source_offset,
                    std::int64_t packed) {
                  move_part(elements + packed, ToDevice ? target_offset : source_offset,
                            part.packed(host_side_of_box).ordered(device_side));
                });
  };
  copy_slots<Exec> slots(call, {label, items.count(), items.item() * element, &meter}, tuning, call.exec());
  if constexpr (ToDevice)
    slots.to_device(pack, move_on_device);
  else
    slots.from_device(move_on_device, pack);
}

/// Copies by host threads, which exchange page-locked slots with the device if one side lies there. A copy
/// to the host has ended when this returns.
template <class Exec, class From, class FromSpace, class To, class ToSpace>
void copy_staged(launch_context<Exec>& call, const array_ref<From, FromSpace>& source,
                 const array_ref<To, ToSpace>& target, const slot_tuning& how, copy_meter& meter) {
  using plain = std::remove_const_t<From>;
  const copy_box box = box_of(source, target);
  if constexpr (FromSpace::is_host_accessible && ToSpace::is_host_accessible) {
    const std::string& label = call.label("staged");
    const auto host = host_side(call.exec());
    launch_box<std::remove_const_t<decltype(host)>, To, plain>(host, label, target.data, source.data, box);
    host.fence(label);
  } else if constexpr (FromSpace::is_host_accessible) {
    copy_over_link<true, Exec, plain, To>(call, source.data, target.data, box, how, meter);
  } else {
    copy_over_link<false, Exec, plain, To>(call, source.data, target.data, box, how, meter);
  }
}

}  // namespace ferry::detail
