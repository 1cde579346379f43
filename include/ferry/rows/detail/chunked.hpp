// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// The words of a split cursor that a kernel sees, in page-locked memory. The kernel walks a list from the
/// front, and the host from the back. Both may take an item near the split, and both write the same result.
struct split_state {
  volatile std::int64_t* progress = nullptr;     ///< [teams] end of the chunk that a team works on
  const volatile std::int64_t* limit = nullptr;  ///< items from here on are the host's; null: no host part
};

/// A kernel of items x per_item work items, run in the order of the items by a small number of teams.
///
/// Device mapping: a team takes a chunk of neighbouring items, and its threads stride over the chunk's work
/// items. Without a chunk size each team has one chunk. Each team reads few pages at a time, so all teams
/// together stay within the device's TLB reach.
template <class Exec, class Flat>
struct team_chunked {
  using member = typename Kokkos::TeamPolicy<Exec>::member_type;

  Flat flat;
  std::int64_t items;         ///< upper bound
  const std::int64_t* count;  ///< the number of items, if only the device knows it
  std::int64_t per_item;
  std::int64_t chunk;  ///< items; 0: all items, divided evenly among the teams
  split_state split;

  KOKKOS_FUNCTION void operator()(const member& team) const {
    const std::int64_t total = count == nullptr || items < *count ? items : *count;
    const std::int64_t teams = team.league_size();
    const std::int64_t size = chunk > 0 ? chunk : (total + teams - 1) / teams;
    const bool shared = split.limit != nullptr;
    std::int64_t limit = total;
    for (std::int64_t begin = team.league_rank() * size; begin < limit; begin += teams * size) {
      const std::int64_t end = begin + size < total ? begin + size : total;
      std::int64_t latest = limit;
      // Read early and used after the chunk: the value takes microseconds over the link.
      if (shared && team.team_rank() == 0) {
        split.progress[team.league_rank()] = end;
        latest = *split.limit;
      }
      for (std::int64_t i = begin * per_item + team.team_rank(); i < end * per_item; i += team.team_size())
        flat(i);
      if (shared) {
        team.team_broadcast(latest, 0);  // all threads of a team must decide alike
        if (latest < limit) limit = latest;
      }
    }
  }
};

/// Contiguous chunks without a split cursor, walked by single threads. No team has to synchronise, and Kokkos
/// allocates no scratch memory for a range.
///
/// Device mapping: `threads` threads in all. Each group of `size` neighbouring threads shares one contiguous
/// piece of the items.
template <class Flat>
struct range_chunked {
  static constexpr unsigned int most_threads = 512;  ///< per block, see launch

  Flat flat;
  std::int64_t items;         ///< upper bound
  const std::int64_t* count;  ///< the number of items, if only the device knows it
  std::int64_t per_item;
  std::int64_t pieces;
  std::int64_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t total = count == nullptr || items < *count ? items : *count;
    const std::int64_t piece = t / size;
    const std::int64_t share = (total + pieces - 1) / pieces;
    const std::int64_t begin = piece * share;
    const std::int64_t end = begin + share < total ? begin + share : total;
    for (std::int64_t i = begin * per_item + (t - piece * size); i < end * per_item; i += size) flat(i);
  }
};

}  // namespace ferry::kernels
