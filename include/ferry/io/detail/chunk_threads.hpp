// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>

namespace ferry::detail {

/// Number of threads for the chunks of a checkpoint.
int chunk_threads();

/// `most` threads that end with the call. They are not those of the worker pool: a save in the background may
/// outlive Kokkos.
constexpr thread_choice threads_for_chunks(int most) { return {most, helper_threads::temporary}; }

}  // namespace ferry::detail
