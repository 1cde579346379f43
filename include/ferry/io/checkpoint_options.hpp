// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/library.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace ferry::io {

/// Options of a checkpoint.
struct checkpoint_options {
  /// Generations that the folder keeps, >= 1: a save removes all but the newest ones, after its own is on the
  /// disk. Named checkpoints do not count, and stay.
  int keep = 1;
};

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

/// Options of checkpoint::load.
struct load_options {
  /// Converts floating-point elements if the file has another type than the array: f64, f32, f16, bf16 and
  /// those of 8 bits into each other, rounded to nearest. Without it another type is an error.
  bool convert = false;
  /// Ignores entries of the file that were not added. Without it they are an error, since training would go
  /// on without them. Every entry that was added must be in the file in any case.
  bool partial = false;
  /// The generation to load, one of checkpoint::generations(). 0: the newest.
  std::uint64_t generation = 0;
  /// The named checkpoint to load, see save_options::name. Empty: a generation.
  std::string name = {};
};

}  // namespace ferry::io
