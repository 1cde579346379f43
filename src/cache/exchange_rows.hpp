// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

/// The kernel that moves rows between slots and host memory.
namespace ferry::kernels {

/// The row that leaves a slot for host memory, and the row that enters it; -1 for none.
struct slot_exchange {
  std::int64_t slot, leaving, entering;
};

/// Exchanges the rows of slots, as opaque units. Neighbouring threads hold neighbouring units of one row, each
/// several loads in flight: few threads saturate the link, and leave the device to other kernels.
///
///   Exchanges  count() of them, and (number) for a slot_exchange
template <class Unit, class Exchanges>
struct exchange_rows {
  static constexpr unsigned int most_threads = 512;
  static constexpr int at_once = 4;

  Exchanges exchanges;
  Unit* cold;
  Unit* hot;
  std::int64_t stride;  ///< of both, in units
  detail::fast_divisor units;
  std::int64_t threads;

  KOKKOS_FUNCTION void operator()(std::int64_t thread) const {
    const std::int64_t end = exchanges.count() * units.divisor();
    for (std::int64_t first = thread; first < end; first += at_once * threads) {
      Unit unit[at_once];
      Unit* target[at_once];
      for (int k = 0; k < at_once; ++k) {
        target[k] = nullptr;
        const std::int64_t i = first + k * threads;
        if (i >= end) continue;
        const std::int64_t item = units.quotient(i), offset = i - item * units.divisor();
        const slot_exchange rows = exchanges(item);
        if (rows.slot < 0) continue;
        Unit* const in_slot = hot + rows.slot * stride + offset;
        if (rows.entering >= 0) {
          if (rows.leaving >= 0) cold[rows.leaving * stride + offset] = *in_slot;
          unit[k] = cold[rows.entering * stride + offset];
          target[k] = in_slot;
        } else if (rows.leaving >= 0) {
          unit[k] = *in_slot;
          target[k] = cold + rows.leaving * stride + offset;
        }
      }
      for (int k = 0; k < at_once; ++k)
        if (target[k] != nullptr) *target[k] = unit[k];
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Exchanges the rows of one array, at most `most_items` of them, in the widest units that its alignment
/// allows.
template <class Exec, class Exchanges>
void launch_exchange(const Exec& exec, const std::string& label, const cached_array& array,
                     const Exchanges& exchanges, std::int64_t most_items, std::int64_t most_threads) {
  const auto launch_in = [&]<class Unit>(Unit) {
    constexpr auto unit = static_cast<std::int64_t>(sizeof(Unit));
    using kernel = kernels::exchange_rows<Unit, Exchanges>;
    const std::int64_t units = array.row_bytes / unit,
                       threads = std::min(most_threads, most_items * units / kernel::at_once + 1);
    launch(exec, label, threads,
           kernel{exchanges, reinterpret_cast<Unit*>(array.cold), reinterpret_cast<Unit*>(array.hot),
                  array.stride / unit, fast_divisor(units), threads});
  };
  const std::uintptr_t alignment = array.cold | array.hot | static_cast<std::uintptr_t>(array.stride) |
                                   static_cast<std::uintptr_t>(array.row_bytes);
  if (array.row_bytes == 0 || most_items == 0) return;
  if (alignment % 16 == 0)
    launch_in(kernels::opaque16{});
  else if (alignment % 4 == 0)
    launch_in(kernels::opaque<4>{});
  else
    launch_in(kernels::opaque<1>{});
}

}  // namespace ferry::detail
