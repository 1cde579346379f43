// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <new>
#include <optional>
#include <thread>

namespace ferry_test::failures_test {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

namespace {

/// The error that each rank threw, of one call that all make; the group is used again after it.
template <class Error, class Act>
std::vector<std::string> said_by_ranks(const ferry::communicator& comm, const Act& act) {
  std::vector<std::string> messages(static_cast<std::size_t>(comm.size()));
  comm.run([&](int rank) {
    messages[static_cast<std::size_t>(rank)] = said<Error>([&] { act(rank); });
    comm.barrier();
  });
  return messages;
}

}  // namespace

TEST_CASE("a bad index in a write is told to all ranks, and nothing is written", "[distributed]") {
  const watchdog guard("bad indices");
  const exec_space exec;
  const auto rule = ferry::optim::adam{};
  for_each_sharding([&](auto spread) {
    const auto comm = group_of(4);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, 30, width, spread);
    ferry::tensor<float, host> table("w", 30, width);
    ferry::init::uniform(exec, big, -1, 1, 1);
    ferry::init::uniform(exec, table, -1, 1, 1);
    auto state = ferry::optim::make_state(rule, big);
    const auto check = [&](const auto& verb) {
      const auto messages = said_by_ranks<ferry::out_of_range>(comm, [&](int rank) {
        std::vector<std::int64_t> rows{1, 2, 3, 4, 5};
        if (rank == 2) rows[3] = -8;
        if (rank == 3) rows[0] = 30;
        ferry::tensor<float, host> values("values", 5, width);
        ferry::init::constant(exec, values, 9);
        verb(rows, values);
      });
      for (const auto& text : messages)
        CHECK_THAT(text, ContainsSubstring("2 of 20 indices") &&
                             ContainsSubstring("index -8 at position 3 of rank 2") &&
                             ContainsSubstring("'w'"));
      REQUIRE(same_table(exec, big, table));
    };
    check([&](const auto& rows, const auto& values) { ferry::scatter(exec, big, rows, values).wait(); });
    check([&](const auto& rows, const auto& values) { ferry::scatter_add(exec, big, rows, values).wait(); });
    check([&](const auto& rows, const auto& values) {
      ferry::step(exec, rule, big, state, rows, values).wait();
    });
    check([&](const auto& rows, const auto& values) {
      ferry::step(exec, rule, big, state, ferry::make_plan(exec, rows, big), values).wait();
    });
    REQUIRE(state.steps() == 0);

    // A gather throws on its own rank, and gathers the rows of its good positions.
    const auto messages = said_by_ranks<ferry::out_of_range>(comm, [&](int rank) {
      std::vector<std::int64_t> rows{7, 2};
      if (rank == 1) rows[1] = 99;
      ferry::tensor<float, host> out("out", 2, width);
      ferry::init::zeros(exec, out);
      auto ticket = ferry::gather(exec, big, rows, out);
      expect(same_bits(out.data(), table.data() + 7 * width, width), "the good row");
      ticket.wait();
    });
    REQUIRE(messages[0].empty());
    CHECK_THAT(messages[1],
               ContainsSubstring("1 of 2 indices") && ContainsSubstring("index 99 at position 1"));

    // By one thread for the group.
    ferry::tensor<float, host> values("values", 1, width);
    const std::vector<std::int64_t> bad{31};
    const auto text = said<ferry::out_of_range>([&] { ferry::scatter(exec, big, bad, values).wait(); });
    CHECK_THAT(text, ContainsSubstring("index 31 at position 0") && !ContainsSubstring("of rank"));
  });
}

