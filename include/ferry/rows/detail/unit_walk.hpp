// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// How the threads of a team walk over rows of some units: a division for each thread, none for each unit.
/// Rows of a thread lie `rows` apart.
struct unit_walk {
  int rows;           ///< that the team begins at once
  int row = 0;        ///< that of the thread among these; -1: it has none
  std::int64_t unit;  ///< the first one of the thread

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION unit_walk(const Team& team, std::int64_t units)
      : rows(rows_at_once(team.team_size(), units)), unit(team.team_rank()) {
    if (units >= team.team_size()) return;
    const auto width = static_cast<int>(units);
    row = team.team_rank() / width;
    unit = team.team_rank() - row * width;
    if (row >= rows) row = -1;
  }
  KOKKOS_FORCEINLINE_FUNCTION static int rows_at_once(int threads, std::int64_t units) {
    return units < threads ? threads / static_cast<int>(units) : 1;
  }
};

}  // namespace ferry::kernels
