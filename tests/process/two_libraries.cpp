// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "opened_library.hpp"

#include <cstddef>
#include <optional>

/// A program without ferry that opens two libraries over it, each for itself, as Python opens its extension modules: they
/// share statistics, budgets, the engine and the profile, also after one of them is closed.
int main(int, char** argv) {
  const opened_library first(argv[1]);
  std::optional<opened_library> second(argv[2]);
  const auto *one = first.functions, *two = second->functions;
  if (one == nullptr || two == nullptr || one == two) return 2;
  one->start();
  two->start();
  two->gather();  // makes the engine
  const std::size_t before = one->bytes();
  one->hold("of one", 36096);
  two->hold("of two", 64000);
  FERRY_TEST_CHECK(one->bytes() == before + 36096 + 64000);
  FERRY_TEST_CHECK(two->bytes() == one->bytes());
  FERRY_TEST_CHECK(one->bytes_of("of two") == 64000);
  FERRY_TEST_CHECK(two->bytes_of("of one") == 36096);
  one->set_budget(two->bytes() + 1000);
  FERRY_TEST_CHECK(two->budget() == two->bytes() + 1000);
  FERRY_TEST_CHECK(!two->fits(1001));
  FERRY_TEST_CHECK(two->fits(1000));
  FERRY_TEST_CHECK(one->engine() == two->engine());
  one->set_call_us(3.25);
  FERRY_TEST_CHECK(two->call_us() == 3.25);
  one->release();
  FERRY_TEST_CHECK(two->bytes() == before + 64000);
  two->release();
  one->set_budget(0);
  second.reset();
  one->gather();
  FERRY_TEST_CHECK(one->moves() == 2);
  one->finish();
  return failures == 0 ? 0 : 1;
}
