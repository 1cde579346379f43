// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>

/// Verbs that write as one, on the shards of a table for example: all take their memory before one writes.
namespace ferry::detail {

/// Calls verb(i) for each i in [first, last). Each call but the first begins within the one before it, when
/// that one has taken its memory. So a call that lacks memory ends all of them before the first write.
void write_jointly(int first, int last, function_ref<void(int)> verb);

/// A verb calls this when it has taken its memory and before it writes: the calls that write jointly with it
/// begin here. Does nothing else.
void before_writing();

}  // namespace ferry::detail