TEST_CASE("duplicates::reject looks at the batches of all ranks", "[distributed]") {
  const watchdog guard("rejected duplicates");
  const exec_space exec;
  for_each_sharding([&](auto spread) {
    const auto comm = group_of(3);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, 30, width, spread);
    ferry::init::zeros(exec, big);
    ferry::tensor<float, host> table("w", 30, width);
    ferry::init::zeros(exec, table);
    const auto messages = said_by_ranks<ferry::invalid_argument>(comm, [&](int rank) {
      const std::vector<std::int64_t> rows{rank, 10 + rank, rank == 2 ? 11 : 20 + rank};
      ferry::tensor<float, host> values("values", 3, width);
      ferry::init::constant(exec, values, 9);
      ferry::scatter(exec, big, rows, values, ferry::duplicates::reject{}).wait();
    });
    for (const auto& text : messages)
      CHECK_THAT(text, ContainsSubstring("1 row of 'w'") && ContainsSubstring("the lowest is row 11"));
    REQUIRE(same_table(exec, big, table));
  });
}

TEST_CASE("a rank that fails its preconditions tells the others, and all leave the call", "[distributed]") {
  const watchdog guard("preconditions");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 30, width);
  ferry::tensor<float, host> table("w", 30, width);
  ferry::init::uniform(exec, big, -1, 1, 1);
  ferry::init::uniform(exec, table, -1, 1, 1);
  const auto rule = ferry::optim::adam{};
  auto state = ferry::optim::make_state(rule, big);
  const auto check = [&](const char* label, const auto& act) {
    INFO(label);
    const auto messages = said_by_ranks<ferry::error>(comm, act);
    CHECK_THAT(messages[1], ContainsSubstring(label) && !ContainsSubstring("rank 1 failed"));
    for (const std::size_t r : {0u, 2u})
      CHECK_THAT(messages[r], ContainsSubstring("rank 1 failed") && ContainsSubstring(label));
    REQUIRE(same_table(exec, big, table));
  };
  const std::vector<std::int64_t> rows{1, 2};
  check("elements, rows of 'wide'", [&](int rank) {
    ferry::tensor<float, host> out(rank == 1 ? "wide" : "fits", 2, width + (rank == 1 ? 1 : 0));
    ferry::gather(exec, big, rows, out).wait();
  });
  check("2 indices were given for the 3 rows", [&](int rank) {
    ferry::tensor<float, host> values("values", rank == 1 ? 3 : 2, width);
    ferry::scatter(exec, big, rows, values).wait();
  });
  check("lr", [&](int rank) {
    ferry::tensor<float, host> grads("grads", 2, width);
    ferry::init::constant(exec, grads, 1);
    const ferry::optim::adam mine{.lr = rank == 1 ? -1.0 : 0.1};
    ferry::step(exec, mine, big, state, rows, grads).wait();
  });
  REQUIRE(state.steps() == 0);
  // A shard that does not fit into the budget.
  ferry::trim();  // freed blocks serve a shard without new memory
  const auto pinned_bytes = ferry::memory_statistics<ferry::pinned_space>().current;
  ferry::set_memory_budget<ferry::pinned_space>(pinned_bytes + (1 << 20));
  const auto messages = said_by_ranks<ferry::error>(comm, [&](int) {
    const ferry::sharded_table<float, ferry::pinned_space, ferry::sharding::table_wise> large(
        "large", comm, 1 << 20, 8, {.rank = 1});
  });
  ferry::set_memory_budget<ferry::pinned_space>(0);
  CHECK_THAT(messages[1], ContainsSubstring("budget"));
  CHECK_THAT(messages[0], ContainsSubstring("rank 1 failed") && ContainsSubstring("budget"));
  ferry::tensor<float, host> grads("grads", 2, width);
  ferry::init::constant(exec, grads, 1);
  comm.run([&] { ferry::step(exec, rule, big, state, rows, grads).wait(); });
  REQUIRE(state.steps() == 1);
}

