// SPDX-License-Identifier: Apache-2.0
#include "distributed/forwarding_transport.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <memory>
#include <type_traits>

namespace ferry_test::bags_test {

namespace {

/// Bags of several ranks; `all_offsets` are those of all batches one after the other.
template <class T>
struct bag_batches {
  std::vector<std::vector<std::int64_t>> rows_of, offsets_of;
  std::vector<std::vector<double>> weights_of;
  std::vector<ferry::tensor<T, host>> grads_of;
  std::vector<std::int64_t> rows, offsets{0};
  std::vector<double> weights;
  ferry::tensor<T, host> grads;
  std::vector<std::size_t> first_bag{0}, first_position{0};

  bag_batches(std::mt19937_64& random, int ranks, std::size_t table_rows, std::size_t most) {
    std::vector<T> numbers;
    for (int r = 0; r < ranks; ++r) {
      const std::size_t bags = random() % 4 == 0 ? 0 : random() % (most + 1);
      std::vector<std::int64_t> rank_offsets{0};
      std::size_t positions = 0;
      for (std::size_t b = 0; b < bags; ++b) {
        positions += random() % 3 == 0 ? 0 : random() % 9;
        rank_offsets.push_back(static_cast<std::int64_t>(positions));
      }
      auto mine = indices<std::int64_t>(random, positions, table_rows);
      auto factors = values<double>(random, positions);
      const auto gradients = values<T>(random, bags * width);
      for (std::size_t b = 1; b < rank_offsets.size(); ++b)
        offsets.push_back(static_cast<std::int64_t>(first_position.back()) + rank_offsets[b]);
      rows.insert(rows.end(), mine.begin(), mine.end());
      weights.insert(weights.end(), factors.begin(), factors.end());
      numbers.insert(numbers.end(), gradients.begin(), gradients.end());
      first_bag.push_back(first_bag.back() + bags);
      first_position.push_back(first_position.back() + positions);
      rows_of.push_back(std::move(mine));
      offsets_of.push_back(std::move(rank_offsets));
      weights_of.push_back(std::move(factors));
      grads_of.push_back(tensor_of(gradients, width));
    }
    grads = tensor_of(numbers, width);
  }
};

template <class T>
std::size_t place(T rank) {
  return static_cast<std::size_t>(rank);
}

/// Some indices outside of the table.
template <class T>
void spoil(std::mt19937_64& random, bag_batches<T>& batch) {
  std::size_t p = 0;
  for (auto& mine : batch.rows_of)
    for (auto& index : mine) {
      if (random() % 4 == 0) index = static_cast<std::int64_t>(random() % 2000) - 1000;
      batch.rows[p++] = index;
    }
}

constexpr int all_ranks[] = {1, 2, 4, 8};

template <class Test>
void for_all(std::uint64_t seed, const Test& test) {
  const watchdog guard("sharded bags");
  auto random = generator(seed);
  for (const int ranks : all_ranks)
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 120;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      test(random, ranks, rows, spread);
    });
}

