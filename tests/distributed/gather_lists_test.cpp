// SPDX-License-Identifier: Apache-2.0
#include "distributed/device_kit.hpp"
#include "distributed/sharded_lists.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <limits>

/// gather_bags from several sharded tables: against a gather of each of the ordinary tables, and plain loops.
namespace ferry_test::gather_lists_test {

using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::size_t rank_place(int rank) { return static_cast<std::size_t>(rank); }

/// The bags of a rank, pooled from ordinary tables one by one.
template <class Out, class Tables, class Input, class Pooling, class Bounds, class... Weights>
ferry::tensor<Out, host> pooled_one_by_one(const exec_space& exec, const Tables& tables, const Input& input,
                                           std::size_t rank, bool weighs, Pooling pooling, Bounds bounds) {
  const auto& batch = input.ranks[rank];
  ferry::tensor<Out, host> whole("whole", batch.bags, input.width());
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::size_t width = input.widths[t];
    ferry::tensor<Out, host> part("part", batch.bags, width);
    ferry::init::constant(exec, part, -7);
    const auto begin = batch.offsets.begin() + static_cast<std::ptrdiff_t>(t * batch.bags);
    auto offsets = std::vector(begin, begin + static_cast<std::ptrdiff_t>(batch.bags) + 1);
    const auto first = static_cast<std::ptrdiff_t>(offsets.front()),
               last = static_cast<std::ptrdiff_t>(offsets.back());
    const auto ids = std::vector(batch.ids.begin() + first, batch.ids.begin() + last);
    const auto weights = std::vector(batch.weights.begin() + first, batch.weights.begin() + last);
    const auto shift = offsets.front();
    for (auto& offset : offsets) offset -= shift;
    if constexpr (!Pooling::selects)
      if (weighs) ferry::gather_bags(exec, tables[t], ids, offsets, part, weights, pooling, bounds).wait();
    if (!weighs) ferry::gather_bags(exec, tables[t], ids, offsets, part, pooling, bounds).wait();
    for (std::size_t b = 0; b < batch.bags; ++b)
      for (std::size_t c = 0; c < width; ++c) whole(b, input.first_column[t] + c) = part(b, c);
  }
  return whole;
}

template <class T, class Out, class Index, class Pooling, class Bounds>
void compare(std::uint64_t seed, Pooling pooling, Bounds bounds) {
  const watchdog guard("gathers from several sharded tables");
  const exec_space exec;
  auto random = generator(seed);
  constexpr bool strict = std::is_same_v<Bounds, ferry::bounds::check>;
  constexpr bool clamps = std::is_same_v<Bounds, ferry::bounds::clamp>;
  static const std::size_t widths[] = {1, 3, 4, 8, 31, 64, 132};
  for_each_list_group([&](int ranks, bool messages, const auto& spread) {
    std::vector<std::size_t> rows, columns;
    const bool whole_packets = random() % 2 == 0;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t t = 0; t < count; ++t) {
      rows.push_back(!clamps && random() % 6 == 0 ? 0 : 1 + random() % 60);
      columns.push_back(whole_packets ? 4 + 4 * (random() % 9) : widths[random() % std::size(widths)]);
    }
    const list_input<float, Index> input(random, ranks, rows, columns, !strict);
    const auto comm = group_by(ranks, messages);
    using spread_type = std::remove_cvref_t<decltype(spread(0))>;
    const list_of_tables<T, host, spread_type> tables(exec, comm, input, spread);
    INFO(spread_type::name << ", " << rows.size() << " tables");
    std::vector<ferry::tensor<Out, host>> expected, weighted;
    for (std::size_t r = 0; r < input.ranks.size(); ++r) {
      expected.push_back(pooled_one_by_one<Out>(exec, tables.plain, input, r, false, pooling, bounds));
      if (!Pooling::selects)
        weighted.push_back(pooled_one_by_one<Out>(exec, tables.plain, input, r, true, pooling, bounds));
    }
    const auto check = [&](std::size_t rank, auto... path) {
      const auto& batch = input.ranks[rank];
      ferry::tensor<Out, host> out("out", batch.bags, input.width());
      ferry::init::constant(exec, out, -7);
      const auto list = ferry::for_each_table(tables.sharded);
      ferry::gather_bags(exec, list, batch.ids, batch.offsets, out, pooling, bounds, path...).wait();
      expect(same_bits(out.data(), expected[rank].data(), out.size()), "pooled rows");
      if constexpr (!Pooling::selects) {
        ferry::init::constant(exec, out, -7);
        ferry::gather_bags(exec, list, batch.ids, batch.offsets, out, batch.weights, pooling, bounds, path...)
            .wait();
        expect(same_bits(out.data(), weighted[rank].data(), out.size()), "weighted rows");
      }
    };
    comm.run([&](int rank) {
      check(rank_place(rank));
      check(rank_place(rank), ferry::path::direct{});
    });
    if (ranks == 1) check(0);  // one thread for the group
  });
}