TEST_CASE("a rank that dies between two phases of a verb ends the verbs of the others", "[distributed]") {
  // The failing rank makes the first calls of a gather by hand, then leaves by an exception, or sleeps.
  const watchdog guard("between two phases");
  const exec_space exec;
  for (const int phases : {0, 1, 2}) {
    const auto comm = threads_of(3, 20s);
    ferry::sharded_table<float, host> big("w", comm, 30, width);
    ferry::init::zeros(exec, big);
    std::atomic<int> failures{0};
    const auto text = said<std::runtime_error>([&] {
      comm.run([&](int rank) {
        const std::vector<std::int64_t> rows{1, 2, 3, 4};
        ferry::tensor<float, host> out("out", 4, width);
        if (rank != 0) {
          const auto message = said<ferry::peer_error>([&] { ferry::gather(exec, big, rows, out).wait(); });
          if (message.find("killed") != std::string::npos) ++failures;
          return;
        }
        ferry::detail::collective call(comm, ferry::detail::note_of<>("gather", big));
        const std::int32_t no_kernels = 0;
        if (phases > 0) (void)call.all_gather(std::span(&no_kernels, 1));
        constexpr std::size_t header =
            sizeof(ferry::detail::batch_findings) + sizeof(ferry::detail::batch_offer);
        const std::vector<std::byte> nothing(header + 3 * sizeof(std::int64_t));
        if (phases > 1) (void)call.all_gather(std::span(nothing));
        throw std::runtime_error("killed");
      });
    });
    REQUIRE(text == "killed");
    REQUIRE(failures == 2);
    comm.run([&] {  // the group and the table serve on
      const std::vector<std::int64_t> rows{1};
      ferry::tensor<float, host> out("out", 1, width);
      ferry::gather(exec, big, rows, out).wait();
    });
  }
}

TEST_CASE("a rank that fails after its offer keeps the memory until the others have read it",
          "[distributed]") {
  namespace detail = ferry::detail;
  const watchdog guard("an offer and a failure");
  constexpr std::chrono::milliseconds deadline{50};
  const auto comm = threads_of(2, deadline);
  std::atomic<bool> has_left{false}, read_late{false};
  comm.run([&](int rank) {
    detail::collective call(comm, detail::call_note("an offer"));
    detail::buckets items;
    items.begin.assign(3, 0);
    detail::batch_offer offer;
    offer.is_made = 1;
    const auto offer_batch = [&] {
      call.guarded([&] {
        static_cast<void>(detail::exchange_headers(call, items, {}, offer));
        if (rank == 0) throw std::bad_alloc();  // as a vector of its verb may, before the rank reads itself
        std::this_thread::sleep_for(4 * deadline);
        read_late = has_left.load();
        call.agree();
      });
    };
    if (rank == 0)
      expect(!said<std::bad_alloc>(offer_batch).empty(), "its own error");
    else
      expect(!said<ferry::communication_error>(offer_batch).empty(), "the deadline of rank 0");
    if (rank == 0) has_left = true;
  });
  CHECK_FALSE(read_late);
}

TEST_CASE("ranks at random delays give the same bits", "[distributed]") {
  const watchdog guard("delays");
  const exec_space exec;
  auto random = generator(41);
  const auto comm = group_of(5, 20s);
  ferry::sharded_table<float, host> big("w", comm, 50, width);
  ferry::tensor<float, host> table("w", 50, width);
  ferry::init::zeros(exec, big);
  ferry::init::zeros(exec, table);
  std::vector<batches<float>> rounds;
  for (int i = 0; i < 20; ++i) rounds.emplace_back(random, 5, 50, 30);
  for (const auto& batch : rounds) ferry::scatter_add(exec, table, batch.rows, batch.whole).wait();
  const auto seed = random();
  comm.run([&](int rank) {
    std::mt19937_64 rank_random(seed + static_cast<std::uint64_t>(rank));
    for (const auto& batch : rounds) {
      if (rank_random() % 3 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(rank_random() % 2000));
      ferry::scatter_add(exec, big, batch.indices_of(rank), batch.values_of(rank)).wait();
    }
  });
  REQUIRE(same_table(exec, big, table));
}

