// SPDX-License-Identifier: Apache-2.0
#include "distributed/device_kit.hpp"
#include "distributed/sharded_lists.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cmath>
#include <limits>

/// step_bags on several sharded tables: against a step of each of the ordinary tables, and plain loops.
namespace ferry_test::step_lists_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::size_t rank_place(int rank) { return static_cast<std::size_t>(rank); }

/// Numbers of rows and widths: some tables have no rows, or none of a rank's.
std::pair<std::vector<std::size_t>, std::vector<std::size_t>> draw_tables(std::mt19937_64& random,
                                                                          bool may_lack_rows) {
  static const std::size_t widths[] = {1, 3, 4, 8, 31, 64, 130};
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> tables;
  const std::size_t count = 1 + random() % 6;
  for (std::size_t t = 0; t < count; ++t) {
    const bool lacks = may_lack_rows && random() % 6 == 0;
    tables.first.push_back(lacks ? 0 : 1 + random() % (random() % 3 == 0 ? 3 : 60));
    tables.second.push_back(widths[random() % std::size(widths)]);
  }
  return tables;
}

/// Steps of all ranks, and by one thread for the group, with weights and without.
template <class T, class V, class Index, class Space, class Rule, class Pooling, class Bounds,
          class... Policies>
void compare(std::uint64_t seed, const Rule& rule, Pooling pooling, Bounds bounds, Policies... policies) {
  const watchdog guard("steps of several sharded tables");
  const exec_space exec;
  auto random = generator(seed);
  constexpr bool strict = std::is_same_v<Bounds, ferry::bounds::check>;
  constexpr bool clamps = std::is_same_v<Bounds, ferry::bounds::clamp>;
  for_each_list_group([&](int ranks, bool messages, const auto& spread) {
    const auto [rows, widths] = draw_tables(random, !clamps);
    const list_input<V, Index> input(random, ranks, rows, widths, !strict);
    const auto comm = group_by(ranks, messages);
    using spread_type = std::remove_cvref_t<decltype(spread(0))>;
    list_of_tables<T, Space, spread_type> tables(exec, comm, input, spread);
    auto plain_states = states_of(rule, tables.plain, policies...);
    auto states = states_of(rule, tables.sharded, policies...);
    const auto step_plain = [&](bool weighs) {
      for (std::size_t t = 0; t < rows.size(); ++t) {
        const auto& bags = input.tables[t];
        const auto grads = tensor_of(bags.grads, widths[t]);
        if (weighs)
          ferry::step_bags(exec, rule, tables.plain[t], plain_states[t], bags.ids, bags.offsets, grads,
                           bags.weights, pooling, bounds, policies...)
              .wait();
        else
          ferry::step_bags(exec, rule, tables.plain[t], plain_states[t], bags.ids, bags.offsets, grads,
                           pooling, bounds, policies...)
              .wait();
      }
    };
    for (const bool weighs : {false, true}) {
      INFO((weighs ? "weighted, " : "") << spread_type::name << ", " << rows.size() << " tables");
      step_plain(weighs);
      comm.run([&](int rank) {
        const auto& batch = input.ranks[rank_place(rank)];
        const auto grads = tensor_of(batch.grads, input.width());
        const auto list = ferry::for_each_table(tables.sharded);
        if (weighs)
          ferry::step_bags(exec, rule, list, states, batch.ids, batch.offsets, grads, batch.weights, pooling,
                           bounds, policies...)
              .wait();
        else
          ferry::step_bags(exec, rule, list, states, batch.ids, batch.offsets, grads, pooling, bounds,
                           policies...)
              .wait();
      });
      REQUIRE(tables.first_difference(exec) == -1);
    }
    if (ranks == 1) {  // one thread for the group, whose batch is that of the only rank
      INFO("a thread for the group, " << spread_type::name);
      const auto& batch = input.ranks[0];
      step_plain(true);
      ferry::step_bags(exec, rule, ferry::for_each_table(tables.sharded), states, batch.ids, batch.offsets,
                       tensor_of(batch.grads, input.width()), batch.weights, pooling, bounds, policies...)
          .wait();
      REQUIRE(tables.first_difference(exec) == -1);
    }
    for (std::size_t t = 0; t < rows.size(); ++t) REQUIRE(states[t].steps() == plain_states[t].steps());
  });
}

