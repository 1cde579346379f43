// SPDX-License-Identifier: Apache-2.0
#include "distributed/bag_routes.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

/// The table of cases of bags, and what ranks may not pass.
namespace ferry_test::bags_test {

using Catch::Matchers::ContainsSubstring;
namespace pooling = ferry::pooling;  // `max` alone is CUDA's, too
namespace bounds = ferry::bounds;

namespace {

constexpr ferry::optim::adam adam{.lr = 0.01};
constexpr ferry::optim::adagrad adagrad{.lr = 0.1};
constexpr ferry::optim::sgd sgd{.lr = 0.1};

route_suite suite_of(std::uint64_t salt) { return {all_groups(), generator(salt)}; }

/// A table, and a state for it.
template <class Space>
struct small_step {
  const exec_space first{};
  ferry::communicator comm;
  ferry::sharded_table<float, Space> big;
  std::vector<float> before;
  ferry::optim::sgd rule{.lr = 0.1};
  decltype(ferry::optim::make_state(rule, big)) state;

  explicit small_step(const ferry::communicator& group)
      : comm(group), big("w", comm, 40, width), state(ferry::optim::make_state(rule, big)) {
    ferry::init::uniform(first, big, -1, 1, 3);
    before = contents(first, big);
  }
  [[nodiscard]] bool is_untouched() const { return contents(first, big) == before && state.steps() == 0; }
};

std::vector<float> numbers_of(const exec_space& exec, const ferry::tensor<float, device>& list) {
  std::vector<float> numbers(list.rows());
  ferry::copy(exec, list, numbers).wait();
  return numbers;
}

}  // namespace

TEST_CASE("bags of a sharded table are pooled, and stepped on, as those of an ordinary one",
          "[distributed][kernels]") {
  const watchdog guard("sharded bags", std::chrono::seconds(240));
  auto suite = suite_of(1);
  compare_bags<float, float, std::int64_t, float, device, all_shardings>(suite, "bags, mean", adam,
                                                                         pooling::mean{}, bounds::check{});
  compare_bags<float, double, std::int32_t, double, host, one_sharding>(suite, "bags, sum, skip", adagrad,
                                                                        pooling::sum{}, bounds::skip{});
  compare_bags<ferry::half_t, ferry::half_t, std::int64_t, std::int32_t, device, one_sharding>(
      suite, "bags of halves, mean, clamp", adagrad, pooling::mean{}, bounds::clamp{});
  compare_bags<float, float, std::int32_t, float, host, some_shardings>(suite, "bags, max, skip", adagrad,
                                                                        pooling::max{}, bounds::skip{});
  compare_bags<ferry::half_t, float, std::int64_t, float, device, one_sharding>(
      suite, "bags of halves, max", adagrad, pooling::max{}, bounds::check{});
}

TEST_CASE("bags of several sharded tables are pooled, and stepped on, as those of each",
          "[distributed][lists][kernels]") {
  const watchdog guard("bags of several sharded tables", std::chrono::seconds(240));
  auto suite = suite_of(2);
  compare_lists<float, float, std::int64_t, device, all_shardings>(suite, "lists, adam", adam,
                                                                   pooling::mean{}, bounds::check{});
  compare_lists<float, double, std::int32_t, host, one_sharding>(suite, "lists, adagrad, skip", adagrad,
                                                                 pooling::sum{}, bounds::skip{});
  compare_lists<ferry::half_t, float, std::int64_t, host, one_sharding>(
      suite, "lists of halves, skip", adagrad, pooling::mean{}, bounds::skip{});
  if (ferry::execution_backend<exec_space>::reaches_pageable(exec_space{}))
    compare_lists<double, float, std::uint32_t, ferry::pageable_space, one_sharding>(
        suite, "lists of doubles, clamp", sgd, pooling::sum{}, bounds::clamp{});
  compare_lists<float, float, std::int64_t, host, one_sharding>(suite, "lists, rowwise_adagrad",
                                                                ferry::optim::rowwise_adagrad{.lr = 0.1},
                                                                pooling::mean{}, bounds::check{});
  compare_lists<float, float, std::int32_t, host, one_sharding>(
      suite, "lists, per_row", adam, pooling::mean{}, bounds::check{}, ferry::step_count::per_row{});
  compare_lists<ferry::half_t, float, std::int32_t, device, one_sharding>(
      suite, "lists, stochastic", adagrad, pooling::sum{}, bounds::check{}, ferry::rounding::stochastic{});
  compare_lists<ferry::half_t, float, std::uint32_t, host, one_sharding>(suite, "lists, max", sgd,
                                                                         pooling::max{}, bounds::check{});
}

TEST_CASE(
    "bags of several sharded tables are the sums of their rows, and steps subtract the sums of the shares",
    "[distributed][lists]") {
  const watchdog guard("plain loops of lists");
  const exec_space exec;
  auto random = generator(3);
  for (const int ranks : {1, 3}) {
    const list_input<double> input(random, ranks, {40, 0, 1, 77}, {5, 8, 12, 3});
    const auto comm = group_of(ranks);
    std::vector<ferry::sharded_table<double, host>> tables;
    for (std::size_t t = 0; t < input.rows.size(); ++t) {
      tables.emplace_back("w", comm, input.rows[t], input.widths[t]);
      ferry::init::uniform(exec, tables[t], -1, 1, t);
    }
    const ferry::optim::sgd rule{.lr = 0.5};
    auto states = states_of(rule, tables);
    std::vector<std::vector<double>> expected, magnitudes;
    for (const auto& table : tables) {
      expected.push_back(contents(exec, table));
      magnitudes.emplace_back(table.rows() * table.width(), 1.0);
    }
    const auto before = expected;
    /// Calls act(bag, position, size of the bag, element of the row) for all of a rank's table.
    const auto for_positions = [&](const auto& batch, std::size_t t, const auto& act) {
      for (std::size_t b = 0; b < batch.bags; ++b) {
        const auto begin = static_cast<std::size_t>(batch.offsets[t * batch.bags + b]);
        const auto end = static_cast<std::size_t>(batch.offsets[t * batch.bags + b + 1]);
        for (std::size_t p = begin; p < end; ++p)
          for (std::size_t c = 0; c < input.widths[t]; ++c)
            act(b * input.width() + input.first_column[t] + c, p, end - begin,
                static_cast<std::size_t>(batch.ids[p]) * input.widths[t] + c);
      }
    };
    for (const auto& batch : input.ranks)
      for (std::size_t t = 0; t < tables.size(); ++t)
        for_positions(batch, t, [&](std::size_t place, std::size_t p, std::size_t size, std::size_t element) {
          const double share =
              static_cast<double>(batch.weights[p]) * batch.grads[place] / static_cast<double>(size);
          expected[t][element] -= 0.5 * share;
          magnitudes[t][element] += std::abs(share);
        });
    comm.run([&](int rank) {
      const auto& batch = input.of_rank(rank);
      ferry::tensor<double, host> out("out", batch.bags, input.width());
      ferry::gather_bags(exec, ferry::for_each_table(tables), batch.ids, batch.offsets, out, batch.weights,
                         pooling::sum{})
          .wait();
      std::vector<double> sums(out.size()), sizes(out.size(), 1.0);
      for (std::size_t t = 0; t < tables.size(); ++t)
        for_positions(batch, t, [&](std::size_t place, std::size_t p, std::size_t, std::size_t element) {
          const double term = static_cast<double>(batch.weights[p]) * before[t][element];
          sums[place] += term;
          sizes[place] += std::abs(term);
        });
      for (std::size_t i = 0; i < sums.size(); ++i)
        expect(std::abs(out.data()[i] - sums[i]) <= 1e-14 * sizes[i], "the sum of the rows of a bag");
      comm.barrier();
      ferry::step_bags(exec, rule, ferry::for_each_table(tables), states, batch.ids, batch.offsets,
                       tensor_of(batch.grads, input.width()), batch.weights)
          .wait();
    });
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const auto result = contents(exec, tables[t]);
      for (std::size_t i = 0; i < result.size(); ++i)
        REQUIRE(std::abs(result[i] - expected[t][i]) <= 1e-14 * magnitudes[t][i]);
    }
  }
}

