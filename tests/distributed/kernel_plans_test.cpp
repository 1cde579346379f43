// SPDX-License-Identifier: Apache-2.0
#include "distributed/device_kit.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <numeric>
#include <utility>

/// Plans whose lists lie on the devices of all ranks: all verbs with one plan, against the ordinary verbs on the
/// batches one after the other, and calls of which kernels can't do all.
namespace ferry_test::kernel_plans_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using main_exec = Kokkos::DefaultExecutionSpace;
using device = ferry::device_space;

std::vector<std::vector<int>> groups() {
  std::vector<std::vector<int>> result;
  for (const int ranks : {2, 5}) result.push_back(all_in_turn(ranks));
  result.emplace_back(3, 0);
  return result;
}

/// The part of a vector that belongs to a rank's batch.
template <class T>
std::vector<T> part(const std::vector<T>& whole, std::size_t first, std::size_t count) {
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// An ordinary table and a sharded one of equal rows, with their states.
template <class Spread>
struct twins {
  const main_exec first{};
  ferry::communicator comm;
  ferry::tensor<float, device> table;
  ferry::sharded_table<float, device, Spread> big;
  ferry::optim::adam rule{.lr = 1e-2};
  ferry::optim::state<ferry::optim::adam, float, device> state;
  decltype(ferry::optim::make_state(rule, big)) states;

  twins(ferry::communicator group, std::size_t rows, Spread spread)
      : comm(std::move(group)),
        table("w", rows, width),
        big("w", comm, rows, width, spread),
        state(ferry::optim::make_state(rule, table)),
        states(ferry::optim::make_state(rule, big)) {
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
  }
  [[nodiscard]] bool equal() const {
    ferry::tensor<float, host> read("read", big.rows(), width);
    ferry::copy(first, big, read).wait();
    const auto expected = contents(first, table);
    return same_bits(read.data(), expected.data(), expected.size());
  }
};

/// All verbs by one plan, in turns of values on devices and, of some ranks, in host memory.
template <class Bounds, class Spread>
void all_verbs(std::mt19937_64& random, const std::vector<int>& ids, Spread spread) {
  const auto ranks = static_cast<int>(ids.size());
  const std::size_t rows = 1 + random() % 90;
  INFO(ranks << " ranks, " << rows << " rows, " << Spread::name << ", " << Bounds::name);
  twins<Spread> pair(ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)}), rows, spread);
  batches<float> batch(random, ranks, rows, 300);
  if (!std::is_same_v<Bounds, ferry::bounds::check>)
    for (auto& mine : batch.rows_of)
      for (auto& row : mine)
        if (random() % 5 == 0) row = static_cast<std::int64_t>(random() % 500) - 250;
  std::vector<std::int64_t> together;
  for (const auto& mine : batch.rows_of) together.insert(together.end(), mine.begin(), mine.end());
  // Bags of four positions, a shorter one last; a rank without positions has none.
  std::vector<std::int64_t> offsets, first_bag{0};
  for (int r = 0; r < ranks; ++r) {
    const auto count = static_cast<std::int64_t>(batch.indices_of(r).size());
    for (std::int64_t p = 0; p < count; p += 4) offsets.push_back(static_cast<std::int64_t>(batch.at(r)) + p);
    first_bag.push_back(static_cast<std::int64_t>(offsets.size()));
  }
  const auto bag_numbers = values<float>(random, offsets.size() * width);
  const auto bag_grads = tensor_of(bag_numbers, width);

  const auto plan = ferry::make_plan(pair.first, together, rows, Bounds{});
  ferry::tensor<float, device> out("out", together.size(), width), pooled("pooled", offsets.size(), width);
  const auto expect_equal = [&](const std::vector<float>& rows_of_rank, const std::vector<float>& whole,
                                std::size_t begin, const char* words) {
    expect(rows_of_rank == part(whole, begin * width, rows_of_rank.size()), words);
  };
  std::vector<ferry::sharded_plan<main_exec>> plans;
  std::mutex guard;
  pair.comm.run([&](int rank, const auto& exec) {
    const auto named = on_device(exec, pair.comm.device(rank), batch.indices_of(rank));
    auto mine = ferry::make_plan(exec, named, pair.big, Bounds{});
    expect(mine.storage().in_place, "owners have read the lists of all ranks");
    const std::lock_guard<std::mutex> lock(guard);
    plans.resize(std::max<std::size_t>(plans.size(), static_cast<std::size_t>(rank) + 1), mine);
    plans[static_cast<std::size_t>(rank)] = mine;
  });
  for (int turn = 0; turn < 3; ++turn) {
    // Gathers before the rows change.
    ferry::init::constant(pair.first, out, 0);
    ferry::init::constant(pair.first, pooled, 0);
    ferry::gather(pair.first, pair.table, plan, out).wait();
    ferry::gather_bags(pair.first, pair.table, plan, offsets, pooled, ferry::pooling::mean{}).wait();
    const auto gathered = contents(pair.first, out), bags = contents(pair.first, pooled);
    // The ordinary verbs.
    ferry::scatter_add(pair.first, pair.table, plan, batch.whole).wait();
    ferry::step(pair.first, pair.rule, pair.table, pair.state, plan, batch.whole).wait();
    ferry::step_bags(pair.first, pair.rule, pair.table, pair.state, plan, offsets, bag_grads,
                     ferry::pooling::sum{})
        .wait();
    ferry::step_bags(pair.first, pair.rule, pair.table, pair.state, plan, offsets, bag_grads,
                     ferry::pooling::mean{})
        .wait();
    ferry::scatter(pair.first, pair.table, plan, batch.whole).wait();
    pair.comm.run([&](int rank, const auto& exec) {
      const auto r = static_cast<std::size_t>(rank);
      const auto& mine = plans[r];
      const std::size_t begin = batch.at(rank), count = batch.indices_of(rank).size();
      const auto first = static_cast<std::size_t>(first_bag[r]);
      const auto last = static_cast<std::size_t>(first_bag[r + 1]);
      ferry::tensor<float, device> rows_of_rank("out", pair.comm.device(rank), count, width);
      const auto check = [&](const char* words, auto... policies) {
        ferry::init::constant(exec, rows_of_rank, 0);
        ferry::gather(exec, pair.big, mine, rows_of_rank, policies...).wait();
        expect_equal(contents(exec, rows_of_rank), gathered, begin, words);
      };
      check("gather");
      check("gather of each row once", ferry::path::exchange{});
      std::vector<std::int64_t> rank_offsets;
      for (std::size_t b = first; b < last; ++b)
        rank_offsets.push_back(offsets[b] - static_cast<std::int64_t>(begin));
      ferry::tensor<float, device> rank_pooled("pooled", pair.comm.device(rank), last - first, width);
      const auto check_bags = [&](const char* words, auto... policies) {
        ferry::init::constant(exec, rank_pooled, 0);
        ferry::gather_bags(exec, pair.big, mine, rank_offsets, rank_pooled, ferry::pooling::mean{},
                           policies...)
            .wait();
        expect_equal(contents(exec, rank_pooled), bags, first, words);
      };
      check_bags("gather_bags");
      check_bags("gather_bags of each row once", ferry::path::exchange{});
      ferry::tensor<float, device> near_values("values", pair.comm.device(rank), count, width);
      ferry::copy(exec, batch.values_of(rank), near_values).wait();
      const auto rank_grads = tensor_of(part(bag_numbers, first * width, (last - first) * width), width);
      ferry::tensor<float, device> near_grads("grads", pair.comm.device(rank), last - first, width);
      ferry::copy(exec, rank_grads, near_grads).wait();
      const auto write = [&](const auto& sources, const auto& gradients) {
        ferry::scatter_add(exec, pair.big, mine, sources).wait();
        ferry::step(exec, pair.rule, pair.big, pair.states, mine, sources).wait();
        ferry::step_bags(exec, pair.rule, pair.big, pair.states, mine, rank_offsets, gradients,
                         ferry::pooling::sum{})
            .wait();
        ferry::step_bags(exec, pair.rule, pair.big, pair.states, mine, rank_offsets, gradients,
                         ferry::pooling::mean{})
            .wait();
        ferry::scatter(exec, pair.big, mine, sources).wait();
      };
      if (turn == 1 && rank % 2 == 0) {
        ferry::tensor<float, ferry::pageable_space> far_values("values", count, width);
        ferry::copy(exec, batch.values_of(rank), far_values).wait();
        ferry::tensor<float, ferry::pageable_space> far_grads("grads", last - first, width);
        ferry::copy(exec, rank_grads, far_grads).wait();
        write(far_values, far_grads);
      } else {
        write(near_values, near_grads);
        ferry::init::constant(exec, near_values, 1e30f);  // no other rank reads it any more
        ferry::init::constant(exec, near_grads, 1e30f);
      }
    });
    REQUIRE(pair.equal());
    REQUIRE(pair.states.steps() == pair.state.steps());
  }
}

}  // namespace

