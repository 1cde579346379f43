// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/library.hpp>

namespace ferry::io {

/// Options of a checkpoint.
struct checkpoint_options {
  /// Generations that the folder keeps, >= 1: a save removes all but the newest ones, after its own is on the
  /// disk. Named checkpoints do not count, and stay.
  int keep = 1;
};

}  // namespace ferry::io
