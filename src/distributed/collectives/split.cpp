// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/collectives/data_parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace ferry {

std::pair<std::int64_t, std::int64_t> split_range(std::int64_t rows, int rank, int ranks) {
  const std::int64_t most = rows / ranks + (rows % ranks != 0 ? 1 : 0);
  // rank * most may exceed 2^63 - 1 only if rank * most >= rows.
  const std::int64_t first = most == 0 || rank > rows / most ? rows : std::min(rows, rank * most);
  return {first, rows - first < most ? rows : first + most};
}

}  // namespace ferry
