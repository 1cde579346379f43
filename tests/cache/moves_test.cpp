// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/cache/verbs.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/optim/step.hpp>

#include <boost/hana/for_each.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>

namespace ferry_test::moves_test {

// gather, scatter and scatter_add on cached tables of any element type.

struct triple {
  float x;
  std::int32_t a, b;
};

template <class T>
std::vector<T> any_values(std::mt19937_64& random, std::size_t count) {
  if constexpr (std::is_same_v<T, triple>) {
    std::vector<T> result(count);
    for (auto& entry : result)
      entry = {0.5f * static_cast<float>(random() % 100), static_cast<int>(random() % 9), -3};
    return result;
  } else {
    return values<T>(random, count);
  }
}

template <class T, class Space>
void random_verbs(std::size_t rows, std::size_t width, std::size_t cached, int refresh, std::uint64_t salt) {
  CAPTURE(rows, width, cached, refresh);
  auto random = generator(salt);
  const exec_space exec;
  const auto start = any_values<T>(random, rows * width);
  auto table = make<Space>("table", rows, width, start);
  auto twin = make<Space>("twin", rows, width, start);
  {
    ferry::cached_table hot(table, ferry::cache::frequency{.rows = cached, .refresh = refresh});
    // A refresh in parts takes some calls, which change rows that leave and rows that enter.
    const int calls = refresh < 4 ? 24 : 60;
    for (int call = 0; call < calls; ++call) {
      CAPTURE(call);
      const std::size_t n = random() % 90;
      const std::size_t begin = static_cast<std::size_t>(call * 3 / calls) * rows / 3;
      const auto ids = skewed<std::int32_t>(random, n, rows, begin, rows / 10 + 1);
      const auto input = any_values<T>(random, n * width);
      auto batch = make<ferry::device_space>("batch", n, width, input);
      auto second = make<ferry::device_space>("other", n, width, input);
      const auto plan = ferry::make_plan(exec, ids, rows);
      switch (random() % 6) {
        case 0:
          ferry::gather(exec, hot, ids, batch).wait();
          ferry::gather(exec, twin, ids, second).wait();
          CHECK(same_bits(take(batch), take(second)));
          break;
        case 1:
          ferry::gather(exec, hot, plan, batch).wait();
          ferry::gather(exec, twin, plan, second).wait();
          CHECK(same_bits(take(batch), take(second)));
          break;
        case 2:
          ferry::scatter(exec, hot, ids, batch).wait();
          ferry::scatter(exec, twin, ids, batch).wait();
          break;
        case 3:
          ferry::scatter(exec, hot, plan, batch, ferry::duplicates::first{}).wait();
          ferry::scatter(exec, twin, plan, batch, ferry::duplicates::first{}).wait();
          break;
        case 4: {
          const std::size_t few = std::min(n, rows);
          const auto few_ids = unique_indices<std::uint64_t>(random, few, rows);
          auto some = make<ferry::device_space>("some", few, width, any_values<T>(random, few * width));
          ferry::scatter(exec, hot, few_ids, some, ferry::duplicates::assume_unique{}).wait();
          ferry::scatter(exec, twin, few_ids, some, ferry::duplicates::assume_unique{}).wait();
          break;
        }
        default:
          if constexpr (ferry::NumberElement<T>) {
            ferry::scatter_add(exec, hot, ids, batch).wait();
            ferry::scatter_add(exec, twin, ids, batch).wait();
          }
      }
      if (call % 7 == 3 && (refresh < 4 || call > calls / 2)) {
        hot.flush(exec).wait();
        CHECK(same_bits(take(table), take(twin)));
      }
    }
    const auto counted = hot.statistics();
    if (cached == 0) CHECK(counted.hits == 0);
    if (cached > 0) CHECK(counted.hits > 0);
  }
  CHECK(same_bits(take(table), take(twin)));  // the cache wrote its changes when it ended
}

TEST_CASE("random verbs on cached tables give the bits of tables without a cache", "[cache][moves]") {
  namespace hana = boost::hana;
  constexpr auto elements = hana::tuple_t<float, ferry::half_t, std::int8_t, std::int64_t, triple>;
  std::uint64_t salt = 0;
  hana::for_each(elements, [&](auto element) {
    using T = typename decltype(element)::type;
    const std::size_t width = 1 + salt * 5 % 37;
    for (const std::size_t cached : cache_sizes(217)) {
      random_verbs<T, ferry::mapped_space>(217, width, cached, 1, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width + 3, cached, 3, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width, cached, 8, ++salt);
      random_verbs<T, ferry::mapped_space>(217, width, cached, 5, ++salt);
    }
  });
  for (const std::size_t width : {1, 4, 16, 33, 128})
    random_verbs<float, ferry::pinned_space>(1030, width, 100, 2, ++salt);
  random_verbs<float, ferry::mapped_space>(1, 8, 1, 1, ++salt);
}

TEMPLATE_TEST_CASE("gathers from rows that are not counted find hits and misses", "[cache][moves]",
                   std::uint8_t, float, double) {
  std::uint64_t salt = 3300;
  for (const std::size_t width : {1, 3, 31, 32, 33, 64, 65}) {
    CAPTURE(width);
    auto random = generator(++salt);
    const exec_space exec;
    const std::size_t rows = 700, cached = 90;
    const auto start = any_values<TestType>(random, rows * width);
    auto table = make<ferry::mapped_space>("table", rows, width, start);
    auto twin = make<ferry::mapped_space>("twin", rows, width, start);
    ferry::cached_table hot(table, ferry::cache::first{cached});
    std::uint64_t hits = 0, misses = 0;
    for (const std::size_t n : {1, 15, 16, 17, 255, 256, 257, 1000}) {
      CAPTURE(n);
      std::vector<std::int64_t> ids(n);
      for (auto& row : ids) {
        row = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? cached : rows + 20));
        if (random() % 30 == 0) row = -1;
        if (row >= 0 && row < static_cast<std::int64_t>(rows))
          ++(row < static_cast<std::int64_t>(cached) ? hits : misses);
      }
      const auto input = any_values<TestType>(random, n * width);
      auto batch = make<ferry::device_space>("batch", n, width, input);
      auto second = make<ferry::device_space>("other", n, width, input);
      ferry::gather(exec, hot, ids, batch, ferry::bounds::skip{}).wait();
      ferry::gather(exec, twin, ids, second, ferry::bounds::skip{}).wait();
      CHECK(same_bits(take(batch), take(second)));
      CHECK(hot.statistics().hits == hits);
      CHECK(hot.statistics().misses == misses);
    }
    std::vector<std::int32_t> bad{5, 700, 3};
    auto batch = make<ferry::device_space>("batch", 3, width, any_values<TestType>(random, 3 * width));
    CHECK_THROWS_AS(ferry::gather(exec, hot, bad, batch).wait(), ferry::out_of_range);
  }
}

