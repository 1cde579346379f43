// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ferry::io {

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
