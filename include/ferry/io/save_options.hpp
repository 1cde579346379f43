// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace ferry::io {

/// Options of checkpoint::save and checkpoint::save_async.
struct save_options {
  /// Writes only what differs from the newest generation: rows, or neighbouring rows of 4 KiB, or whole
  /// pieces of 4 MiB if more than half of one differs. The folder keeps digests of 128 bits, which are
  /// compared: all arrays are read from memory, and nothing from old files. An array without digests is
  /// written whole. At most 64 data files remain: a save that finds as many moves what the smaller ones hold
  /// into its own.
  bool changes = false;
  /// save_async: the most bytes of host memory that hold a copy of the arrays while they are written. What
  /// does not fit is written before the call returns.
  std::size_t snapshot_bytes = std::numeric_limits<std::size_t>::max();
  /// A name of 1 to 100 letters, digits, '_', '-' and '.': saves a named checkpoint, which stays until the
  /// next save of this name and is no generation. Empty: the newest generation.
  std::string name = {};
};

}  // namespace ferry::io
