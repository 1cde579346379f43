// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// This program's own operator new: it counts, and fails where a test wants it to.
namespace ferry_test {

/// Objects that this program has taken from the heap so far, in all threads.
std::int64_t heap_allocations();

/// The calling thread's allocation number `k`, counted from 1 on from now, throws std::bad_alloc; 0 disarms.
/// Returns whether the one that was armed before has failed.
bool fail_allocation(std::int64_t k);

/// As above, of all threads.
bool fail_allocation_anywhere(std::int64_t k);

}  // namespace ferry_test
