// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/copy.hpp>
#include <ferry/int8.hpp>

/// Cached tables of 8-bit rows.
namespace ferry_test::int8_test {

TEST_CASE("8-bit rows of a cached table have the bits of a table without a cache", "[cache][int8]") {
  const exec_space exec;
  const ferry::optim::rowwise_adagrad rule{.lr = 0.1};
  constexpr std::size_t rows = 130, n = 60;
  std::uint64_t salt = 500;
  for (const std::size_t width : {8, 21}) {
    for (const std::size_t cached : cache_sizes(rows)) {
      CAPTURE(width, cached);
      auto random = generator(++salt);
      ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", rows, width), twin("twin", rows, width);
      auto start = make<ferry::mapped_space>("start", rows, width, values<float>(random, rows * width));
      ferry::quantize(exec, start, table).wait();
      ferry::quantize(exec, start, twin).wait();
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = 2});
        auto state = ferry::optim::make_state(rule, hot);
        auto twin_state = ferry::optim::make_state(rule, twin);
        for (int call = 0; call < 10; ++call) {
          CAPTURE(call);
          const auto ids = skewed<std::int32_t>(random, n, rows, 10, 14);
          const auto plan = ferry::make_plan(exec, ids, rows);
          auto mine = make<ferry::device_space>("mine", n, width, values<float>(random, n * width));
          auto twin_out = make<ferry::device_space>("its", n, width, take(mine));
          ferry::scatter(exec, hot, plan, mine).wait();
          ferry::scatter(exec, twin, plan, twin_out).wait();
          ferry::scatter(exec, hot, ids, mine, ferry::duplicates::mean{}).wait();
          ferry::scatter(exec, twin, ids, twin_out, ferry::duplicates::mean{}).wait();
          ferry::step(exec, rule, hot, state, plan, mine).wait();
          ferry::step(exec, rule, twin, twin_state, plan, twin_out).wait();
          ferry::gather(exec, hot, ids, mine).wait();
          ferry::gather(exec, twin, ids, twin_out).wait();
          REQUIRE(same_bits(take(mine), take(twin_out)));
        }
        if (cached > 1) CHECK(hot.statistics().hits > 0);
        ferry::tensor<std::byte, ferry::pageable_space> records("records", rows, table.row_bytes());
        ferry::copy(exec, hot, records).wait();
        CHECK(take(records) == take(twin.records()));
      }
      CHECK(take(table.records()) == take(twin.records()));
    }
  }
}

}  // namespace ferry_test::int8_test