TEST_CASE("a rank without bags pools several sharded tables with the others", "[distributed][lists]") {
  const watchdog guard("a rank without bags");
  // Shardings by hand are routed by hosts. The offsets of rank 1 leave its positions without a bag.
  const auto comm = ferry::communicator::threads(2);
  ferry::sharding::dealt deal(4, [](std::int64_t row) { return static_cast<int>(row % 2); });
  using table_type = ferry::sharded_table<float, host, ferry::sharding::dealt>;
  table_type first("first", comm, 4, 3, deal), second("second", comm, 4, 2, deal);
  const exec_space exec;
  ferry::init::constant(exec, first, 1);
  ferry::init::constant(exec, second, 2);
  comm.run([&](int rank) {
    const std::vector<std::int64_t> ids{0, 1};
    const auto offsets = rank == 0 ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{0};
    ferry::tensor<float, host> out("out", rank == 0 ? 1 : 0, 5);
    ferry::init::constant(exec, out, -7);
    ferry::gather_bags(exec, ferry::for_each_table(first, second), ids, offsets, out, ferry::pooling::sum{})
        .wait();
    if (rank == 0)
      for (std::size_t c = 0; c < 5; ++c) expect(out(0, c) == (c < 3 ? 1.0f : 2.0f), "the row of a bag");
  });
}