TEST_CASE("all verbs with one plan of ranks on devices give the bits of ordinary ones",
          "[distributed][kernels][devices]") {
  if (!instances_work) return;
  const watchdog guard("plans by kernels");
  auto random = generator(431);
  for (const auto& ids : groups()) {
    all_verbs<ferry::bounds::check>(random, ids, ferry::sharding::cyclic{});
    all_verbs<ferry::bounds::check>(random, ids, ferry::sharding::hashed<7>{});
    all_verbs<ferry::bounds::skip>(random, ids, ferry::sharding::block{});
    all_verbs<ferry::bounds::clamp>(random, ids, ferry::sharding::cyclic{});
  }
}

TEST_CASE("sums by rank of ranks on devices do not depend on the plan", "[distributed][kernels][devices]") {
  if (!instances_work) return;
  const watchdog guard("sums by rank");
  auto random = generator(432);
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    const std::size_t rows = 1 + random() % 60;
    INFO(ranks << " ranks, " << rows << " rows");
    const batches<float> batch(random, ranks, rows, 400);
    twins<ferry::sharding::cyclic> pair(
        ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)}), rows, {});
    const auto before = contents(pair.first, pair.table);
    // A rank sums its positions in their order, and the owner adds the sums by rank.
    std::vector<float> expected = before;
    std::vector<std::vector<float>> sums;
    for (int r = 0; r < ranks; ++r) {
      std::vector<float> sum(rows * width, 0.0f);
      std::vector<bool> has(rows, false);
      const auto& mine = batch.indices_of(r);
      for (std::size_t p = 0; p < mine.size(); ++p)
        for (std::size_t c = 0; c < width; ++c) {
          const auto row = static_cast<std::size_t>(mine[p]);
          sum[row * width + c] += batch.values_of(r).data()[p * width + c];
          has[row] = true;
        }
      sums.push_back(std::move(sum));
    }
    std::vector<float> total(rows * width, 0.0f);
    for (const auto& sum : sums)
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += sum[i];
    for (std::size_t i = 0; i < total.size(); ++i) expected[i] += total[i];
    const auto result_of = [&](const auto& named_by) {
      ferry::init::uniform(pair.first, pair.big, -1, 1, 5);
      pair.comm.run([&](int rank, const auto& exec) {
        ferry::tensor<float, device> sources("values", pair.comm.device(rank), batch.indices_of(rank).size(),
                                             width);
        ferry::copy(exec, batch.values_of(rank), sources).wait();
        ferry::scatter_add(exec, pair.big, named_by(rank, exec), sources, ferry::reduce::by_rank{}).wait();
        ferry::init::constant(exec, sources, 1e30f);
      });
      ferry::tensor<float, host> read("read", rows, width);
      ferry::copy(pair.first, pair.big, read).wait();
      return std::vector<float>(read.data(), read.data() + read.size());
    };
    const auto by_indices = result_of([&](int rank, const auto& exec) {
      return on_device(exec, pair.comm.device(rank), batch.indices_of(rank));
    });
    for (std::size_t i = 0; i < expected.size(); ++i)
      REQUIRE(std::abs(by_indices[i] - expected[i]) <= 1e-4f * (1 + std::abs(expected[i])));
    CHECK(by_indices == result_of([&](int rank, const auto& exec) {
            return ferry::make_plan(exec, batch.indices_of(rank), rows);
          }));
    CHECK(by_indices == result_of([&](int rank, const auto& exec) {
            return ferry::make_plan(exec, batch.indices_of(rank), pair.big);
          }));
  }
}