// Exchanges under way while verbs run: nothing waits on the host, instances alternate, and the cache ends or
// changes its size in the middle.

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

/// Batches whose popular rows drift, so that each refresh moves many rows.
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

TEST_CASE("training without waits gives the bits of a table without a cache", "[cache][exchange]") {
  std::uint64_t salt = 6000;
  for (const int refresh : {4, 8, 24}) {
    trains_alike(300, refresh, ++salt);
    trains_alike(rows, refresh, ++salt);
  }
}

TEST_CASE("caches end at any point of a refresh", "[cache][exchange]") {
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

TEST_CASE("a state that comes or goes during a refresh", "[cache][exchange]") {
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

// Rows of elements of one and two bytes whose width is no multiple of a packet, in slots and in host memory.

namespace odd_rows {

constexpr std::size_t rows = 400;

/// A gather from a cached table has the bytes of the table's rows; `shift` elements lie before the batch.
template <class T>
void compare(std::size_t width, std::size_t shift, std::int64_t refresh) {
  CAPTURE(width, shift, refresh);
  auto random = generator(5200 + width + shift);
  const exec_space exec;
  std::vector<T> start(rows * width);
  for (auto& element : start) element = static_cast<T>(static_cast<float>(1 + random() % 100));
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 60, .refresh = refresh});
  for (int turn = 0; turn < 5; ++turn) {
    const auto ids = skewed<std::int64_t>(random, 150, rows, 0, 50);
    std::vector<T> expected;
    for (const auto row : ids) {
      const auto begin = start.begin() + row * static_cast<std::ptrdiff_t>(width);
      expected.insert(expected.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    const std::size_t size = ids.size() * width;
    const std::vector<T> poison(size + shift, static_cast<T>(0.0f));
    auto memory = make<ferry::device_space>("memory", 1, size + shift, poison);
    const ferry::tensor_view<T, ferry::device_space> batch(memory.data() + shift, ids.size(), width);
    const auto check = [&](const char* way) {
      CAPTURE(way, turn);
      const auto read = take(memory);
      REQUIRE(
          same_bits(std::vector<T>(read.begin() + static_cast<std::ptrdiff_t>(shift), read.end()), expected));
      put(memory, poison);
    };
    ferry::gather(exec, hot, ids, batch).wait();
    check("indices");
    ferry::gather(exec, hot, ferry::make_plan(exec, ids, rows), batch).wait();
    check("a plan");
    ferry::gather(exec, hot, ids, batch, ferry::path::ordered{}).wait();
    check("ordered");
    ferry::gather_unique(exec, hot, ids, batch).wait();
    check("unique");
  }
}

template <class T>
void compare_widths() {
  for (const std::size_t width : {33u, 65u, 130u, 300u})
    for (const std::size_t shift : {0u, 1u})
      for (const std::int64_t refresh : {3, 64}) compare<T>(width, shift, refresh);
}

TEMPLATE_TEST_CASE("rows of odd widths come out of both memories of a cache", "[cache][gather][width]",
                   ferry::half_t, std::uint8_t) {
  compare_widths<TestType>();
}

}  // namespace odd_rows

}  // namespace ferry_test::moves_test