/// gather_bags by all ranks, by indices, by plans of each kind and each row once, against one table.
template <class T, class Out, class Pooling, class Bounds>
void compare_gathers(std::uint64_t seed, Pooling pooling, Bounds bounds) {
  const exec_space exec;
  for_all(seed, [&](auto& random, int ranks, std::size_t rows, auto spread) {
    bag_batches<Out> batch(random, ranks, rows, 30);
    if (!std::is_same_v<Bounds, ferry::bounds::check>) spoil(random, batch);
    const std::size_t bags = batch.first_bag.back();
    ferry::tensor<T, host> table("w", rows, width);
    const auto comm = group_of(ranks);
    ferry::sharded_table<T, host, decltype(spread)> big("w", comm, rows, width, spread);
    ferry::init::uniform(exec, table, -50, 50, 5);
    ferry::init::uniform(exec, big, -50, 50, 5);
    ferry::tensor<Out, host> expected("expected", bags, width), weighted("weighted", bags, width);
    ferry::tensor<std::int64_t, host> positions("at", bags, width);
    ferry::gather_bags(exec, table, batch.rows, batch.offsets, expected, pooling, bounds).wait();
    if constexpr (Pooling::selects)
      ferry::gather_bags(exec, table, batch.rows, batch.offsets, weighted, positions, pooling, bounds).wait();
    else
      ferry::gather_bags(exec, table, batch.rows, batch.offsets, weighted, batch.weights, pooling, bounds)
          .wait();
    const auto check = [&](const auto& indices, const auto& offsets, const auto& weights, std::size_t first,
                           std::size_t first_position, auto... path) {
      const std::size_t rank_bags = offsets.size() - 1;
      ferry::tensor<Out, host> out("out", rank_bags, width);
      ferry::init::constant(exec, out, -7);
      ferry::gather_bags(exec, big, indices, offsets, out, pooling, bounds, path...).wait();
      expect(same_bits(out.data(), expected.data() + first * width, out.size()), "pooled rows");
      ferry::init::constant(exec, out, -7);
      if constexpr (Pooling::selects) {
        ferry::tensor<std::int64_t, host> mine("mine", rank_bags, width);
        ferry::gather_bags(exec, big, indices, offsets, out, mine, pooling, bounds, path...).wait();
        for (std::size_t i = 0; i < mine.size(); ++i) {
          const auto position = positions.data()[first * width + i];
          expect(mine.data()[i] == (position < 0 ? -1 : position - static_cast<std::int64_t>(first_position)),
                 "positions of maxima");
        }
      } else {
        ferry::gather_bags(exec, big, indices, offsets, out, weights, pooling, bounds, path...).wait();
      }
      expect(same_bits(out.data(), weighted.data() + first * width, out.size()), "weighted rows");
    };
    comm.run([&](int rank) {
      const auto& mine = batch.rows_of[place(rank)];
      const auto& offsets = batch.offsets_of[place(rank)];
      const auto& weights = batch.weights_of[place(rank)];
      const std::size_t first = batch.first_bag[place(rank)], start = batch.first_position[place(rank)];
      check(mine, offsets, weights, first, start);
      check(mine, offsets, weights, first, start, ferry::path::exchange{});
      check(ferry::make_plan(exec, mine, rows, bounds), offsets, weights, first, start);
      const auto plan = ferry::make_plan(exec, mine, big, bounds);
      check(plan, offsets, weights, first, start);
      check(plan, offsets, weights, first, start, ferry::path::exchange{});
    });
    check(batch.rows, batch.offsets, batch.weights, 0, 0);
    check(batch.rows, batch.offsets, batch.weights, 0, 0, ferry::path::exchange{});
  });
}

/// A group of threads, or for 4 ranks one whose ranks only send messages.
ferry::communicator any_group_of(int ranks) {
  if (ranks != 4) return group_of(ranks);
  return ferry::communicator(std::make_shared<forwarding_transport>(ranks, std::chrono::seconds(30)));
}

