// SPDX-License-Identifier: Apache-2.0
#include <ferry/cache/detail/make_cache.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/memory/spaces.hpp>
#include <ferry/rows/init.hpp>
#include <ferry/runtime/detail/transfer.hpp>

#include <Kokkos_Core.hpp>

#include <cstdio>
#include <exception>

namespace ferry::detail {

void open_book(cache_memory& memory, const std::vector<std::int64_t>& rows) {
  const Kokkos::DefaultExecutionSpace exec;
  fill(exec, make_ref(memory.words), std::uint64_t{0});
  if (rows.empty() || memory.slots == 0) return;
  launch_context<Kokkos::DefaultExecutionSpace> call(exec, "cached_table");
  auto* buffer = call.pinned<std::int64_t>(memory.slots);
  for (std::int64_t slot = 0; slot < memory.slots; ++slot) {  // row + 1 for each slot, 0 for none
    const auto i = static_cast<std::size_t>(slot);
    buffer[slot] = i < rows.size() ? rows[i] + 1 : 0;
  }
  call.writes_to(tracked(memory.words.accesses()));
  transfer(exec, "ferry::cached_table", memory.book.next_rows, device_space::name, buffer, pinned_space::name,
           memory.slots * static_cast<std::int64_t>(sizeof(std::int64_t)));
  call.finish().join();
}

void fill_cache(row_cache& cache, const std::vector<std::int64_t>& rows) {
  if (rows.empty()) return;
  launch_context<Kokkos::DefaultExecutionSpace> call(Kokkos::DefaultExecutionSpace{}, "cached_table");
  use_slots(call, cache, true);
  exchange_now(call, cache);
  call.finish().join();
}

std::size_t cached_slots(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  return static_cast<std::size_t>(cache.memory.slots);
}

std::size_t cache_bytes(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  std::size_t bytes =
      cache.memory.words.size() * sizeof(std::uint64_t) + cache.counts.size() * sizeof(std::uint32_t);
  for (const cached_array& array : cache.arrays) bytes += array.memory.size();
  return bytes;
}

std::array<std::uint64_t, 4> read_tallies(const row_cache& cache) {
  constexpr std::size_t spread = std::size_t{2} * tally_room;
  std::array<std::uint64_t, spread + 2> words{};
  cache.accesses()->wait_for_all();
  execution_backend<Kokkos::DefaultExecutionSpace>::read(words.data(), cache.memory.book.tallies,
                                                         sizeof words);
  std::array<std::uint64_t, 4> sums{};
  for (std::size_t i = 0; i < spread; ++i) sums[i / tally_room] += words[i];
  sums[2] = words[spread];
  sums[3] = words[spread + 1];
  return sums;
}

cache::statistics read_statistics(row_cache& cache) {
  const std::lock_guard lock(cache.guard);
  auto sums = read_tallies(cache);
  for (std::size_t s = 0; s < sums.size(); ++s) sums[s] += cache.earlier[s];
  const auto row = static_cast<std::uint64_t>(cache.row_bytes);
  return {sums[0], sums[1], sums[0] * row, cache.refreshes, sums[2], static_cast<double>(sums[3]) * 1e-9};
}

void end_cache(row_cache& cache) noexcept {
  try {
    if (!Kokkos::is_initialized()) {
      if (cache.changed || cache.captured)
        std::fprintf(
            stderr,
            "ferry: the cached_table of '%s' was destroyed after Kokkos::finalize; changes that were "
            "not flushed are lost\n",
            cache.label.c_str());
    } else {
      const bool whole = !cache.arrays.front().accesses.expired();
      if (whole && (cache.changed || cache.captured))
        flush_cache(Kokkos::DefaultExecutionSpace{}, cache).join();
      cache.accesses()->wait_for_all();
      if (cache.exchange.completion != nullptr) cache.exchange.completion->wait();
    }
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: the cached_table of '%s' could not write its changes: %s\n",
                 cache.label.c_str(), lost.what());
  }
  for (const cached_array& array : cache.arrays)
    if (const auto alive = array.accesses.lock()) alive->detach_cache();
}

}  // namespace ferry::detail