namespace {

/// A plan as ranks make it on devices of which not all reach each other: the lists travel.
template <class Table>
ferry::sharded_plan<main_exec> plan_without_reach(const main_exec& exec,
                                                  const ferry::tensor<std::int64_t, device>& named,
                                                  const Table& table) {
  namespace inner = ferry::detail;
  inner::collective call(table.comm(), inner::note_of<>("make_plan", table));
  return call.guarded([&] {
    const std::uint64_t number = call.next_number();
    auto storage = std::make_shared<inner::sharded_plan_storage<main_exec>>(inner::planned_tables{
        table.comm(), inner::digest_of(table.sharding()), static_cast<std::int64_t>(table.rows()),
        ferry::bounds::check::name, call.first(), number});
    const auto rows = static_cast<std::int64_t>(table.rows());
    storage->is_whole = false;
    storage->batch = ferry::make_plan(exec, named, rows);
    storage->items = inner::bucket_rows<ferry::bounds::check>("make_plan", exec, table, storage->batch);
    storage->headers = inner::exchange_headers(call, storage->items, {}, {});
    storage->owned.push_back(
        inner::collect_rows(call, exec, inner::shard_instance(table.comm(), call.rank(), exec), call.rank(),
                            *storage, static_cast<std::int64_t>(table.rows_of(call.rank()))));
    call.agree();
    return ferry::sharded_plan<main_exec>(std::move(storage));
  });
}

}  // namespace

