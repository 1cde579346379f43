// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/statistics.hpp>

#include <string>
#include <vector>

namespace ferry {

/// The memory that ferry holds in all spaces, see memory_report.
struct memory_holdings {
  /// One memory space.
  struct space {
    std::string name;  ///< of the memory space, for a device other than Kokkos' with " of device <number>"
    space_statistics all;                  ///< as memory_statistics
    std::vector<label_statistics> labels;  ///< as memory_by_label, the largest first
  };
  std::vector<space> spaces;  ///< that ferry has held memory of, by name

  /// The holdings as a table for people: a line for each space and each label, with the bytes now, the peak
  /// and the number of live allocations.
  [[nodiscard]] std::string text() const;
};

/// Reports the memory that ferry holds in each space and for each label, from the first allocation until
/// Kokkos::finalize; also spaces of the user. Thread-safe; the numbers of one space belong together, but
/// other threads may allocate while the next space is read.
///
///   std::puts(ferry::memory_report().text().c_str());
[[nodiscard]] memory_holdings memory_report();

}  // namespace ferry
