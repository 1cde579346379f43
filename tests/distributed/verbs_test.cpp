// SPDX-License-Identifier: Apache-2.0
#include "distributed/routes.hpp"

#include <ferry/bags.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// The table of cases of verbs on rows: elements, spaces, policies, sizes.
namespace ferry_test::verbs_test {

namespace {

namespace dup = ferry::duplicates;

route_suite suite_of(std::uint64_t salt) { return {all_groups(), generator(salt)}; }

}  // namespace

TEST_CASE("a sharded gather gives the rows of an ordinary table", "[distributed][kernels][peer]") {
  const watchdog guard("sharded gathers", std::chrono::seconds(120));
  auto suite = suite_of(1);
  compare_gathers<float, float, std::int64_t, device>(suite, "gather");
  compare_gathers<float, double, std::uint32_t, host, ferry::bounds::check, some_shardings>(
      suite, "gather of doubles from host memory");
  compare_gathers<float, float, std::int32_t, host, ferry::bounds::skip>(suite, "gather, skip");
  compare_gathers<float, float, std::int64_t, host, ferry::bounds::clamp, one_sharding>(suite,
                                                                                        "gather, clamp");
}

TEST_CASE("sharded writes do what ordinary ones do", "[distributed][kernels]") {
  const watchdog guard("sharded writes", std::chrono::seconds(120));
  auto suite = suite_of(2);
  compare_writes<float, float, std::int64_t, device, all_shardings>(suite, "scatter", scattering<>{});
  compare_writes<float, float, std::int64_t, host, some_shardings>(suite, "scatter_add", adding<>{});
  compare_writes<double>(suite, "scatter, first", scattering<dup::first>{});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter, first, of a device",
                                                     scattering<dup::first>{});
  compare_writes<ferry::half_t>(suite, "scatter, mean", scattering<dup::mean>{});
  compare_writes<float, float, std::int64_t, device>(suite, "scatter, reject", scattering<dup::reject>{},
                                                     {.repeats = false});
  compare_writes<float>(suite, "scatter, assume_unique", scattering<dup::assume_unique>{},
                        {.repeats = false});
  compare_writes<std::int32_t>(suite, "scatter_add, mean, of integers", adding<dup::mean>{});
  compare_writes<float, float, std::int32_t, device>(suite, "scatter_add, skip",
                                                     adding<ferry::bounds::skip>{});
  compare_writes<float>(suite, "scatter_add, clamp", adding<ferry::bounds::clamp>{});
  compare_writes<float, float, std::int64_t, device>(suite, "large scatter", scattering<>{}, {.scale = 25});
  compare_writes<float, float, std::int64_t, device>(
      suite, "large scatter, first, skip", scattering<dup::first, ferry::bounds::skip>{}, {.scale = 25});
  compare_writes<float, float, std::int64_t, device>(suite, "large scatter, assume_unique",
                                                     scattering<dup::assume_unique>{},
                                                     {.repeats = false, .scale = 100});
}

TEST_CASE("sharded steps give the bits of steps on an ordinary table, and its states",
          "[distributed][kernels]") {
  const watchdog guard("sharded steps", std::chrono::seconds(120));
  auto suite = suite_of(3);
  namespace optim = ferry::optim;
  compare_writes<float, float, std::int64_t, device, some_shardings>(suite, "adam on devices",
                                                                     step_by_adam<>());
  compare_writes<float, float, std::int64_t, host, all_shardings>(suite, "adam, per_row",
                                                                  step_by_adam<ferry::step_count::per_row>());
  const auto momentum = [](std::size_t) { return optim::sgd{.lr = 0.1, .momentum = 0.9}; };
  compare_writes<float, double>(suite, "sgd, mean", step_with<dup::mean>(momentum));
  // Random numbers and look-ups of a row go by its number in the whole table.
  compare_writes<ferry::bhalf_t, float, std::int64_t, host, all_shardings>(
      suite, "sgd, stochastic", step_with<ferry::rounding::stochastic>(momentum));
  compare_writes<float>(suite, "rowwise_adagrad",
                        step_with([](std::size_t) { return optim::rowwise_adagrad{.lr = 0.1}; }));
  ferry::tensor<float, host> factors("factors", 150);
  ferry::tensor<std::uint8_t, host> mask("mask", 150);
  for (std::size_t row = 0; row < 150; ++row) {
    factors.data()[row] = static_cast<float>(suite.random() % 16) / 8.0f;
    mask.data()[row] = suite.random() % 4 == 0 ? 1 : 0;
  }
  compare_writes<float, float, std::int64_t, host, all_shardings>(
      suite, "adam with arrays of rows", step_with([&](std::size_t rows) {
        return optim::chain{optim::adam{.lr = 0.01}, optim::clip_value{0.5},
                            optim::row_rates(factors.first(rows)), optim::frozen_rows(mask.first(rows))};
      }));
}