TEST_CASE("a plan of devices that do not reach each other serves sums by rank", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("plans without reach");
  auto random = generator(433);
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    const batches<float> batch(random, ranks, 40, 200);
    twins<ferry::sharding::cyclic> pair(
        ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)}), 40, {});
    const auto result_of = [&](const auto& plan_by) {
      ferry::init::uniform(pair.first, pair.big, -1, 1, 5);
      pair.comm.run([&](int rank, const auto& exec) {
        const auto named = on_device(exec, pair.comm.device(rank), batch.indices_of(rank));
        const auto plan = plan_by(exec, named);
        ferry::tensor<float, device> sources("values", pair.comm.device(rank), batch.indices_of(rank).size(),
                                             width);
        ferry::copy(exec, batch.values_of(rank), sources).wait();
        ferry::scatter_add(exec, pair.big, plan, sources, ferry::reduce::by_rank{}).wait();
        ferry::step(exec, pair.rule, pair.big, pair.states, plan, sources, ferry::reduce::by_rank{}).wait();
        ferry::gather(exec, pair.big, plan, sources, ferry::path::exchange{}).wait();
      });
      ferry::tensor<float, host> read("read", 40, width);
      ferry::copy(pair.first, pair.big, read).wait();
      pair.states = ferry::optim::make_state(pair.rule, pair.big);
      return std::vector<float>(read.data(), read.data() + read.size());
    };
    const auto near = result_of(
        [&](const auto& exec, const auto& named) { return ferry::make_plan(exec, named, pair.big); });
    CHECK(near == result_of([&](const auto& exec, const auto& named) {
            return plan_without_reach(exec, named, pair.big);
          }));
  }
}

TEST_CASE("ranks with values in different spaces share a plan of a table in host memory",
          "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("plans of values in different spaces");
  const main_exec first;
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
    ferry::sharded_table<float, host> table("w", comm, 20, width);
    ferry::init::constant(first, table, 0);
    const ferry::optim::sgd rule{.lr = 0.5};
    auto state = ferry::optim::make_state(rule, table);
    comm.run([&](int rank, const auto& exec) {
      const std::vector<std::int64_t> rows{3, 4, 3};
      const auto plan = ferry::make_plan(exec, on_device(exec, comm.device(rank), rows), table);
      const auto write = [&](const auto& values) {
        ferry::scatter_add(exec, table, plan, values).wait();
        ferry::scatter_add(exec, table, plan, values, ferry::reduce::by_rank{}).wait();
        ferry::step(exec, rule, table, state, plan, values, ferry::nonfinite::reject{}).wait();
        ferry::scatter_add(exec, table, plan, values).wait();
        ferry::step_bags(exec, rule, table, state, plan, std::int64_t{1}, values).wait();
        ferry::step_bags(exec, rule, table, state, plan, std::int64_t{1}, values, ferry::pooling::mean{})
            .wait();
      };
      ferry::tensor<float, host> near_host("values", rows.size(), width);
      ferry::init::constant(exec, near_host, 1);
      ferry::tensor<float, device> near_device("values", comm.device(rank), rows.size(), width);
      ferry::copy(exec, near_host, near_device).wait();
      if (rank == 0)
        write(near_device);
      else
        write(near_host);
    });
    ferry::tensor<float, host> read("read", 20, width);
    ferry::copy(first, table, read).wait();
    for (std::size_t row = 0; row < 20; ++row)
      CHECK(read.data()[row * width] == static_cast<float>(ranks) * (row == 3   ? 3.0f
                                                                     : row == 4 ? 1.5f
                                                                                : 0.0f));
  }
}

