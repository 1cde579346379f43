// SPDX-License-Identifier: Apache-2.0
#include "distributed/faults.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <new>
#include <optional>
#include <thread>

namespace ferry_test::failures_test {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

TEST_CASE("what one rank passes wrongly is told to all ranks, and nothing is written",
          "[distributed][kernels]") {
  const watchdog guard("faulty writes", std::chrono::seconds(120));
  for (const auto& comm : all_groups())
    if (comm.size() > 1 && comm.size() < 6) check_faults(comm);
}

TEST_CASE("bad indices of several ranks are counted, for every sharding", "[distributed]") {
  const watchdog guard("bad indices");
  const exec_space exec;
  const auto rule = ferry::optim::adam{};
  for_each_sharding([&](auto spread) {
    const auto comm = group_of(4);
    ferry::sharded_table<float, host, decltype(spread)> big("w", comm, 30, width, spread);
    ferry::init::uniform(exec, big, -1, 1, 1);
    const auto before = contents(exec, big);
    auto state = ferry::optim::make_state(rule, big);
    const auto refused = [&](const auto& verb) {
      for (const auto& text : errors_of_ranks(comm, [&](int rank) {
             std::vector<std::int64_t> rows{1, 2, 3, 4, 5};
             if (rank == 2) rows[3] = -8;
             if (rank == 3) rows[0] = 30;
             verb(rows, tensor_of(std::vector<float>(5 * width, 9), width));
           }))
        CHECK_THAT(text, ContainsSubstring("range: ") && ContainsSubstring("2 of 20 indices") &&
                             ContainsSubstring("index -8 at position 3 of rank 2") &&
                             ContainsSubstring("'w'"));
    };
    refused([&](const auto& rows, const auto& values) { ferry::scatter(exec, big, rows, values).wait(); });
    refused([&](const auto& rows, const auto& values) {
      ferry::step(exec, rule, big, state, ferry::make_plan(exec, rows, big), values).wait();
    });
    REQUIRE(state.steps() == 0);
    // Duplicates of several ranks.
    for (const auto& text : errors_of_ranks(comm, [&](int rank) {
           const std::vector<std::int64_t> rows{rank, 10 + rank, rank == 2 ? 11 : 20 + rank};
           const auto values = tensor_of(std::vector<float>(3 * width, 9), width);
           ferry::scatter(exec, big, rows, values, ferry::duplicates::reject{}).wait();
         }))
      CHECK_THAT(text, ContainsSubstring("own: ") && ContainsSubstring("1 row of 'w'") &&
                           ContainsSubstring("the lowest is row 11"));
    // By one thread for the group.
    const auto value = tensor_of(std::vector<float>(width, 9), width);
    const std::vector<std::int64_t> bad{31};
    CHECK_THAT(error_of([&] { ferry::scatter(exec, big, bad, value).wait(); }),
               ContainsSubstring("index 31 at position 0") && !ContainsSubstring("of rank"));
    REQUIRE(contents(exec, big) == before);
  });
}

TEST_CASE("a rank whose output or shard does not fit tells the others, and all leave the call",
          "[distributed]") {
  const watchdog guard("preconditions");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 30, width);
  const std::vector<std::int64_t> rows{1, 2};
  const auto check = [&](const char* words, const auto& act) {
    const auto texts = errors_of_ranks(comm, act);
    for (std::size_t r = 0; r < 3; ++r)
      CHECK_THAT(texts[r], ContainsSubstring(r == 1 ? "own: " : "peer: ") && ContainsSubstring(words) &&
                               ContainsSubstring(r == 1 ? "ferry" : "rank 1 failed"));
    comm.run([&] { comm.barrier(); });
  };
  check("elements, rows of 'wide'", [&](int rank) {
    ferry::tensor<float, host> out(rank == 1 ? "wide" : "fits", 2, width + (rank == 1 ? 1 : 0));
    ferry::gather(exec, big, rows, out).wait();
  });
  check("2 indices were given for the 3 rows", [&](int rank) {
    ferry::tensor<float, host> values("values", rank == 1 ? 3 : 2, width);
    ferry::scatter(exec, big, rows, values).wait();
  });
  ferry::trim();  // freed blocks serve a shard without new memory
  const auto pinned_bytes = ferry::memory_statistics<ferry::pinned_space>().current;
  ferry::set_memory_budget<ferry::pinned_space>(pinned_bytes + (1 << 20));
  check("budget", [&](int) {
    const ferry::sharded_table<float, ferry::pinned_space, ferry::sharding::table_wise> large(
        "large", comm, 1 << 20, 8, {.rank = 1});
  });
  ferry::set_memory_budget<ferry::pinned_space>(0);
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
