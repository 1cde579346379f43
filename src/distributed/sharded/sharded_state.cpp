// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/sharded_state.hpp>

#include <ferry/error.hpp>

#include <string>

namespace ferry::detail {

std::int64_t equal_steps(std::string_view verb, int first, int last,
                         function_ref<std::int64_t(int)> steps_of) {
  const std::int64_t count = steps_of(first);
  for (int rank = first + 1; rank < last; ++rank)
    if (const std::int64_t steps = steps_of(rank); steps != count)
      throw invalid_argument("ferry::" + std::string(verb) + ": the shard of rank " + std::to_string(first) +
                             " of the state counts " + std::to_string(count) + " steps and that of rank " +
                             std::to_string(rank) + " counts " + std::to_string(steps) +
                             ": a step of some shards has failed; load a checkpoint, or call set_steps");
  return count;
}

}  // namespace ferry::detail
