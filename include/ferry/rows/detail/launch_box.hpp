// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_kernels.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

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
  const kernels::box_places outer(box, a, b);
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
  if (box.is_one_run()) {
    const std::int64_t count = box.inner();
    if constexpr (std::is_same_v<To, From>) {
      launch(exec, label, count, kernels::copy_units<To>{target, source});
      return;
    } else {
      using tile = kernels::packed_tile;
      if (is_aligned(target, tile::elements * sizeof(To)) &&
          is_aligned(source, tile::elements * sizeof(From))) {
        using kernel = kernels::convert_elements<To, From, tile>;
        launch(exec, label, (count + kernel::elements - 1) / kernel::elements, kernel{target, source, count});
        return;
      }
    }
  }
  const std::size_t b = box.last(), a = transposed_dimension(box);
  if (a == b) {
    launch(exec, label, box.size(),
           kernels::copy_strided<To, From>{target, source, kernels::box_places(box)});
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
                box.source[b], fast_divisor(tiles_a), fast_divisor(tiles_b), kernels::box_places(box, a, b),
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

}  // namespace ferry::detail