TEST_CASE("bad bags of a rank are its own in a gather", "[distributed]") {
  const watchdog guard("bad bags");
  small_step<host> kit(group_of(3));
  const auto& [exec, big] = std::tie(kit.first, kit.big);
  const std::vector<std::int64_t> good{1, 2, 3, 4}, bad{1, 2, 99, 4}, offsets{0, 2, 4}, wrong{0, 5, 4};
  const std::vector<float> weights{1, 2, 3, 4}, few{1, 2};
  kit.comm.run([&](int rank) {
    ferry::tensor<float, host> out("out", 2, width), narrow("narrow", 2, width - 1);
    ferry::init::constant(exec, out, 5);
    const auto pool = [&](const auto& mine, const auto& bags) {
      return error_of([&] { ferry::gather_bags(exec, big, mine, bags, out, pooling::sum{}).wait(); });
    };
    auto text = pool(rank == 1 ? bad : good, offsets);
    expect(text.empty() == (rank != 1), text);
    if (rank == 1) {
      expect(has(text, "ferry::gather_bags: 1 of 4 indices are outside of 'w' [40 x 6]") &&
                 has(text, "index 99 at position 2"),
             text);
      expect(out(0, 0) != 5 && out(1, 0) == 5, "the bags concerned keep their contents");
    }
    text = pool(good, rank == 1 ? wrong : offsets);
    expect(rank == 1 ? has(text, "offsets[1] = 5") : text.empty(), text);
    // Arguments that do not fit are told to the others.
    text = error_of([&] {
      ferry::gather_bags(exec, big, good, offsets, rank == 1 ? narrow : out, pooling::sum{}).wait();
    });
    expect(text.starts_with(rank == 1 ? "own: " : "peer: ") && has(text, "'narrow'"), text);
    text = error_of([&] {
      ferry::gather_bags(exec, big, good, offsets, out, rank == 1 ? few : weights, pooling::sum{}).wait();
    });
    expect(text.starts_with(rank == 1 ? "own: " : "peer: "), text);
    text = error_of(
        [&] { ferry::step_bags(exec, kit.rule, kit.big, kit.state, good, rank == 1 ? 3 : 2, out).wait(); });
    expect(text.starts_with(rank == 1 ? "own: " : "peer: "), text);
    if (rank == 0) out(1, 2) = std::numeric_limits<float>::infinity();
    ferry::step_bags(exec, kit.rule, kit.big, kit.state, good, 2, out, ferry::nonfinite::skip{}).wait();
    expect(kit.state.skipped() == 1, "a skipped step");
  });
  REQUIRE(kit.is_untouched());
  for (const auto& text : errors_of_ranks(kit.comm, [&](int rank) {
         const ferry::tensor<float, host> grads("grads", 2, width);
         if (rank == 0)
           ferry::step_bags(exec, kit.rule, kit.big, kit.state, good, offsets, grads, pooling::sum{}).wait();
         else
           ferry::step_bags(exec, kit.rule, kit.big, kit.state, good, offsets, grads, pooling::mean{}).wait();
       }))
    CHECK(text.starts_with("protocol: "));
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
    gathered[static_cast<std::size_t>(rank)] = said<ferry::out_of_range>(
        [&] { ferry::gather_bags(exec, big, named, offsets, out, ferry::pooling::sum{}).wait(); });
    stepped[static_cast<std::size_t>(rank)] = said<ferry::out_of_range>([&] {
      ferry::step_bags(exec, rule, big, state, named, offsets, pooled, ferry::pooling::sum{}).wait();
    });
  });
  CHECK(gathered[0].empty());
  for (const auto& text : {gathered[1], stepped[0], stepped[1]}) {
    INFO(text);
    CHECK(has(text, "offsets[1] = 18446744073709551614"));
  }
}