TEST_CASE("a rank that throws at a random place never leaves the others waiting", "[distributed]") {
  const watchdog guard("random kills");
  const exec_space exec;
  auto random = generator(43);
  const auto comm = group_of(4, 20s);
  ferry::sharded_table<float, host> big("w", comm, 50, width);
  ferry::init::zeros(exec, big);
  for (int turn = 0; turn < 100; ++turn) {
    const auto victim = static_cast<int>(random() % 4);
    const auto after = random() % 6;
    const auto delay = random() % 300;
    const auto text = said<std::logic_error>([&] {
      comm.run([&](int rank) {
        const std::vector<std::int64_t> rows{1, 9, 9, 30 + rank};
        ferry::tensor<float, host> values("values", 4, width);
        ferry::init::constant(exec, values, 1);
        for (std::uint64_t i = 0;; ++i) {
          if (rank == victim && i == after) {
            std::this_thread::sleep_for(std::chrono::microseconds(delay));
            throw std::logic_error("killed");
          }
          if (i % 2 == 0)
            ferry::scatter_add(exec, big, rows, values).wait();
          else
            ferry::gather(exec, big, rows, values).wait();
        }
      });
    });
    REQUIRE(text == "killed");
  }
  comm.run([&] { comm.barrier(); });
}

TEST_CASE("tables, plans and states outlive the handle of their communicator", "[distributed]") {
  const watchdog guard("lifetimes");
  const exec_space exec;
  const auto rule = ferry::optim::sgd{};
  std::optional<ferry::communicator> comm(group_of(3));
  ferry::sharded_table<float, host> big("w", *comm, 30, width);
  comm.reset();
  ferry::init::constant(exec, big, 2);
  auto state = ferry::optim::make_state(rule, big);
  const std::vector<std::int64_t> rows{1, 2};
  const auto plan = ferry::make_plan(exec, rows, big);
  auto moved = std::move(big);
  ferry::tensor<float, host> out("out", 2, width);
  ferry::gather(exec, moved, plan, out).wait();
  REQUIRE(out(1, 3) == 2.0f);
  moved.comm().run([&] { ferry::step(exec, rule, moved, state, rows, out).wait(); });
  REQUIRE(state.steps() == 1);

  // A table made inside of run has the shard of its rank alone.
  moved.comm().run([&](int rank) {
    ferry::sharded_table<float, host> rank_table("own", moved.comm(), 30, width);
    ferry::init::constant(exec, rank_table, 4);
    auto rank_state = ferry::optim::make_state(rule, rank_table);
    ferry::tensor<float, host> read("out", 2, width);
    ferry::gather(exec, rank_table, rows, read).wait();
    ferry::step(exec, rule, rank_table, rank_state, rows, read).wait();
    expect(read(0, 0) == 4.0f, "rows of a table made inside of run");
    expect(!said<ferry::invalid_argument>([&] { (void)rank_table.shard((rank + 1) % 3); }).empty(),
           "another's shard");
    // Errors of one rank that others wait for: the table is destroyed while they do.
    if (rank == 2) return;
    expect(!said<ferry::communication_error>([&] {
              ferry::gather(exec, rank_table, rows, read).wait();
            }).empty(),
           "a rank that has left");
  });
}