TEST_CASE("duplicates::reject of ranks on devices writes all rows or none",
          "[distributed][kernels][devices]") {
  if (!instances_work) return;
  const watchdog guard("duplicates");
  auto random = generator(433);
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    constexpr std::size_t rows = 40;
    twins<ferry::sharding::hashed<7>> pair(
        ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)}), rows, {});
    for (const bool planned : {false, true})
      for (const int twice : {-1, 31, 4}) {  // a row that two ranks name
        INFO(ranks << " ranks, planned " << planned << ", twice " << twice);
        ferry::init::uniform(pair.first, pair.table, -1, 1, 5);
        ferry::init::uniform(pair.first, pair.big, -1, 1, 5);
        const auto rows_in_order = unique_indices<std::int64_t>(random, rows - 5, rows);
        std::vector<std::int64_t> distinct;
        for (const auto row : rows_in_order)
          if (row != 31 && row != 4) distinct.push_back(row);
        const std::size_t share = distinct.size() / static_cast<std::size_t>(ranks);
        std::vector<std::string> messages(ids.size());
        std::vector<std::int64_t> together;
        for (int r = 0; r < ranks; ++r)
          for (std::size_t i = 0; i < share; ++i)
            together.push_back(distinct[static_cast<std::size_t>(r) * share + i]);
        pair.comm.run([&](int rank, const auto& exec) {
          auto mine = part(distinct, static_cast<std::size_t>(rank) * share, share);
          if (twice >= 0 && (rank == 0 || rank == ranks - 1)) mine.push_back(twice);
          const auto named = on_device(exec, pair.comm.device(rank), mine);
          ferry::tensor<float, device> sources("values", pair.comm.device(rank), mine.size(), width);
          ferry::init::constant(exec, sources, 3);
          auto& message = messages[static_cast<std::size_t>(rank)];
          if (planned) {
            const auto plan = ferry::make_plan(exec, named, pair.big);
            message = said<ferry::invalid_argument>([&] {
              ferry::scatter_add(exec, pair.big, plan, sources, ferry::duplicates::reject{}).wait();
            });
          } else {
            message = said<ferry::invalid_argument>([&] {
              ferry::scatter_add(exec, pair.big, named, sources, ferry::duplicates::reject{}).wait();
            });
          }
        });
        for (const auto& text : messages) {
          if (twice < 0)
            CHECK(text.empty());
          else
            CHECK_THAT(text, ContainsSubstring(std::to_string(twice)));
        }
        if (twice < 0) {
          ferry::tensor<float, host> threes("threes", together.size(), width);
          ferry::init::constant(pair.first, threes, 3);
          ferry::scatter_add(pair.first, pair.table, together, threes).wait();
        }
        CHECK(pair.equal());
      }
  }
}

TEST_CASE("bad offsets and indices of a rank on a device step no row of bags",
          "[distributed][kernels][devices]") {
  if (!instances_work) return;
  const watchdog guard("bad bags");
  for (const auto& ids : groups()) {
    const auto ranks = static_cast<int>(ids.size());
    twins<ferry::sharding::cyclic> pair(
        ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)}), 20, {});
    const auto act = [&](bool bad_offsets, bool bad_index, bool planned) {
      std::vector<std::string> messages(ids.size());
      pair.comm.run([&](int rank, const auto& exec) {
        std::vector<std::int64_t> mine{1, 2, 3, 4}, offsets{0, 1, 4};
        if (rank == ranks - 1 && bad_offsets) offsets[1] = 9;
        if (rank == ranks - 1 && bad_index) mine[2] = 77;
        const auto named = on_device(exec, pair.comm.device(rank), mine);
        const auto begins = on_device(exec, pair.comm.device(rank), offsets);
        ferry::tensor<float, device> grads("grads", pair.comm.device(rank), 2, width);
        ferry::init::constant(exec, grads, 1);
        const auto step = [&](const auto& indices) {
          messages[static_cast<std::size_t>(rank)] = said<ferry::out_of_range>([&] {
            ferry::step_bags(exec, pair.rule, pair.big, pair.states, indices, begins, grads,
                             ferry::pooling::mean{})
                .wait();
          });
        };
        if (planned)
          step(ferry::make_plan(exec, named, pair.big));
        else
          step(named);
      });
      return messages;
    };
    for (const bool planned : {false, true}) {
      for (const auto& text : act(true, false, planned)) CHECK_THAT(text, ContainsSubstring("9"));
      for (const auto& text : act(false, true, planned)) CHECK_THAT(text, ContainsSubstring("77"));
    }
    CHECK(pair.equal());
    CHECK(pair.states.steps() == 0);
    for (const auto& text : act(false, false, false)) CHECK(text.empty());
    CHECK(!pair.equal());
    CHECK(pair.states.steps() == 1);
  }
}

}  // namespace ferry_test::kernel_plans_test