/// Gathers by ranks on devices, whose arrays lie there.
template <class T, class Space>
void compare_on_devices(std::uint64_t seed) {
  if (!instances_work) return;
  const watchdog guard("gathers from several sharded tables on devices");
  const Kokkos::DefaultExecutionSpace exec;
  auto random = generator(seed);
  for (const int ranks : {1, 2, 3, 4})
    for (const bool same_device : {false, true}) {
      const auto ids = same_device ? std::vector<int>(rank_place(ranks), 0) : all_in_turn(ranks);
      const auto comm = ferry::communicator::devices(ids, {.deadline = std::chrono::seconds(30)});
      const list_input<float> input(random, ranks, {40, 0, 1, 77}, {4, 8, 12, same_device ? 3U : 64U});
      const list_of_tables<T, Space, ferry::sharding::block> tables(
          exec, comm, input, [](std::size_t) { return ferry::sharding::block{}; });
      std::vector<ferry::tensor<float, host>> expected;
      for (std::size_t r = 0; r < input.ranks.size(); ++r)
        expected.push_back(pooled_one_by_one<float>(exec, tables.plain, input, r, true,
                                                    ferry::pooling::mean{}, ferry::bounds::check{}));
      std::vector<std::vector<float>> pooled(input.ranks.size());
      comm.run([&](int rank, const auto& instance) {
        const auto& batch = input.ranks[rank_place(rank)];
        const ferry::device home = comm.device(rank);
        ferry::tensor<float, ferry::device_space> out("out", home, batch.bags, input.width());
        ferry::gather_bags(instance, ferry::for_each_table(tables.sharded),
                           on_device(instance, home, batch.ids), on_device(instance, home, batch.offsets),
                           out, on_device(instance, home, batch.weights))
            .wait();
        pooled[rank_place(rank)] = contents(instance, out);
      });
      for (std::size_t r = 0; r < pooled.size(); ++r)
        REQUIRE(same_bits(pooled[r].data(), expected[r].data(), expected[r].size()));
    }
}

}  // namespace

TEST_CASE("bags of several sharded tables are pooled by ranks on devices", "[distributed][lists][kernels]") {
  compare_on_devices<float, ferry::device_space>(961);
  compare_on_devices<ferry::half_t, host>(962);
}

TEST_CASE("bags of several sharded tables are the sums of their rows", "[distributed][lists]") {
  const watchdog guard("sums of rows of lists");
  const exec_space exec;
  auto random = generator(971);
  for (const int ranks : {1, 2, 3, 4})
    for (const bool messages : {false, true}) {
      const list_input<float> input(random, ranks, {40, 0, 1, 77}, {5, 8, 12, 3});
      const auto comm = group_by(ranks, messages);
      const list_of_tables<double, host, ferry::sharding::cyclic> tables(
          exec, comm, input, [](std::size_t) { return ferry::sharding::cyclic{}; });
      comm.run([&](int rank) {
        const auto& batch = input.ranks[rank_place(rank)];
        ferry::tensor<double, host> out("out", batch.bags, input.width());
        ferry::init::constant(exec, out, -7);
        ferry::gather_bags(exec, ferry::for_each_table(tables.sharded), batch.ids, batch.offsets, out,
                           batch.weights, ferry::pooling::sum{})
            .wait();
        for (std::size_t t = 0; t < input.rows.size(); ++t)
          for (std::size_t b = 0; b < batch.bags; ++b)
            for (std::size_t c = 0; c < input.widths[t]; ++c) {
              double sum = 0, magnitude = 0;
              for (auto p = batch.offsets[t * batch.bags + b]; p < batch.offsets[t * batch.bags + b + 1];
                   ++p) {
                const auto place = static_cast<std::size_t>(p);
                const double term = static_cast<double>(batch.weights[place]) *
                                    tables.plain[t](static_cast<std::size_t>(batch.ids[place]), c);
                sum += term;
                magnitude += std::abs(term);
              }
              expect(std::abs(out(b, input.first_column[t] + c) - sum) <= 1e-14 * (1 + magnitude),
                     "the sum of the rows of a bag");
            }
      });
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

TEST_CASE("bags of several sharded tables are pooled as those of each", "[distributed][lists]") {
  compare<float, float, std::int64_t>(951, ferry::pooling::mean{}, ferry::bounds::check{});
  compare<float, double, std::int32_t>(952, ferry::pooling::sum{}, ferry::bounds::skip{});
  compare<ferry::half_t, float, std::uint32_t>(953, ferry::pooling::max{}, ferry::bounds::check{});
  compare<double, float, std::int64_t>(954, ferry::pooling::sum{}, ferry::bounds::clamp{});
}

}  // namespace ferry_test::gather_lists_test