/// Two steps by all ranks, by indices and by plans, against one table.
template <class T, class Grad, class Rule, class Pooling, class Bounds>
void compare_steps(std::uint64_t seed, const Rule& rule, Pooling pooling, Bounds bounds) {
  const exec_space exec;
  for_all(seed, [&](auto& random, int ranks, std::size_t rows, auto spread) {
    bag_batches<Grad> batch(random, ranks, rows, 30);
    if (!std::is_same_v<Bounds, ferry::bounds::check>) spoil(random, batch);
    ferry::tensor<T, host> table("w", rows, width);
    const auto comm = any_group_of(ranks);
    ferry::sharded_table<T, host, decltype(spread)> big("w", comm, rows, width, spread);
    ferry::init::uniform(exec, table, -1, 1, 5);
    ferry::init::uniform(exec, big, -1, 1, 5);
    auto state = ferry::optim::make_state(rule, table);
    auto shared = ferry::optim::make_state(rule, big);
    ferry::tensor<std::int64_t, host> positions("at", batch.first_bag.back(), width);
    const auto compare = [&](const auto& of_all, const auto& of_rank) {
      of_all();
      comm.run(of_rank);
      REQUIRE(same_table(exec, big, table));
      REQUIRE(state.steps() == shared.steps());
    };
    compare(
        [&] {
          ferry::step_bags(exec, rule, table, state, batch.rows, batch.offsets, batch.grads, pooling, bounds)
              .wait();
        },
        [&](int rank) {
          ferry::step_bags(exec, rule, big, shared, batch.rows_of[place(rank)], batch.offsets_of[place(rank)],
                           batch.grads_of[place(rank)], pooling, bounds)
              .wait();
        });
    if constexpr (Pooling::selects) {
      ferry::tensor<Grad, host> out("out", batch.first_bag.back(), width);
      compare(
          [&] {
            ferry::gather_bags(exec, table, batch.rows, batch.offsets, out, positions, pooling, bounds)
                .wait();
            ferry::step_bags(exec, rule, table, state, batch.rows, batch.offsets, batch.grads, positions,
                             pooling, bounds)
                .wait();
          },
          [&](int rank) {
            const auto plan = ferry::make_plan(exec, batch.rows_of[place(rank)], big, bounds);
            const auto& offsets = batch.offsets_of[place(rank)];
            ferry::tensor<Grad, host> mine("mine", offsets.size() - 1, width);
            ferry::tensor<std::int64_t, host> rank_maxima("its", offsets.size() - 1, width);
            ferry::gather_bags(exec, big, plan, offsets, mine, rank_maxima, pooling, bounds).wait();
            ferry::step_bags(exec, rule, big, shared, plan, offsets, batch.grads_of[place(rank)], rank_maxima,
                             pooling, bounds)
                .wait();
          });
    } else {
      ferry::tensor<double, host> weight_grads("weight_grads", batch.rows.size());
      ferry::init::constant(exec, weight_grads, -7);
      compare(
          [&] {
            ferry::step_bags(exec, rule, table, state, batch.rows, batch.offsets, batch.grads, batch.weights,
                             weight_grads, pooling, bounds)
                .wait();
          },
          [&](int rank) {
            const auto plan = ferry::make_plan(exec, batch.rows_of[place(rank)], big, bounds);
            ferry::tensor<double, host> mine("mine", batch.rows_of[place(rank)].size());
            ferry::init::constant(exec, mine, -7);
            ferry::step_bags(exec, rule, big, shared, plan, batch.offsets_of[place(rank)],
                             batch.grads_of[place(rank)], batch.weights_of[place(rank)], mine, pooling,
                             bounds)
                .wait();
            expect(
                same_bits(mine.data(), weight_grads.data() + batch.first_position[place(rank)], mine.size()),
                "gradients of weights");
          });
    }
    // By one thread for the group.
    ferry::step_bags(exec, rule, table, state, batch.rows, batch.offsets, batch.grads, pooling, bounds)
        .wait();
    ferry::step_bags(exec, rule, big, shared, batch.rows, batch.offsets, batch.grads, pooling, bounds).wait();
    REQUIRE(same_table(exec, big, table));
  });
}

}  // namespace

TEST_CASE("bags of a sharded table are pooled as those of an ordinary one", "[distributed]") {
  namespace pooling = ferry::pooling;  // `max` alone is CUDA's, too
  compare_gathers<float, float>(1, pooling::mean{}, ferry::bounds::check{});
  compare_gathers<float, double>(2, pooling::sum{}, ferry::bounds::skip{});
  compare_gathers<ferry::half_t, float>(3, pooling::max{}, ferry::bounds::check{});
  compare_gathers<float, float>(4, pooling::mean{}, ferry::bounds::clamp{});
  compare_gathers<float, float>(5, pooling::max{}, ferry::bounds::skip{});
}

TEST_CASE("step_bags on a sharded table has the bits of an ordinary one", "[distributed]") {
  namespace pooling = ferry::pooling;  // `max` alone is CUDA's, too
  const ferry::optim::adam adam{.lr = 0.01};
  const ferry::optim::adagrad adagrad{.lr = 0.1};
  compare_steps<float, float>(6, adam, pooling::mean{}, ferry::bounds::check{});
  compare_steps<float, double>(7, adagrad, pooling::sum{}, ferry::bounds::skip{});
  compare_steps<ferry::half_t, float>(8, adagrad, pooling::max{}, ferry::bounds::check{});
  compare_steps<ferry::half_t, ferry::half_t>(9, adagrad, pooling::mean{}, ferry::bounds::skip{});
}

