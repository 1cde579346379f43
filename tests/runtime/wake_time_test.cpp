// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/captured_stderr.hpp"
#include "support/said.hpp"

#include <ferry/runtime/detail/wake_time.hpp>

#include <catch2/catch_test_macros.hpp>

namespace ferry_test::wake_time_test {

using ferry::detail::wake_time;

TEST_CASE("threads that are slow to wake get the advice that helps", "[wake]") {
  CHECK(wake_time{8, 16, true, 1e-5}.advice().empty());
  CHECK(wake_time{8, 4, false, 1e-5}.advice().empty());
  CHECK(has(wake_time{8, 4, false, 1e-3}.advice(), "OMP_NUM_THREADS=4"));
  CHECK(has(wake_time{8, 16, true, 1e-3}.advice(), "OMP_WAIT_POLICY=passive"));
  CHECK(
      wake_time{8, 16, false, 1e-3}.advice().empty());  // they sleep: the machine is busy, no variable helps
}

TEST_CASE("the time to wake the threads of a host is measured, and a hint comes once at most", "[wake]") {
  const wake_time wakes = ferry::detail::measure_wake_time();
  if (wakes.threads > 1) {
    CHECK(wakes.threads == ferry::detail::concurrency_of(Kokkos::DefaultHostExecutionSpace()));
    CHECK(wakes.processors > 0);
    CHECK(wakes.seconds > 0);
    CHECK(wakes.seconds < 10);
  } else {
    CHECK(wakes.seconds == 0);
  }
  ferry_test::captured_stderr output;
  for (int turn = 0; turn < 3; ++turn) ferry::detail::hint_at_slow_threads();
  CHECK(count_of(output.text(), "ferry: hint:") <= 1);
}

}  // namespace ferry_test::wake_time_test
