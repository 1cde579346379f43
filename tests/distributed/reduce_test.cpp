// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "support/sum_in_pieces.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <map>
#include <type_traits>

namespace ferry_test::reduce_test {

namespace {

/// The sums that ranks send under reduce::by_rank, made by plain loops: for each rank its different rows, and the
/// sum of each in the documented order, in the accumulation type.
template <class Sum, class T>
struct sums_of_ranks {
  std::vector<std::int64_t> rows;
  std::vector<Sum> sums;

  explicit sums_of_ranks(const batches<T>& batch) {
    for (std::size_t r = 0; r < batch.rows_of.size(); ++r) {
      std::map<std::int64_t, std::vector<std::size_t>> positions;
      for (std::size_t p = 0; p < batch.rows_of[r].size(); ++p) positions[batch.rows_of[r][p]].push_back(p);
      for (const auto& [row, places] : positions) {
        rows.push_back(row);
        for (std::size_t j = 0; j < width; ++j) {
          std::vector<Sum> column;
          for (const std::size_t p : places)
            column.push_back(static_cast<Sum>(batch.parts[r].data()[p * width + j]));
          sums.push_back(sum_in_pieces(column));
        }
      }
    }
  }
};

/// A verb under reduce::by_rank on a sharded table, and the verb on an ordinary table with the ranks' sums.
template <class T, class Value, class Sum, class Make, class Verb>
void compare(std::uint64_t seed, const Make& make, const Verb& verb) {
  const watchdog guard("reduce::by_rank");
  auto random = generator(seed);
  const exec_space exec;
  const ferry::reduce::by_rank by_rank;
  for (const int ranks : {1, 2, 4, 8})
    for_each_sharding([&](auto spread) {
      const std::size_t rows = 1 + random() % 60;
      INFO(ranks << " ranks, " << rows << " rows, " << decltype(spread)::name);
      batches<Value> batch(random, ranks, rows, 90);
      // Numbers whose sums round.
      const auto scale = [](auto& array) {
        if constexpr (std::is_floating_point_v<Value>)
          for (std::size_t i = 0; i < array.size(); ++i)
            array.data()[i] *= static_cast<Value>(1.1 + 0.01 * static_cast<double>(i % 97));
      };
      for (auto& array : batch.parts) scale(array);
      const sums_of_ranks<Sum, Value> sent(batch);
      const auto sums = tensor_of(sent.sums, width);
      ferry::tensor<T, host> table("w", rows, width);
      const auto comm = group_of(ranks);
      ferry::sharded_table<T, host, decltype(spread)> big("w", comm, rows, width, spread);
      ferry::init::uniform(exec, table, -100, 100, 5);
      ferry::init::uniform(exec, big, -100, 100, 5);
      auto plain = make(table);
      auto shared = make(big);
      for (const bool planned : {false, true}) {
        verb(exec, table, plain, sent.rows, sums);
        comm.run([&](int rank) {
          if (planned)
            verb(exec, big, shared, ferry::make_plan(exec, batch.indices_of(rank), big),
                 batch.values_of(rank), by_rank);
          else
            verb(exec, big, shared, batch.indices_of(rank), batch.values_of(rank), by_rank);
        });
        REQUIRE(same_table(exec, big, table));
      }
      // By one thread, for which the batch is that of one rank.
      batches<Value> alone(random, 1, rows, 90);
      const sums_of_ranks<Sum, Value> single(alone);
      verb(exec, table, plain, single.rows, tensor_of(single.sums, width));
      verb(exec, big, shared, alone.rows, alone.whole, by_rank);
      REQUIRE(same_table(exec, big, table));
    });
}

const auto nothing = [](auto&) { return 0; };
const auto add = [](const auto& exec, auto& table, int, const auto& rows, const auto& values,
                    auto... policies) { ferry::scatter_add(exec, table, rows, values, policies...).wait(); };

}  // namespace

TEST_CASE("reduce::by_rank adds the sums of the ranks in their order", "[distributed]") {
  compare<float, float, float>(1, nothing, add);
  compare<double, double, double>(2, nothing, add);
  compare<std::int32_t, std::int32_t, std::int64_t>(3, nothing, add);
  const ferry::optim::adam rule{.lr = 0.01};
  const auto make = [&](auto& table) { return ferry::optim::make_state(rule, table); };
  const auto step = [&](const auto& exec, auto& table, auto& state, const auto& rows, const auto& values,
                        auto... policies) {
    ferry::step(exec, rule, table, state, rows, values, policies...).wait();
  };
  compare<float, float, float>(4, make, step);
  compare<ferry::half_t, ferry::half_t, float>(5, make, step);
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
    const auto text = said<ferry::out_of_range>([&] {
      const std::vector<std::int64_t> bad{1, rank == 0 ? 30 : 3};
      ferry::tensor<float, host> values("values", 2, width);
      ferry::init::constant(exec, values, 1);
      ferry::scatter_add(exec, a, bad, values, ferry::reduce::by_rank{}).wait();
    });
    expect(text.find("index 30 at position 1 of rank 0") != std::string::npos, text.c_str());
  });
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

}  // namespace ferry_test::reduce_test
