// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/runtime/detail/work_queue.hpp>

#include <cstdint>

namespace ferry::detail {

/// Who helps the calling thread of parallel().
enum class helper_threads {
  pooled,        ///< threads of the worker pool
  temporary,     ///< threads that end with the call: it may outlive Kokkos
  beside_caller  ///< the same, on the processors of the calling thread: first touches place pages near them
};

/// The threads of a call of parallel().
struct thread_choice {
  int most;  ///< with the calling thread
  helper_threads helpers;
};

/// As many threads as the default host instance has, with helpers of the worker pool.
[[nodiscard]] thread_choice pooled_threads();

/// Shares [0, items) in pieces of `piece` items: calls worker(pieces, number) in the calling thread, as
/// number 0, and in helpers, each with a number of its own below `threads.most`. A worker takes pieces until
/// none is left; the calling thread must be able to take all of them, because helpers may be few or late.
/// After an error no further piece is given out. Returns when all workers have ended, and rethrows the first
/// error.
void parallel(std::int64_t items, std::int64_t piece, const thread_choice& threads,
              function_ref<void(front_queue& pieces, int number)> worker);

/// Calls work(first, count) for each piece by pooled_threads(), in any order.
void parallel(std::int64_t items, std::int64_t piece,
              function_ref<void(std::int64_t first, std::int64_t count)> work);

}  // namespace ferry::detail