/// Steps by ranks on devices, whose arrays lie there or, of every other rank, in host memory.
template <class T, class V, class Index, class Space, class Rule, class Pooling, class Bounds>
void compare_on_devices(std::uint64_t seed, const Rule& rule, Pooling pooling, Bounds bounds) {
  if (!instances_work) return;
  const watchdog guard("steps of several sharded tables on devices");
  const Kokkos::DefaultExecutionSpace exec;
  auto random = generator(seed);
  for (const int ranks : {1, 2, 3, 4})
    for (const bool same_device : {false, true}) {
      const auto ids = same_device ? std::vector<int>(rank_place(ranks), 0) : all_in_turn(ranks);
      INFO(ranks << " ranks, the last on device " << ids.back());
      const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
      const auto [rows, widths] = draw_tables(random, true);
      const list_input<V, Index> input(random, ranks, rows, widths,
                                       !std::is_same_v<Bounds, ferry::bounds::check>);
      list_of_tables<T, Space, ferry::sharding::cyclic> tables(
          exec, comm, input, [](std::size_t) { return ferry::sharding::cyclic{}; });
      auto plain_states = states_of(rule, tables.plain);
      auto states = states_of(rule, tables.sharded);
      for (const bool weighs : {false, true}) {
        for (std::size_t t = 0; t < rows.size(); ++t) {
          const auto& bags = input.tables[t];
          const auto grads = tensor_of(bags.grads, widths[t]);
          if (weighs)
            ferry::step_bags(exec, rule, tables.plain[t], plain_states[t], bags.ids, bags.offsets, grads,
                             bags.weights, pooling, bounds)
                .wait();
          else
            ferry::step_bags(exec, rule, tables.plain[t], plain_states[t], bags.ids, bags.offsets, grads,
                             pooling, bounds)
                .wait();
        }
        comm.run([&](int rank, const auto& instance) {
          const auto& batch = input.ranks[rank_place(rank)];
          const ferry::device home = comm.device(rank);
          const auto list = ferry::for_each_table(tables.sharded);
          const auto step_with = [&](const auto& named, const auto& offsets, const auto& grads,
                                     const auto& weights) {
            if (weighs)
              ferry::step_bags(instance, rule, list, states, named, offsets, grads, weights, pooling, bounds)
                  .wait();
            else
              ferry::step_bags(instance, rule, list, states, named, offsets, grads, pooling, bounds).wait();
          };
          if (weighs && rank % 2 == 1)
            step_with(batch.ids, batch.offsets, tensor_of(batch.grads, input.width()), batch.weights);
          else
            step_with(on_device(instance, home, batch.ids), on_device(instance, home, batch.offsets),
                      on_device(instance, home, batch.grads, input.width()),
                      on_device(instance, home, batch.weights));
        });
        REQUIRE(tables.first_difference(exec) == -1);
      }
    }
}

}  // namespace

TEST_CASE("a step of several sharded tables has the bits of a step for each", "[distributed][lists]") {
  compare<float, float, std::int64_t, host>(901, ferry::optim::adam{.lr = 0.01}, ferry::pooling::mean{},
                                            ferry::bounds::check{});
  compare<float, double, std::int32_t, host>(902, ferry::optim::adagrad{.lr = 0.1}, ferry::pooling::sum{},
                                             ferry::bounds::skip{});
  compare<ferry::half_t, float, std::int64_t, host>(903, ferry::optim::adagrad{.lr = 0.1},
                                                    ferry::pooling::mean{}, ferry::bounds::skip{});
  if (ferry::execution_backend<exec_space>::reaches_pageable(exec_space{}))
    compare<double, float, std::uint32_t, ferry::pageable_space>(
        904, ferry::optim::sgd{.lr = 0.1}, ferry::pooling::sum{}, ferry::bounds::clamp{});
}

