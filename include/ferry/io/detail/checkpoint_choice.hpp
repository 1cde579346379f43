// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// The checkpoints of a folder: generations, which are numbered, and named ones.
namespace ferry::detail {

/// The checkpoint that a call reads.
struct checkpoint_choice {
  std::uint64_t generation = 0;  ///< 0: the newest
  std::string name = {};         ///< of a named checkpoint; empty: a generation
};

/// The place of a new checkpoint in its folder.
struct checkpoint_place {
  int keep = 1;           ///< generations that stay, the new one included
  std::string name = {};  ///< of a named checkpoint, which is no generation; empty: the newest generation
};

/// Throws invalid_argument for a name that is no part of a file's name. An empty one is fine.
void require_checkpoint_name(const char* verb, const std::string& name);

}  // namespace ferry::detail
