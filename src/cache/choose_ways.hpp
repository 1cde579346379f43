// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include "choose_rows.hpp"

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Chooses the rows of one set: the 32 with the highest scores among those that meet in it, as choose_rows
/// scores them, smaller row numbers first. Rows that stay keep their slots, the others get the free slots in
/// order.
///
/// One thread per set. Neighbouring threads read the counts of neighbouring rows.
struct choose_ways {
  static constexpr int ways = set_directory::ways;

  set_directory directory;
  const std::uint32_t* counts;
  cached_bonus bonus;
  std::int64_t* next_rows;
  std::int64_t rows;

  KOKKOS_FUNCTION void operator()(std::int64_t set) const {
    const std::int64_t sets = directory.sets.divisor();
    const std::uint32_t* tags = directory.tags + set * ways;
    std::uint64_t score[ways];  // in descending order
    std::uint32_t tag[ways];
    int entries = 0;
    const std::uint32_t late = bonus.late();
    for (std::int64_t row = set; row < rows; row += sets) {
      const auto tag_of_row = static_cast<std::uint32_t>(row / sets + 1);
      const std::uint32_t count = counts[row];
      if (entries == ways && row_score(count, true, bonus.more, late) <= score[ways - 1]) continue;
      bool cached = false;
      for (int w = 0; w < ways; ++w) cached = cached || tags[w] == tag_of_row;
      const std::uint64_t value = row_score(count, cached, bonus.more, late);
      if (value == 0 || (entries == ways && value <= score[ways - 1])) continue;
      int place = entries < ways ? entries++ : ways - 1;
      for (; place > 0 && score[place - 1] < value; --place) {
        score[place] = score[place - 1];
        tag[place] = tag[place - 1];
      }
      score[place] = value;
      tag[place] = tag_of_row;
    }
    const auto row_of = [&](std::uint32_t number) { return std::int64_t{number - 1} * sets + set + 1; };
    std::uint32_t stays = 0;  // one bit per chosen row
    std::int64_t* set_rows = next_rows + set * ways;
    for (int w = 0; w < ways; ++w) {
      set_rows[w] = 0;
      for (int f = 0; f < entries; ++f)
        if (tag[f] == tags[w] && tags[w] != 0) {
          set_rows[w] = row_of(tag[f]);
          stays |= std::uint32_t{1} << f;
        }
    }
    int way = 0;
    for (int f = 0; f < entries; ++f) {
      if ((stays >> f & 1u) != 0) continue;
      while (set_rows[way] != 0) ++way;
      set_rows[way] = row_of(tag[f]);
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Sets `wanted`: the row that each slot of a directory of sets is to hold.
template <class Exec>
void choose_ways(launch_context<Exec>& call, const row_cache& cache) {
  const cache_memory& memory = cache.memory;
  launch(call.exec(), call.label("cached", "choose"), memory.sets,
         kernels::choose_ways{{memory.book.directory, fast_divisor(memory.sets)},
                              cache.counts.data(),
                              bonus_of(cache),
                              memory.book.next_rows,
                              cache.rows});
}

}  // namespace ferry::detail