TEST_CASE("a step of several sharded tables by policy has the bits of a step for each",
          "[distributed][lists]") {
  const ferry::optim::rowwise_adagrad rowwise{.lr = 0.1};
  compare<float, float, std::int64_t, host>(905, rowwise, ferry::pooling::mean{}, ferry::bounds::check{});
  compare<float, float, std::int32_t, host>(906, ferry::optim::adam{.lr = 0.1}, ferry::pooling::mean{},
                                            ferry::bounds::check{}, ferry::step_count::per_row{});
  compare<ferry::half_t, float, std::int32_t, host>(907, ferry::optim::adagrad{.lr = 0.1},
                                                    ferry::pooling::sum{}, ferry::bounds::check{},
                                                    ferry::rounding::stochastic{});
}

TEST_CASE("a step of several sharded tables by ranks on devices", "[distributed][lists][kernels]") {
  compare_on_devices<float, float, std::int64_t, ferry::device_space>(
      921, ferry::optim::adam{.lr = 0.01}, ferry::pooling::mean{}, ferry::bounds::skip{});
  compare_on_devices<float, float, std::int32_t, host>(922, ferry::optim::adagrad{.lr = 0.1},
                                                       ferry::pooling::sum{}, ferry::bounds::check{});
  compare_on_devices<ferry::half_t, double, std::int64_t, ferry::device_space>(
      923, ferry::optim::sgd{.lr = 0.01}, ferry::pooling::sum{}, ferry::bounds::check{});
}

TEST_CASE("a step of several sharded tables subtracts the sums of the shares", "[distributed][lists]") {
  const watchdog guard("sums of shares of lists");
  const exec_space exec;
  auto random = generator(931);
  for (const int ranks : {1, 2, 3, 4})
    for (const bool messages : {false, true}) {
      const auto [rows, widths] = draw_tables(random, true);
      const list_input<double> input(random, ranks, rows, widths);
      const auto comm = group_by(ranks, messages);
      list_of_tables<double, host, ferry::sharding::block> tables(
          exec, comm, input, [](std::size_t) { return ferry::sharding::block{}; });
      const ferry::optim::sgd rule{.lr = 0.5};
      auto states = states_of(rule, tables.sharded);
      comm.run([&](int rank) {
        const auto& batch = input.ranks[rank_place(rank)];
        ferry::step_bags(exec, rule, ferry::for_each_table(tables.sharded), states, batch.ids, batch.offsets,
                         tensor_of(batch.grads, input.width()), batch.weights)
            .wait();
      });
      for (std::size_t t = 0; t < rows.size(); ++t) {
        const std::size_t width = widths[t];
        std::vector<double> sums(rows[t] * width), magnitudes(rows[t] * width);
        for (const auto& batch : input.ranks)
          for (std::size_t b = 0; b < batch.bags; ++b) {
            const auto begin = static_cast<std::size_t>(batch.offsets[t * batch.bags + b]);
            const auto end = static_cast<std::size_t>(batch.offsets[t * batch.bags + b + 1]);
            for (std::size_t p = begin; p < end; ++p)
              for (std::size_t c = 0; c < width; ++c) {
                const double share = static_cast<double>(batch.weights[p]) *
                                     batch.grads[b * input.width() + input.first_column[t] + c] /
                                     static_cast<double>(end - begin);
                sums[static_cast<std::size_t>(batch.ids[p]) * width + c] += share;
                magnitudes[static_cast<std::size_t>(batch.ids[p]) * width + c] += std::abs(share);
              }
          }
        ferry::tensor<double, host> read("read", rows[t], width);
        ferry::copy(exec, tables.sharded[t], read).wait();
        for (std::size_t i = 0; i < sums.size(); ++i)
          REQUIRE(std::abs(read.data()[i] - (tables.plain[t].data()[i] - 0.5 * sums[i])) <=
                  1e-14 * (1 + magnitudes[i]));
      }
    }
}

}  // namespace ferry_test::step_lists_test
