// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/memory/detail/function_ref.hpp>

namespace ferry::detail {

/// Refuses a child process, whose ranks would speak in the place of its parent's.
void require_own_ranks(const transport& group);

/// See communicator::rank.
[[nodiscard]] int acting_rank(const transport& group);

/// Calls function(rank) on one thread for each rank of this process; see communicator::run.
void run_ranks(transport& group, function_ref<void(int)> function);

}  // namespace ferry::detail