TEST_CASE("bad bags of a rank are its own in a gather and everyone's in a step", "[distributed]") {
  const watchdog guard("bad bags");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 40, width);
  ferry::tensor<float, host> before("before", 40, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::copy(exec, big, before).wait();
  const ferry::optim::sgd rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, big);
  const std::vector<std::int64_t> good{1, 2, 3, 4}, bad{1, 2, 99, 4}, offsets{0, 2, 4}, wrong{0, 5, 4};
  comm.run([&](int rank) {
    ferry::tensor<float, host> out("out", 2, width), grads("grads", 2, width);
    ferry::init::constant(exec, out, 5);
    ferry::init::constant(exec, grads, 1);
    const auto has = [](const std::string& text, const char* part) {
      expect(text.find(part) != std::string::npos, text.c_str());
    };
    const auto pool = [&](const auto& mine, const auto& bags) {
      ferry::gather_bags(exec, big, mine, bags, out, ferry::pooling::sum{}).wait();
    };
    const auto learn = [&](const auto& mine, const auto& bags) {
      ferry::step_bags(exec, rule, big, state, mine, bags, grads, ferry::pooling::sum{}).wait();
    };
    if (rank == 1) {
      const auto text = said<ferry::out_of_range>([&] { pool(bad, offsets); });
      has(text, "ferry::gather_bags: 1 of 4 indices are outside of 'w' [40 x 6]");
      has(text, "index 99 at position 2");
      expect(out(0, 0) != 5 && out(1, 0) == 5, "the bags concerned keep their contents");
      has(said<ferry::out_of_range>([&] { pool(good, wrong); }), "offsets[1] = 5");
    } else {
      pool(good, offsets);
      pool(good, offsets);
    }
    auto text = said<ferry::out_of_range>([&] { learn(rank == 2 ? bad : good, offsets); });
    has(text, "index 99 at position 2 of rank 2");
    text = said<ferry::out_of_range>([&] { learn(good, rank == 1 ? wrong : offsets); });
    has(text, "offsets[1] = 5 of rank 1");
    expect(state.steps() == 0, "a refused step does not count");
    if (rank == 0) {
      ferry::tensor<float, host> narrow("narrow", 2, width - 1);
      has(said<ferry::invalid_argument>(
              [&] { ferry::gather_bags(exec, big, good, offsets, narrow, ferry::pooling::sum{}).wait(); }),
          "'narrow'");
    } else {
      has(said<ferry::peer_error>([&] { pool(good, offsets); }), "'narrow'");
    }
    grads(1, 2) = std::numeric_limits<float>::infinity();
    text = said<ferry::invalid_argument>([&] {
      ferry::step_bags(exec, rule, big, state, good, offsets, grads, ferry::nonfinite::reject{}).wait();
    });
    has(text, "of rank 0");
    ferry::step_bags(exec, rule, big, state, good, 2, grads, ferry::nonfinite::skip{}).wait();
    expect(state.skipped() == 1 && state.steps() == 0, "a skipped step");
  });
  REQUIRE(same_table(exec, big, before));
}

TEST_CASE("an index outside of all bags is no error, also if each row comes once", "[distributed][bags]") {
  const watchdog guard("indices outside of bags");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 40, width);
  ferry::init::constant(exec, big, 1);
  const std::vector<std::int64_t> indices{1, 2, 1, 99}, offsets{0, 2, 3}, wide{0, 2, 4};
  comm.run([&](int) {
    ferry::tensor<float, host> out("out", 2, width);
    ferry::gather_bags(exec, big, indices, offsets, out, ferry::pooling::sum{}).wait();
    ferry::init::constant(exec, out, 5);
    ferry::gather_bags(exec, big, indices, offsets, out, ferry::pooling::sum{}, ferry::path::exchange{})
        .wait();
    expect(out(0, 0) == 2 && out(1, 0) == 1, "pooled rows");
    const auto text = said<ferry::out_of_range>([&] {
      ferry::gather_bags(exec, big, indices, wide, out, ferry::pooling::sum{}, ferry::path::exchange{})
          .wait();
    });
    expect(text.find("index 99 at position 3") != std::string::npos, text.c_str());
  });
}

