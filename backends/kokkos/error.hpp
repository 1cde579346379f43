// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <string>
#include <string_view>

namespace ferry::kokkos {

/// Facilities of devices that Kokkos does not abstract: all that the backend lacks. docs/backends.md has what
/// follows for verbs.
enum class facility {
  page_locking,   ///< of memory that exists: refused
  queue,          ///< of an instance, for other libraries: refused
  devices,        ///< other than the one that Kokkos uses: refused by its number
  captures,       ///< into graphs: verbs do not see them, and must not be captured
  shared_memory,  ///< between processes: ranks exchange rows by host memory
  grids,          ///< with a barrier for all blocks: a plan takes several launches
  instructions,   ///< for atomics and conversions: kernels take those of every device
  lanes,          ///< that exchange values: one thread has a row
  events,         ///< in queues: an instance waits for another one in the calling thread
  pitch,          ///< of copies: kernels and slots move rows at equal distances
  clocks          ///< of kernels: a cache's time of refreshes is 0
};

[[noreturn]] inline void refuse(std::string_view call, facility missing) {
  const char* const sentence =
      missing == facility::page_locking
          ? "can't page-lock memory that exists; copy it into a ferry::tensor in "
            "pinned_space, or adopt it as pageable_space"
          : "does not know the device's queue of an instance, which other libraries need";
  throw device_error(detail::joined(call, ": the backend of Kokkos alone ", sentence,
                                    " (docs/backends.md lists what it lacks)"));
}

}  // namespace ferry::kokkos
