// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ferry {

/// The transfers of verbs from one memory space to another by one path. A gather moves from the table to the
/// batch; scatter, scatter_add and step move from the values or gradients to the table.
struct transfer_count {
  std::string_view from;    ///< name of the memory space; "other" for spaces of the user
  std::string_view to;      ///< likewise
  std::string_view path;    ///< "direct", "ordered", "staged", "cooperative"; "other" for path::peer
  std::uint64_t calls = 0;  ///< calls of verbs that moved something
  /// Bytes of the rows or elements of the calls, in the type of the source: a row that is given
  /// twice counts twice, and so does a position that bounds::skip leaves out. Rows that a step reads and
  /// writes in place, and its state, are not counted.
  std::uint64_t bytes = 0;
  /// The part of `bytes` that kernels of a device read or wrote in host memory themselves, over the link.
  std::uint64_t zero_copy_bytes = 0;
};

/// The transfers of this program's verbs since the start or reset_transfer_statistics, without the pairs
/// of spaces that nothing moved between. Calls count when they return, also those that are still in flight;
/// a verb that was captured into a graph counts once. Counting costs a call three additions and is always
/// on. Thread-safe.
[[nodiscard]] std::vector<transfer_count> transfer_statistics();

/// Sets all counts to zero. Calls in other threads may be counted in part.
void reset_transfer_statistics();

}  // namespace ferry
