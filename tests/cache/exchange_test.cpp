// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/catch_up.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/step.hpp>

#include <chrono>
#include <memory>
#include <utility>

/// Exchanges under way while verbs run: nothing waits on the host, instances alternate, and the cache ends or
/// changes its size in the middle.
namespace ferry_test::exchange_test {

namespace {

constexpr std::size_t rows = 3000, width = 24, n = 400;
const ferry::optim::adam rule{.lr = 0.02};

struct batch {
  ferry::row_plan plan;
  ferry::tensor<float, ferry::device_space> grads, mine, twin_out;
};

std::vector<exec_space> two_instances(const exec_space& exec) {
  // A host's pool of one thread can't be shared out.
  const bool is_shared_out = !ferry::HostExecutionSpace<exec_space> || exec.concurrency() > 1;
  return is_shared_out ? Kokkos::Experimental::partition_space(exec, std::vector<int>(2, 1))
                       : std::vector<exec_space>(2, exec);
}

/// Batches whose popular rows drift, so that each exchange moves many rows.
std::vector<batch> drifting(std::mt19937_64& random, const exec_space& exec, int count) {
  std::vector<batch> result;
  for (int b = 0; b < count; ++b) {
    const auto ids = skewed<std::int32_t>(random, n, rows, static_cast<std::size_t>(b) * 40, 150);
    result.push_back({ferry::make_plan(exec, ids, rows),
                      make<ferry::device_space>("grads", n, width, values<float>(random, n * width)),
                      make<ferry::device_space>("mine", n, width, std::vector<float>(n * width, -1.0f)),
                      make<ferry::device_space>("its", n, width, std::vector<float>(n * width, -2.0f))});
  }
  exec.fence("batches");
  return result;
}

void trains_alike(std::size_t cached, int refresh, std::uint64_t salt) {
  CAPTURE(cached, refresh);
  auto random = generator(salt);
  const exec_space exec;
  const auto instances = two_instances(exec);
  auto batches = drifting(random, exec, 70);
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  auto twin_state = ferry::optim::make_state(rule, twin);
  {
    const auto begun = std::chrono::steady_clock::now();
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = refresh});
    CHECK(hot.statistics().refresh_seconds == 0.0);
    for (std::size_t b = 0; b < batches.size(); ++b) {
      const auto& instance = instances[b / 3 % 2];
      auto& turn = batches[b];
      ferry::gather(instance, hot, turn.plan, turn.mine).detach();
      ferry::step(instance, rule, hot, state, turn.plan, turn.grads).detach();
      if (b % 17 == 16) hot.flush(instances[b % 2]).detach();
      if (b == 41) {
        const double before = hot.statistics().refresh_seconds;
        hot.resize(cached / 2);
        CHECK(hot.statistics().refresh_seconds >= before);
      }
    }
    const auto counted = hot.statistics();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    CHECK(counted.refreshes > 4);
    CHECK(counted.hits > 0);
    CHECK(counted.refresh_seconds > 0.0);
    const double instances_at_once = ferry::HostExecutionSpace<exec_space> ? 1.0 : 2.0;
    CHECK(counted.refresh_seconds < instances_at_once * passed.count());
  }
  for (auto& turn : batches) {
    ferry::gather(exec, twin, turn.plan, turn.twin_out).detach();
    ferry::step(exec, rule, twin, twin_state, turn.plan, turn.grads).detach();
  }
  exec.fence("twin");
  for (std::size_t b = 0; b < batches.size(); ++b) {
    CAPTURE(b);
    REQUIRE(same_bits(take(batches[b].mine), take(batches[b].twin_out)));
  }
  CHECK(same_bits(take(table), take(twin)));
  for (int f = 0; f < state.fields(); ++f) CHECK(same_bits(take(state.field(f)), take(twin_state.field(f))));
}

}  // namespace

TEST_CASE("training without waits gives the bits of a table without a cache", "[cache][exchange]") {
  std::uint64_t salt = 6000;
  for (const int refresh : {4, 8, 24}) {
    trains_alike(300, refresh, ++salt);
    trains_alike(rows, refresh, ++salt);
  }
}

TEST_CASE("caches end at any point of an exchange", "[cache][exchange]") {
  const exec_space exec;
  for (int last = 1; last < 28; ++last) {
    CAPTURE(last);
    auto random = generator(6100 + static_cast<std::uint64_t>(last));
    auto batches = drifting(random, exec, last);
    auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "table", rows, width);
    auto twin = ferry::optim::make_records<float, ferry::mapped_space>(rule, "twin", rows, width);
    {
      ferry::cached_table hot(records, ferry::cache::frequency{.rows = 200, .refresh = 12});
      for (std::size_t b = 0; b < batches.size(); ++b) {
        if (last % 3 != 0 || b > 9)
          ferry::step(exec, rule, hot, batches[b].plan, batches[b].grads).detach();
        else
          ferry::gather(exec, hot, batches[b].plan, batches[b].mine).detach();
      }
      if (last % 2 == 0) {
        const auto moved = std::move(hot);
        CHECK(moved.rows() == rows);
      }
    }
    for (std::size_t b = 0; b < batches.size(); ++b)
      if (last % 3 != 0 || b > 9) ferry::step(exec, rule, twin, batches[b].plan, batches[b].grads).wait();
    CHECK(same_bits(take(records.bytes()), take(twin.bytes())));
  }
}

TEST_CASE("a state that comes or goes during an exchange", "[cache][exchange]") {
  const exec_space exec;
  auto random = generator(6200);
  auto batches = drifting(random, exec, 60);
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  {
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = 250, .refresh = 8});
    auto state = ferry::optim::make_state(rule, hot);
    auto twin_state = ferry::optim::make_state(rule, twin);
    auto brief = std::make_unique<decltype(state)>(ferry::optim::make_state(rule, hot));
    auto brief_other = ferry::optim::make_state(rule, twin);
    for (std::size_t b = 0; b < batches.size(); ++b) {
      auto& turn = batches[b];
      ferry::step(exec, rule, hot, state, turn.plan, turn.grads).detach();
      ferry::step(exec, rule, twin, twin_state, turn.plan, turn.grads).detach();
      // It is first used, and destroyed, while rows are on their way.
      if (b >= 9 && b < 34) {
        ferry::step(exec, rule, hot, *brief, turn.plan, turn.grads).detach();
        ferry::step(exec, rule, twin, brief_other, turn.plan, turn.grads).detach();
      }
      if (b == 33) {
        hot.flush(exec).wait();
        CHECK(same_bits(take(brief->field(1)), take(brief_other.field(1))));
        brief.reset();
      }
    }
    hot.flush(exec).wait();
    CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
  }
  CHECK(same_bits(take(table), take(twin)));
}

}  // namespace ferry_test::exchange_test
