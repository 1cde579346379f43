// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_elements.hpp>
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

/// The innermost dimension of `from` in a box that is ordered by `to`; the last one where the box is no
/// transpose that is worth tiles.
inline std::size_t transposed_dimension(const copy_box& box) {
  constexpr std::int64_t least = 4;
  std::size_t inner = box.last();
  for (std::size_t d = 0; d < box.last(); ++d)
    if (std::abs(box.from[d]) < std::abs(box.from[inner])) inner = d;
  return box.extents[inner] < least || box.inner() < least ? box.last() : inner;
}

template <class T>
bool is_aligned(const T* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// Host kernels. `exec` is a host instance or the calling thread.
template <class Exec, class To, class From>
void launch_box_on_host(const Exec& exec, const std::string& label, To* to, const From* from,
                        const copy_box& box, bool past_caches) {
  const std::size_t b = box.last(), a = transposed_dimension(box);
  if (a == b) {
    const kernels::copy_rows<To, From> rows{to, from, box, past_caches};
    launch(exec, label, rows.count(), rows);
    return;
  }
  using kernel = kernels::transpose_blocks<To, From>;
  const kernels::box_places others(box, a, b);
  const std::int64_t tiles_a = (box.extents[a] + kernel::edge - 1) / kernel::edge;
  const std::int64_t tiles_b = (box.extents[b] + kernel::edge - 1) / kernel::edge;
  launch(exec, label, box.size() / box.extents[a] / box.extents[b] * tiles_a * tiles_b,
         kernel{to, from, box.extents[a], box.to[a], box.from[a], box.extents[b], box.to[b], box.from[b],
                tiles_a, tiles_b, others});
}

/// Device kernels.
template <class Exec, class To, class From>
void launch_box_on_device(const Exec& exec, const std::string& label, To* to, const From* from,
                          const copy_box& box) {
  if (box.is_one_run()) {
    const std::int64_t count = box.inner();
    if constexpr (std::is_same_v<To, From>) {
      launch(exec, label, count, kernels::copy_units<To>{to, from});
      return;
    } else {
      using tile = kernels::packed_tile;
      if (is_aligned(to, tile::elements * sizeof(To)) && is_aligned(from, tile::elements * sizeof(From))) {
        using kernel = kernels::convert_elements<To, From, tile>;
        launch(exec, label, (count + kernel::each - 1) / kernel::each, kernel{to, from, count});
        return;
      }
    }
  }
  const std::size_t b = box.last(), a = transposed_dimension(box);
  if (a == b) {
    launch(exec, label, box.size(), kernels::copy_strided<To, From>{to, from, kernels::box_places(box)});
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
         kernel{to, from, box.extents[a], box.to[a], box.from[a], box.extents[b], box.to[b], box.from[b],
                fast_divisor(tiles_a), fast_divisor(tiles_b), kernels::box_places(box, a, b),
                whole_packets(from, box.from, a), whole_packets(to, box.to, b)});
}

/// Moves the units of a box that is ordered by its destination. Compiled for units of 1, 2, 4 and 8 bytes,
/// the execution spaces that Kokkos has and the calling thread.
template <class Unit, class Exec>
void move_units(const Exec& exec, const std::string& label, void* to, const void* from, const copy_box& box,
                bool past_caches);

/// to = from for the elements of a box, converted, by a kernel of `exec` or in the calling thread. Elements
/// of one type are moved as opaque units, which share their kernels.
template <class Exec, class To, class From>
void launch_box(const Exec& exec, const std::string& label, To* to, const From* from, const copy_box& given,
                [[maybe_unused]] bool past_caches = false) {
  constexpr auto by_to = copy_box::side::to;
  if constexpr (std::is_same_v<To, From>) {
    using unit = unit_of<To>;
    constexpr auto units = static_cast<std::int64_t>(sizeof(To) / sizeof(unit));
    move_units<unit>(exec, label, to, from, given.split(units).ordered(by_to), past_caches);
  } else if constexpr (is_host_exec<Exec>) {
    launch_box_on_host(exec, label, to, from, given.ordered(by_to), false);
  } else {
    launch_box_on_device(exec, label, to, from, given.ordered(by_to));
  }
}

}  // namespace ferry::detail
