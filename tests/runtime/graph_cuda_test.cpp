// SPDX-License-Identifier: Apache-2.0
#include "support/graph_cuda.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/int8.hpp>

#include <catch2/generators/catch_generators.hpp>

/// Verbs on a stream that is being captured, and the launches of the graph that comes of it.
namespace ferry_test::graph_cuda_test {

constexpr std::size_t rows = 400, width = 20, n = 150;

struct operands {
  ferry::tensor<float, ferry::mapped_space> table{"table", rows, width};
  ferry::tensor<float, ferry::device_space> batch{"batch", n, width};
  ferry::tensor<std::int64_t, ferry::device_space> ids{"which", n};
};

TEST_CASE("a captured gather reads what lies there at each launch", "[graph]") {
  auto random = generator(81);
  const stream queue;
  operands arrays;
  put(arrays.table, values<float>(random, rows * width));
  put(arrays.ids, indices<std::int64_t>(random, n, rows));
  ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch)
      .wait();  // kernels are loaded before the capture
  ferry::ticket ticket;
  graph replayed(queue,
                 [&] { ticket = ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch); });
  for (int launch = 0; launch < 3; ++launch) {
    const auto content = values<float>(random, rows * width);
    const auto ids = indices<std::int64_t>(random, n, rows);
    put(arrays.table, content);
    put(arrays.ids, ids);
    put(arrays.batch, std::vector<float>(n * width, -1.0f));
    replayed.launch();
    ticket.wait();
    CHECK(same_bits(take(arrays.batch), gathered(content, width, ids, std::vector<float>(n * width))));
  }
}

TEST_CASE("a captured gather on the ordered path sorts at each launch", "[graph]") {
  auto random = generator(87);
  const stream queue;
  operands arrays;
  put(arrays.ids, indices<std::int64_t>(random, n, rows));
  ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch, ferry::path::ordered{}).wait();
  ferry::ticket ticket;
  graph replayed(queue, [&] {
    ticket = ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch, ferry::path::ordered{});
  });
  for (int launch = 0; launch < 3; ++launch) {
    const auto content = values<float>(random, rows * width);
    const auto ids = indices<std::int64_t>(random, n, rows);
    put(arrays.table, content);
    put(arrays.ids, ids);
    replayed.launch();
    ticket.wait();
    CHECK(same_bits(take(arrays.batch), gathered(content, width, ids, std::vector<float>(n * width))));
  }
}

TEST_CASE("a captured scatter writes, and adds, at each launch", "[graph]") {
  auto random = generator(82);
  const stream queue;
  operands arrays;
  const ferry::duplicates::assume_unique unique;
  const auto with_repeats = indices<std::int64_t>(random, n, rows);
  put(arrays.table, values<float>(random, rows * width));
  put(arrays.ids, unique_indices<std::int64_t>(random, n, rows));
  put(arrays.batch, values<float>(random, n * width));
  const auto plan = ferry::make_plan(queue.exec(), with_repeats, rows);
  const auto verbs = [&](auto& first, auto& second) {
    first = ferry::scatter(queue.exec(), arrays.table, arrays.ids, arrays.batch, unique);
    second = ferry::scatter_add(queue.exec(), arrays.table, plan, arrays.batch);
  };
  ferry::ticket replaced, added;
  verbs(replaced, added);
  replaced.wait();
  added.wait();
  graph replayed(queue, [&] { verbs(replaced, added); });
  for (int launch = 0; launch < 3; ++launch) {
    const auto content = values<float>(random, rows * width);
    const auto ids = unique_indices<std::int64_t>(random, n, rows);
    const auto batch = values<float>(random, n * width);
    put(arrays.table, content);
    put(arrays.ids, ids);
    put(arrays.batch, batch);
    replayed.launch();
    replaced.wait();
    added.wait();
    auto expected = scattered(content, width, ids, batch, false, "duplicates::last");
    std::vector<float> between(expected.begin(), expected.end());
    expected = scattered(between, width, with_repeats, batch, true, "duplicates::sum");
    CHECK(close(take(arrays.table), expected, 200.0));
  }
}