TEST_CASE("a rank whose bags do not fit, or that differs, tells the others", "[distributed]") {
  const watchdog guard("failures of bags");
  const exec_space exec;
  const auto comm = group_of(3);
  ferry::sharded_table<float, host> big("w", comm, 40, width);
  ferry::tensor<float, host> before("before", 40, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::copy(exec, big, before).wait();
  const ferry::optim::sgd rule{.lr = 0.1};
  auto state = ferry::optim::make_state(rule, big);
  const std::vector<std::int64_t> rows{1, 2, 3, 4}, offsets{0, 2, 4};
  comm.run([&](int rank) {
    ferry::tensor<float, host> grads("grads", 2, width), five("five", 5, width);
    ferry::init::constant(exec, grads, 1);
    const std::vector<float> weights{1, 2, 3, 4}, few{1, 2};
    const auto fails = [&](const auto& act) {
      if (rank == 1)
        expect(!said<ferry::invalid_argument>(act).empty(), "its own error");
      else
        expect(said<ferry::peer_error>(act).find("rank 1 failed") != std::string::npos, "that of rank 1");
    };
    fails([&] { ferry::step_bags(exec, rule, big, state, rows, offsets, rank == 1 ? five : grads).wait(); });
    fails([&] {
      ferry::step_bags(exec, rule, big, state, rows, offsets, grads, rank == 1 ? few : weights,
                       ferry::pooling::sum{})
          .wait();
    });
    fails([&] { ferry::step_bags(exec, rule, big, state, rows, rank == 1 ? 3 : 2, grads).wait(); });
    fails([&] {
      ferry::gather_bags(exec, big, rows, offsets, grads, rank == 1 ? few : weights, ferry::pooling::sum{})
          .wait();
    });
    expect(state.steps() == 0, "a refused step does not count");
    comm.barrier();
  });
  REQUIRE(same_table(exec, big, before));
  comm.run([&](int rank) {
    ferry::tensor<float, host> grads("grads", 2, width);
    ferry::init::constant(exec, grads, 1);
    expect(!said<ferry::protocol_error>([&] {
              if (rank == 0)
                ferry::step_bags(exec, rule, big, state, rows, offsets, grads, ferry::pooling::sum{}).wait();
              else
                ferry::step_bags(exec, rule, big, state, rows, offsets, grads, ferry::pooling::mean{}).wait();
            }).empty(),
           "ranks differ in the pooling");
  });
}

TEST_CASE("messages of ranks about unsigned offsets are unsigned", "[distributed][bags]") {
  const watchdog guard("unsigned offsets");
  const exec_space exec;
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> big("w", comm, 30, width);
  ferry::init::zeros(exec, big);
  const ferry::optim::sgd rule;
  auto state = ferry::optim::make_state(rule, big);
  const std::vector<std::int64_t> named{1, 2, 3};
  ferry::tensor<float, host> pooled("pooled", 2, width);
  ferry::init::zeros(exec, pooled);
  std::vector<std::string> gathered(2), stepped(2);
  comm.run([&](int rank) {
    std::vector<std::uint64_t> offsets{0, 1, 3};
    if (rank == 1) offsets[1] = ~std::uint64_t{0} - 1;
    ferry::tensor<float, host> out("out", 2, width);
    gathered[place(rank)] = said<ferry::out_of_range>(
        [&] { ferry::gather_bags(exec, big, named, offsets, out, ferry::pooling::sum{}).wait(); });
    stepped[place(rank)] = said<ferry::out_of_range>([&] {
      ferry::step_bags(exec, rule, big, state, named, offsets, pooled, ferry::pooling::sum{}).wait();
    });
  });
  CHECK(gathered[0].empty());
  for (const auto& text : {gathered[1], stepped[0], stepped[1]}) {
    INFO(text);
    CHECK(has(text, "offsets[1] = 18446744073709551614"));
  }
}

}  // namespace ferry_test::bags_test
