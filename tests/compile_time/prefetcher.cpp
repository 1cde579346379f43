// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader.hpp>

#include <cstdint>
#include <vector>

void read(const Kokkos::DefaultExecutionSpace& exec, const ferry::tensor<float, ferry::mapped_space>& table,
          const std::vector<std::int64_t>& rows) {
  ferry::row_prefetcher batches(exec, table, ferry::samples_of(rows), {.batch = 512});
  while (auto batch = batches.next()) static_cast<void>(batch->gathered());
}