TEST_CASE("a bad index of one launch is thrown by the wait after it, and the next launch starts anew",
          "[graph]") {
  auto random = generator(83);
  const stream queue;
  operands arrays;
  put(arrays.table, values<float>(random, rows * width));
  put(arrays.batch, values<float>(random, n * width));
  const auto good = unique_indices<std::int64_t>(random, n, rows);
  put(arrays.ids, good);
  const ferry::duplicates::assume_unique unique;
  ferry::scatter(queue.exec(), arrays.table, arrays.ids, arrays.batch, unique).wait();
  ferry::ticket ticket;
  graph replayed(
      queue, [&] { ticket = ferry::scatter(queue.exec(), arrays.table, arrays.ids, arrays.batch, unique); });
  auto bad = good;
  bad[77] = rows;
  for (int round = 0; round < 3; ++round) {
    put(arrays.ids, bad);
    const auto before = take(arrays.table);
    replayed.launch();
    CHECK_THROWS_MATCHES(ticket.wait(), ferry::out_of_range,
                         MessageMatches(ContainsSubstring("index 400 at position 77")));
    CHECK(same_bits(take(arrays.table), before));
    put(arrays.ids, good);
    replayed.launch();
    CHECK_NOTHROW(ticket.wait());
  }
}

TEST_CASE("a captured small batch with repeated rows is searched at each launch", "[graph]") {
  auto random = generator(88);
  const stream queue;
  constexpr std::size_t few = 9;
  ferry::tensor<float, ferry::device_space> table("table", rows, width), reference("reference", rows, width);
  operands arrays;
  put(arrays.ids, indices<std::int64_t>(random, n, few));
  ferry::scatter(queue.exec(), table, arrays.ids, arrays.batch).wait();
  ferry::scatter_add(queue.exec(), table, arrays.ids, arrays.batch).wait();
  ferry::ticket last, sum;
  graph replayed(queue, [&] {
    last = ferry::scatter(queue.exec(), table, arrays.ids, arrays.batch);
    sum = ferry::scatter_add(queue.exec(), table, arrays.ids, arrays.batch);
  });
  for (int launch = 0; launch < 5; ++launch) {
    CAPTURE(launch);
    auto ids = indices<std::int64_t>(random, n, launch < 3 ? few : rows);
    const bool is_bad = launch == 1 || launch == 3;
    if (is_bad) ids[n / 2] = rows;
    const auto content = values<float>(random, rows * width);
    put(table, content);
    put(reference, content);
    put(arrays.ids, ids);
    put(arrays.batch, values<float>(random, n * width));
    replayed.launch();
    if (is_bad) {
      CHECK_THROWS_AS(last.wait(), ferry::out_of_range);
      CHECK_THROWS_AS(sum.wait(), ferry::out_of_range);
    } else {
      last.wait();
      sum.wait();
      const auto plan = ferry::make_plan(queue.exec(), ids, rows);
      ferry::scatter(queue.exec(), reference, plan, arrays.batch).wait();
      ferry::scatter_add(queue.exec(), reference, plan, arrays.batch).wait();
    }
    CHECK(same_bits(take(table), take(reference)));
  }
}

TEST_CASE("the errors of launches without a ticket come with the next wait on the captured instance",
          "[graph]") {
  auto random = generator(86);
  const stream queue;
  operands arrays;
  put(arrays.table, values<float>(random, rows * width));
  const auto good = unique_indices<std::int64_t>(random, n, rows);
  put(arrays.ids, good);
  ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch).wait();
  const bool destroyed = GENERATE(false, true);
  graph replayed(queue, [&] {
    auto ticket = ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch);
    if (!destroyed) ticket.detach();
  });
  ferry::tensor<float, ferry::device_space> spare("spare", n, width);
  const auto wait_for_other_work = [&](const auto& exec) {
    ferry::gather(exec, arrays.table, good, spare).wait();
  };
  auto bad = good;
  bad[77] = rows;
  for (int round = 0; round < 3; ++round) {
    put(arrays.ids, bad);
    replayed.launch();
    CHECK_NOTHROW(wait_for_other_work(Kokkos::Cuda{}));
    CHECK_THROWS_MATCHES(wait_for_other_work(queue.exec()), ferry::out_of_range,
                         MessageMatches(ContainsSubstring("index 400 at position 77")));
    CHECK_NOTHROW(wait_for_other_work(queue.exec()));
    put(arrays.ids, good);
    replayed.launch();
    CHECK_NOTHROW(wait_for_other_work(queue.exec()));
  }
}

TEST_CASE("a stream may end before the findings of its graph are thrown", "[graph]") {
  auto random = generator(87);
  operands arrays;
  put(arrays.table, values<float>(random, rows * width));
  auto bad = unique_indices<std::int64_t>(random, n, rows);
  bad[77] = rows;
  put(arrays.ids, bad);
  {
    const stream queue;
    graph replayed(queue,
                   [&] { ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch).detach(); });
    replayed.launch();
    queue.exec().fence("ferry_test::graph");
  }
  for (int i = 0; i < 3; ++i) {
    const stream later;
    const auto good = unique_indices<std::int64_t>(random, n, rows);
    CHECK_NOTHROW(ferry::gather(later.exec(), arrays.table, good, arrays.batch).wait());
    CHECK_NOTHROW(ferry::gather(Kokkos::Cuda{}, arrays.table, good, arrays.batch).wait());
  }
}