TEST_CASE("gradients of weights may replace the weights", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("gradients in place of weights");
  const std::vector<std::int64_t> rows{1, 2, 1, 4}, offsets{0, 1, 4};
  for (const bool whole : {false, true}) {  // one thread for the group goes by lists
    small_step<device> apart(group_on({0, 0})), together(group_on({0, 0}));
    REQUIRE(contents(apart.first, apart.big) == contents(together.first, together.big));
    std::vector<char> equal(2, 1);
    const auto act = [&](std::size_t place, ferry::device home, const auto& exec) {
      const auto named = on_device(exec, home, rows), bags = on_device(exec, home, offsets);
      ferry::tensor<float, device> grads("grads", home, 2, width), weight_grads("weight_grads", home, 4);
      ferry::init::uniform(exec, grads, -1, 1, 7);
      auto weights = on_device(exec, home, std::vector<float>{3, -2, 5, 0.5F});
      ferry::step_bags(exec, apart.rule, apart.big, apart.state, named, bags, grads, weights, weight_grads)
          .wait();
      ferry::step_bags(exec, together.rule, together.big, together.state, named, bags, grads, weights,
                       weights)
          .wait();
      equal[place] = numbers_of(exec, weights) == numbers_of(exec, weight_grads) ? 1 : 0;
    };
    if (whole)
      act(0, apart.comm.device(0), apart.first);
    else
      apart.comm.run([&](int rank, const auto& exec) {
        const auto bound = together.comm.bind(rank);
        act(static_cast<std::size_t>(rank), apart.comm.device(rank), exec);
      });
    CHECK(equal == std::vector<char>(2, 1));
    CHECK(contents(apart.first, apart.big) == contents(together.first, together.big));
  }
}

TEST_CASE("gradients of weights that overlap a shard, or that some ranks do not want, are refused",
          "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("refused gradients of weights");
  small_step<device> twin(group_on({0, 0}));
  const std::vector<std::int64_t> rows{1, 2}, offsets{0, 2};
  std::vector<std::string> messages(2);
  twin.comm.run([&](int rank, const auto& exec) {
    const auto named = on_device(exec, twin.comm.device(rank), rows);
    const auto bags = on_device(exec, twin.comm.device(rank), offsets);
    const auto weights = on_device(exec, twin.comm.device(rank), std::vector<float>{1, 2});
    ferry::tensor<float, device> grads("grads", twin.comm.device(rank), 1, width);
    ferry::init::constant(exec, grads, 1);
    ferry::tensor<float, device> weight_grads("weight_grads", twin.comm.device(rank), 2);
    const auto of_shard = twin.big.shard(rank).flat().first(2);
    const auto act = [&](auto& sink) {
      ferry::step_bags(exec, twin.rule, twin.big, twin.state, named, bags, grads, weights, sink).wait();
    };
    messages[static_cast<std::size_t>(rank)] = rank == 1
                                                   ? said<ferry::invalid_argument>([&] { act(of_shard); })
                                                   : said<ferry::peer_error>([&] { act(weight_grads); });
  });
  for (const auto& text : messages) CHECK_THAT(text, ContainsSubstring("overlap in memory"));
  CHECK(twin.is_untouched());
  twin.comm.run([&](int rank) {
    const exec_space exec;
    const std::vector<float> weights{1, 2};
    ferry::tensor<float, host> grads("grads", 1, width), weight_grads("weight_grads", 2);
    ferry::init::constant(exec, grads, 1);
    const auto text = said<ferry::protocol_error>([&] {
      if (rank == 0)
        ferry::step_bags(exec, twin.rule, twin.big, twin.state, rows, offsets, grads, weights, weight_grads)
            .wait();
      else
        ferry::step_bags(exec, twin.rule, twin.big, twin.state, rows, offsets, grads, weights).wait();
    });
    expect(!text.empty(), "ranks differ in the gradients of the weights");
  });
  CHECK(twin.is_untouched());
}

}  // namespace ferry_test::bags_test
