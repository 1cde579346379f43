// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>

namespace ferry::kernels {

/// How far ahead a host's thread prefetches rows: random rows would otherwise be one cache miss after the
/// other. Only the first lines of a row are prefetched; the hardware prefetcher fetches the rest.
struct look_ahead {
  static constexpr std::int64_t line = 64;  // bytes
  static constexpr std::int64_t most_lines = 4;
  static constexpr std::int64_t lines_ahead = 16;

  /// Lines that are prefetched of a row of `row_bytes` bytes.
  KOKKOS_FUNCTION static std::int64_t lines(std::int64_t row_bytes) {
    const std::int64_t total = (row_bytes + line - 1) / line;
    return total < 1 ? 1 : total < most_lines ? total : most_lines;
  }
  /// The number of rows to prefetch ahead.
  KOKKOS_FUNCTION static std::int64_t rows(std::int64_t row_bytes) { return lines_ahead / lines(row_bytes); }

  /// Always inlined: GCC takes a function of nothing but prefetches for one without effects and removes calls
  /// of it.
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch([[maybe_unused]] const void* row,
                                                   [[maybe_unused]] std::int64_t row_bytes) {
    KOKKOS_IF_ON_HOST((const auto* line_begin = static_cast<const char*>(row); __builtin_prefetch(line_begin);
                       if (row_bytes > line) {
                         __builtin_prefetch(line_begin + line);
                         if (row_bytes > 2 * line) __builtin_prefetch(line_begin + 2 * line);
                         if (row_bytes > 3 * line) __builtin_prefetch(line_begin + 3 * line);
                       }))
  }
};

/// The first lines of a row in the memory of a device, which the second-level cache reads while a kernel
/// finds the positions of the row. Few, so that the cache holds those of all threads.
template <class Dependent>
struct device_lines {
  static constexpr std::int64_t line = 128, most = 1024;  // bytes

  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(const void* row, std::int64_t row_bytes) {
    const auto* const bytes = static_cast<const char*>(row);
    const std::int64_t end = row_bytes < most ? row_bytes : most;
    for (std::int64_t begin = 0; begin < end; begin += line)
      ferry::device_backend<Dependent>::prefetch(bytes + begin);
  }
};

}  // namespace ferry::kernels