TEST_CASE("verbs outside of run need all shards, and plans their own table", "[distributed]") {
  const watchdog guard("misuse");
  const exec_space exec;
  const auto comm = group_of(2), second_group = group_of(2);
  ferry::sharded_table<float, host> big("w", comm, 30, width), far("far", second_group, 30, width),
      small("s", comm, 29, width);
  ferry::sharded_table<float, host, ferry::sharding::block> blocks("b", comm, 30, width);
  ferry::init::zeros(exec, big);
  const std::vector<std::int64_t> rows{1, 2};
  ferry::tensor<float, host> out("out", 2, width);
  const auto plan = ferry::make_plan(exec, rows, big);
  REQUIRE_THROWS_AS(ferry::gather(exec, far, plan, out).wait(), ferry::invalid_argument);
  REQUIRE_THROWS_AS(ferry::gather(exec, small, plan, out).wait(), ferry::invalid_argument);
  REQUIRE_THROWS_AS(ferry::gather(exec, blocks, plan, out).wait(), ferry::invalid_argument);
  auto state = ferry::optim::make_state(ferry::optim::sgd{}, small);
  REQUIRE_THROWS_AS(ferry::step(exec, ferry::optim::sgd{}, big, state, rows, out).wait(),
                    ferry::invalid_argument);
  REQUIRE_THROWS_AS((ferry::sharded_table<float, host>("n", comm, -1, 3)), ferry::invalid_argument);
  REQUIRE_THROWS_AS((ferry::sharded_table<float, host>("n", comm, ~std::size_t{0}, 3)),
                    ferry::invalid_argument);
  using one = ferry::sharded_table<float, host, ferry::sharding::table_wise>;
  REQUIRE_THROWS_AS(one("n", comm, 1, 3, {.rank = 2}), ferry::invalid_argument);
  // A plan of the whole group inside of a run.
  REQUIRE_THROWS_AS(comm.run([&] { ferry::gather(exec, big, plan, out).wait(); }), ferry::invalid_argument);
  // A slice of a shard as the batch of a write to its table.
  auto& shard = big.shard(0);
  REQUIRE_THROWS_AS(ferry::scatter(exec, big, rows, shard.first(2)).wait(), ferry::invalid_argument);
}

TEST_CASE("ranks that pass different plans are told so", "[distributed]") {
  const watchdog guard("plans");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> big("w", comm, 30, width);
  ferry::init::constant(exec, big, 7);
  std::vector<std::string> messages(2);
  try {
    comm.run([&](int rank) {
      const auto a = ferry::make_plan(exec, std::vector<std::int64_t>{1, 2, 3, 4}, big);
      const auto b = ferry::make_plan(exec, std::vector<std::int64_t>{5}, big);
      ferry::tensor<float, host> out("out", rank == 0 ? 4 : 1, width);
      messages[static_cast<std::size_t>(rank)] =
          said<ferry::protocol_error>([&] { ferry::gather(exec, big, rank == 0 ? a : b, out).wait(); });
    });
  } catch (const ferry::communication_error&) {
    // The group is broken.
  }
  for (const auto& text : messages) CHECK_THAT(text, ContainsSubstring("gather"));
}

TEST_CASE("a batch that does not fit a plan of a replicated table is told to the others", "[distributed]") {
  const watchdog guard("replicated");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host, ferry::sharding::replicated> big("w", comm, 30, width);
  ferry::init::constant(exec, big, 7);
  comm.run([&](int rank) {
    const auto plan = ferry::make_plan(exec, std::vector<std::int64_t>{1, 2}, big);
    ferry::tensor<float, host> out("out", 2, rank == 1 ? width + 1 : width);
    const auto act = [&] { ferry::gather(exec, big, plan, out).wait(); };
    if (rank == 1)
      expect(!said<ferry::invalid_argument>(act).empty(), "no error");
    else
      expect(said<ferry::peer_error>(act).find("rank 1") != std::string::npos, "no peer_error");
    comm.barrier();
  });
}

namespace {
std::atomic<int> called{0};
void count_call(int) { ++called; }
}  // namespace

TEST_CASE("run takes functions, and ranks vote", "[distributed]") {
  const watchdog guard("votes");
  const auto comm = group_of(3);
  comm.run(count_call);
  CHECK(called == 3);
  comm.run([&](int rank) {
    const std::vector<bool> votes = comm.all_gather(rank == 1);
    expect(votes == std::vector<bool>{false, true, false}, "votes");
  });
}

}  // namespace ferry_test::failures_test
