// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "heap/heap.hpp"

#include <ferry/ferry.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <new>

namespace ferry_test {

/// With empty pools a verb allocates all that it ever may.
inline void start_anew() { ferry::detail::engine::release<Kokkos::DefaultExecutionSpace>(); }

struct outcome {
  bool thrown;  ///< bad_alloc
  bool failed;  ///< whether there was a k-th allocation
};

/// Makes a call whose k-th allocation fails.
template <class Call>
outcome call_without_allocation(std::int64_t k, const Call& call) {
  bool thrown = false;
  fail_allocation(k);
  try {
    call();
  } catch (const std::bad_alloc&) {
    thrown = true;
  } catch (const ferry::bad_alloc&) {
    thrown = true;
  }
  return {thrown, fail_allocation(0)};
}

/// Lets the k-th allocation of `call(world)` fail, for k = 1, 2, ... until it has no k-th. Each time the call
/// either throws and leaves everything as it was, or does all of its work; tried again it then does all of it.
/// World has contents(): every number that a verb may change.
template <class World, class Call>
int survive_every_failure(const char* label, const Call& call) {
  World never_failed;
  const auto before = never_failed.contents();
  call(never_failed);
  const auto expected = never_failed.contents();
  int failures = 0;
  for (std::int64_t k = 1;; ++k) {
    World kit;
    start_anew();
    const auto [thrown, failed] = call_without_allocation(k, [&] { call(kit); });
    INFO(label << ", allocation " << k);
    if (thrown) {
      REQUIRE(failed);
      REQUIRE(kit.contents() == before);
      call(kit);
    }
    REQUIRE(kit.contents() == expected);
    if (!failed) return failures;
    ++failures;
  }
}

}  // namespace ferry_test