TEST_CASE("reduce::by_rank adds the sums of the ranks in their order", "[distributed][kernels]") {
  const watchdog guard("reduce::by_rank", std::chrono::seconds(120));
  auto suite = suite_of(4);
  compare_writes<float, float, std::int64_t, device, some_shardings, true>(suite, "scatter_add by rank",
                                                                           adding<>{});
  compare_writes<double, double, std::int64_t, host, one_sharding, true>(suite, "doubles by rank",
                                                                         adding<>{});
  compare_writes<std::int32_t, std::int32_t, std::int64_t, host, one_sharding, true>(
      suite, "integers by rank", adding<>{});
  compare_writes<float, float, std::int64_t, host, one_sharding, true>(suite, "step by rank",
                                                                       step_by_adam<>());
  compare_writes<ferry::half_t, ferry::half_t, std::int64_t, host, one_sharding, true>(
      suite, "step of halves by rank", step_by_adam<>());
}

TEST_CASE("elements larger than their alignment are scattered whole", "[distributed][kernels]") {
  using triple = std::array<float, 3>;
  const watchdog guard("large elements");
  auto random = generator(47);
  constexpr std::size_t rows = 57, columns = 3;
  const exec_space first;
  for (const auto& comm : all_groups()) {
    CAPTURE(comm.size());
    const auto ranks = static_cast<std::size_t>(comm.size());
    ferry::sharded_table<triple, device> big("w", comm, rows, columns);
    std::vector<triple> expected(rows * columns, triple{-1, -2, -3});
    ferry::copy(first, on_device(first, comm.device(0), expected, columns), big).wait();
    std::vector<std::vector<std::int64_t>> named(ranks);
    std::vector<std::vector<triple>> values(ranks);
    for (std::size_t row = 0; row < rows; ++row) {
      named[row % ranks].push_back(static_cast<std::int64_t>(row));
      for (std::size_t c = 0; c < columns; ++c) {
        const auto number = static_cast<float>(random() % 1000);
        expected[row * columns + c] = {number, number + 0.25f, number + 0.5f};
        values[row % ranks].push_back(expected[row * columns + c]);
      }
    }
    run_ranks(comm, [&](int rank, const auto& exec) {
      const auto r = static_cast<std::size_t>(rank);
      const auto batch = on_device(exec, comm.device(rank), values[r], columns);
      ferry::scatter(exec, big, on_device(exec, comm.device(rank), named[r]), batch).wait();
    });
    CHECK(contents(first, big) == expected);
  }
}

TEST_CASE("reduce::in_order is the default, and ranks must agree on the order", "[distributed]") {
  const watchdog guard("orders of sums");
  const exec_space exec;
  auto random = generator(6);
  const batches<float> batch(random, 2, 30, 60);
  const auto comm = group_of(2);
  ferry::sharded_table<float, host> a("a", comm, 30, width), b("b", comm, 30, width);
  ferry::tensor<float, host> as_b("as_b", 30, width);
  ferry::init::zeros(exec, a);
  ferry::init::zeros(exec, b);
  comm.run([&](int rank) {
    ferry::scatter_add(exec, a, batch.indices_of(rank), batch.values_of(rank)).wait();
    ferry::scatter_add(exec, b, batch.indices_of(rank), batch.values_of(rank), ferry::reduce::in_order{},
                       ferry::policies<ferry::bounds::check>{})
        .wait();
  });
  ferry::copy(exec, b, as_b).wait();
  REQUIRE(same_table(exec, a, as_b));
  comm.run([&](int rank) {
    expect(!said<ferry::protocol_error>([&] {
              if (rank == 0)
                ferry::scatter_add(exec, a, batch.indices_of(rank), batch.values_of(rank)).wait();
              else
                ferry::scatter_add(exec, a, batch.indices_of(rank), batch.values_of(rank),
                                   ferry::reduce::by_rank{})
                    .wait();
            }).empty(),
           "ranks differ in the order of sums");
  });
}

