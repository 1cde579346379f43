// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::kernels {

/// Item i is the position of all ranks' batches that comes i-th for one owner, in the order (rank, position).
/// Writes its row in the owner's shard, and where its values begin, in units after the lowest of all values.
/// One thread for each item: neighbours read neighbouring elements of the lists of one rank.
struct join_lists {
  const std::int64_t* place[most_shards];  ///< of each rank, from its first item on
  const std::int64_t* local[most_shards];
  std::int64_t values[most_shards];  ///< where the rank's values begin
  std::int64_t step[most_shards];    ///< units from a row of its values to the next
  std::int64_t begin[most_shards];   ///< its first item
  std::int64_t* rows;
  std::int64_t* from;
  int ranks;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    int of = 0;  // the last rank that does not begin behind the item
    for (int last = ranks - 1; of < last;) {
      const int middle = (of + last + 1) / 2;
      if (begin[middle] <= i)
        of = middle;
      else
        last = middle - 1;
    }
    const std::int64_t k = i - begin[of];
    rows[i] = local[of][k];
    from[i] = values[of] + place[of][k] * step[of];
  }
};

/// out[u] = the unit of column u % width that begins from[u / width] units after `lowest`: rows of a dense
/// buffer, in units of type Unit, or of 16 bytes if `wide`.
///
/// Device mapping: few threads, each with four loads in flight, walk over the units, neighbours over
/// neighbouring ones. That fills the links to the other devices and leaves most of each multiprocessor to
/// another kernel.
template <class Unit>
struct pull_units {
  /// As many threads as 66 blocks of 512: these fill NVLink (H200).
  static constexpr std::int64_t most_iterations = 66 * 512;
  static constexpr int at_once = 4;

  const void* lowest;
  void* out;
  const std::int64_t* from;
  detail::fast_divisor width;
  std::int64_t count;
  std::int64_t iterations;
  bool wide;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (wide)
      move<opaque16>(i);
    else
      move<Unit>(i);
  }

 private:
  template <class Any>
  KOKKOS_FORCEINLINE_FUNCTION void move(std::int64_t i) const {
    for (std::int64_t first = i; first < count; first += at_once * iterations) {
      Any unit[at_once];
      for (int k = 0; k < at_once; ++k) {
        const std::int64_t u = first + k * iterations;
        if (u >= count) continue;
        const std::int64_t item = width.quotient(u);
        unit[k] = static_cast<const Any*>(lowest)[from[item] + (u - item * width.divisor())];
      }
      for (int k = 0; k < at_once; ++k)
        if (const std::int64_t u = first + k * iterations; u < count) static_cast<Any*>(out)[u] = unit[k];
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows that all batches name in the shard of this rank, with their values, in the order (rank,
/// position): on the device of the shard's instance.
template <class T>
struct pulled_rows {
  tensor<std::int64_t, device_space> rows;
  tensor<T, device_space> values;
};

/// The lists of all ranks for the owner `rank`. Values are found in units of `unit` bytes after `lowest`.
[[nodiscard]] kernels::join_lists lists_for(int rank, const std::vector<batch_offer>& offers,
                                            const std::vector<std::int64_t>& counts, const std::byte* lowest,
                                            std::size_t unit);

/// What pull_rows lets run next to the pull of the values: nothing.
struct nothing_meanwhile {
  template <class Rows>
  void operator()(const Rows&) const {}
};

/// Pulls the rows of the shard of `rank` out of the batches of all ranks, by kernels of `there`: the lists
/// first, which are short and lie in order, then the values that they name. `meanwhile(rows)` enqueues work
/// of `there` that needs the rows alone, which runs while a device pulls the values. Enqueues only.
template <class T, class Exec, class Meanwhile = nothing_meanwhile>
pulled_rows<T> pull_rows(const char* verb, const Exec& there, int rank, const batch_meeting<batch_offer>& met,
                         std::int64_t width, const Meanwhile& meanwhile = {}) {
  using backend = execution_backend<Exec>;
  const auto ranks = met.offers.size();
  std::int64_t items = 0;
  for (std::size_t r = 0; r < ranks; ++r) items += met.counts[r * ranks + static_cast<std::size_t>(rank)];
  pulled_rows<T> made{payload<std::int64_t, device_space>(there, "rows of all ranks", items),
                      payload<T, device_space>(there, "values of all ranks", items, width)};
  if (items == 0) {
    meanwhile(made.rows);
    return made;
  }
  const auto to = make_ref(made.values);
  const std::byte* lowest = nullptr;
  bool wide = in_wide_units(to);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (met.counts[r * ranks + static_cast<std::size_t>(rank)] == 0) continue;
    const batch_offer& each = met.offers[r];
    if (lowest == nullptr || each.values < lowest) lowest = each.values;
    constexpr std::size_t widest = sizeof(kernels::opaque16);
    wide = wide && reinterpret_cast<std::uintptr_t>(each.values) % widest == 0 &&
           each.value_step % static_cast<std::int64_t>(widest) == 0;
  }
  launch_context<Exec> of(there, verb);
  auto* const from = of.template scratch<std::int64_t>(items);
  auto join =
      lists_for(rank, met.offers, met.counts, lowest, wide ? sizeof(kernels::opaque16) : sizeof(unit_of<T>));
  join.rows = made.rows.data();
  join.from = from;
  launch(there, of.label("pull", "lists"), items, join);
  const auto pull_by = [&](const Exec& exec) {
    using kernel = kernels::pull_units<unit_of<T>>;
    const auto units = in_units(to, wide);
    const std::int64_t count = items * units.width;
    const std::int64_t threads = std::min(count, kernel::most_iterations);
    launch(exec, of.label("pull"), threads,
           kernel{lowest, units.data, from, fast_divisor(units.width), count, threads, wide});
  };
  if constexpr (is_host_exec<Exec> || std::is_same_v<Meanwhile, nothing_meanwhile>) {
    pull_by(there);
    meanwhile(made.rows);
  } else {
    // What runs meanwhile is enqueued first, because the pull leaves room on each multiprocessor.
    const Exec& aside = of.side_stream();
    if (const event_handle joined = of.mark(); joined != nullptr) backend::wait_for(aside, *joined);
    meanwhile(made.rows);
    pull_by(aside);
    if (const event_handle pulled = of.mark(aside); pulled != nullptr) backend::wait_for(there, *pulled);
  }
  of.finish().drop();
  return made;
}

}  // namespace ferry::detail