TEST_CASE("what a captured verb uses belongs to the graph", "[graph]") {
  auto random = generator(84);
  const stream queue;
  operands arrays;
  const auto content = values<float>(random, rows * width);
  put(arrays.table, content);
  ferry::tensor<std::int64_t, ferry::pinned_space> ids("which", n);
  put(ids, indices<std::int64_t>(random, n, rows));
  ferry::gather(queue.exec(), arrays.table, ids, arrays.batch).wait();
  {
    graph replayed(queue, [&] {
      ferry::gather(queue.exec(), arrays.table, ids, arrays.batch).detach();
      static_cast<void>(ferry::gather(queue.exec(), arrays.table, ids, arrays.batch));
    });
    for (int launch = 0; launch < 3; ++launch) {
      const auto now = indices<std::int64_t>(random, n, rows);
      put(ids, now);
      put(arrays.batch, std::vector<float>(n * width, -1.0f));
      replayed.launch();
      // Others that take scratch memory of the same size in the meantime must not get the graph's.
      const std::vector<std::int64_t> zeros(n, 0);
      ferry::tensor<float, ferry::device_space> second("other", n, width);
      for (int i = 0; i < 10; ++i) ferry::gather(Kokkos::Cuda{}, arrays.table, zeros, second).detach();
      queue.exec().fence("ferry_test::graph");
      CHECK(same_bits(take(arrays.batch), gathered(content, width, now, std::vector<float>(n * width))));
    }
  }
  ferry::gather(queue.exec(), arrays.table, ids, arrays.batch).wait();
}

TEST_CASE("captured copies run at each launch", "[graph]") {
  auto random = generator(85);
  const stream queue;
  operands arrays;
  ferry::tensor<float, ferry::device_space> near("near", rows, width);
  ferry::copy(queue.exec(), arrays.table, near).wait();
  ferry::ticket ticket;
  graph replayed(queue, [&] { ticket = ferry::copy(queue.exec(), arrays.table, near); });
  for (int launch = 0; launch < 3; ++launch) {
    const auto content = values<float>(random, rows * width);
    put(arrays.table, content);
    replayed.launch();
    ticket.wait();
    CHECK(same_bits(take(near), content));
  }
}

TEST_CASE("what a graph can't repeat is refused, and the capture goes on", "[graph]") {
  auto random = generator(86);
  const stream queue;
  operands arrays;
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  put(arrays.table, content);
  put(arrays.ids, ids);
  ferry::tensor<float, ferry::pinned_space> host("host", n, width);
  ferry::rowwise_int8_tensor<ferry::pageable_space> codes("codes", rows, width);
  ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch).wait();
  const auto refuses = [](const auto& verb, const char* why) {
    CHECK_THROWS_MATCHES(
        verb(), ferry::invalid_argument,
        MessageMatches(ContainsSubstring("is being captured into a graph") && ContainsSubstring(why)));
  };
  ferry::ticket ticket;
  graph replayed(queue, [&] {
    refuses(
        [&] {
          ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch, ferry::path::staged{}).wait();
        },
        "host code takes part");
    refuses([&] { ferry::gather(queue.exec(), arrays.table, ids, arrays.batch).wait(); }, "read once only");
    refuses([&] { ferry::scatter(queue.exec(), arrays.table, arrays.ids, arrays.batch).wait(); },
            "make the plan before");
    refuses([&] { static_cast<void>(ferry::make_plan(queue.exec(), arrays.ids, rows)); },
            "make the plan before");
    refuses(
        [&] {
          static_cast<void>(ferry::gather<ferry::pinned_space>(queue.exec(), arrays.table, arrays.ids));
        },
        "made once only");
    refuses([&] { ferry::gather(queue.exec(), codes, arrays.ids, arrays.batch).wait(); },
            "the host's threads each time");
    refuses(
        [&] {
          ferry::scatter(queue.exec(), codes, arrays.ids, arrays.batch, ferry::duplicates::assume_unique{})
              .wait();
        },
        "the host's threads each time");
    ticket = ferry::gather(queue.exec(), arrays.table, arrays.ids, arrays.batch);
    CHECK_THROWS_AS(ticket.wait(), ferry::invalid_argument);
  });
  replayed.launch();
  ticket.wait();
  CHECK(same_bits(take(arrays.batch), gathered(content, width, ids, std::vector<float>(n * width))));
}

}  // namespace ferry_test::graph_cuda_test