TEST_CASE("ranks with values in different spaces share a plan", "[distributed][kernels]") {
  if (!instances_work) return;
  const watchdog guard("plans of values in different spaces");
  const exec_space first;
  const auto check = [&]<class Space>(Space, const ferry::communicator& comm) {
    ferry::sharded_table<float, Space> table("w", comm, 20, width);
    ferry::init::constant(first, table, 0);
    const ferry::optim::sgd rule{.lr = 0.5};
    auto state = ferry::optim::make_state(rule, table);
    run_ranks(comm, [&](int rank, const auto& exec) {
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
      const std::vector<float> ones(rows.size() * width, 1.0f);
      if (rank == 0)
        write(on_device(exec, comm.device(rank), ones, width));
      else if (rank == 1)
        write(tensor_of(ones, width));
      else
        write(on_device<ferry::pageable_space>(exec, {}, ones, width));
    });
    const auto result = contents(first, table);
    for (std::size_t row = 0; row < 20; ++row)
      CHECK(result[row * width] == static_cast<float>(comm.size()) * (row == 3   ? 3.0f
                                                                      : row == 4 ? 1.5f
                                                                                 : 0.0f));
  };
  for (const auto& comm : all_groups()) {
    check(host{}, comm);
    check(device{}, comm);
  }
}

TEST_CASE("batches of sizes about the edges of kernels go to their owners", "[distributed][route]") {
  const watchdog guard("sizes of batches", std::chrono::seconds(120));
  const exec_space first;
  auto random = generator(5);
  constexpr std::size_t rows = 300;
  // About the lengths of chunks, of what a thread reads at once, and of a block.
  constexpr std::size_t sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129, 1023, 1025, 20001};
  const auto check = [&]<class Spread>(const ferry::communicator& comm, const Spread& spread) {
    ferry::tensor<float, host> table("w", rows, 1);
    ferry::sharded_table<float, host, Spread> big("w", comm, rows, 1, spread);
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
    for (const std::size_t count : sizes) {
      std::vector<std::size_t> counts(static_cast<std::size_t>(comm.size()), count % 3);
      counts[count % counts.size()] = count;
      batches<float, std::int32_t> batch(random, counts, rows, true, 1);
      batch.make_uneven();
      ferry::tensor<float, host> expected("expected", batch.rows.size(), 1);
      ferry::scatter_add(first, table, batch.rows, batch.whole).wait();
      ferry::gather(first, table, batch.rows, expected).wait();
      ferry::scatter(first, table, batch.rows, batch.whole).wait();
      comm.run([&](int rank) {
        const exec_space exec;
        const auto& mine = batch.indices_of(rank);
        ferry::tensor<float, host> out("out", mine.size(), 1), twin("twin", mine.size(), 1);
        ferry::scatter_add(exec, big, mine, batch.values_of(rank)).wait();
        ferry::gather(exec, big, mine, out, ferry::path::exchange{}).wait();
        ferry::gather(exec, big, mine, twin, ferry::path::direct{}).wait();
        ferry::scatter(exec, big, mine, batch.values_of(rank)).wait();
        for (const auto* result : {&out, &twin})
          expect(same_bits(result->data(), expected.data() + batch.at(rank), mine.size()), "gathered rows");
      });
      INFO(comm.size() << " ranks, " << Spread::name << ", " << count << " positions of a rank");
      REQUIRE(same_table(first, big, table));
    }
  };
  for (const int ranks : {1, 2, 8, 17, 70}) {  // kernels reach up to 64 ranks
    const auto comm = group_of(ranks);
    check(comm, any_sharding{static_cast<any_sharding::kind>(ranks % 4), ranks - 1});
    if (ranks == 8 || ranks == 70) check(comm, draw_sharding<ferry::sharding::dealt>(random, rows, ranks));
  }
}

}  // namespace ferry_test::verbs_test
