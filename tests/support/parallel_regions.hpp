// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry_test {

/// True if this program counts the parallel regions of OpenMP: with GCC's library, on a host backend.
[[nodiscard]] bool counts_parallel_regions();

/// The regions that this program has entered.
[[nodiscard]] int parallel_regions();

}  // namespace ferry_test
