// SPDX-License-Identifier: Apache-2.0
#include "shards_kit.hpp"

/// Sharded tables of quantized rows against numbers that plain loops decode.
namespace ferry_test::quantized_shards_test {

/// Quantizations but mxfp8 meet shardings that kernels know alone.
template <class Q>
inline constexpr bool by_all_shardings = std::is_same_v<Q, quantization::mxfp8>;

/// The indices of each rank's batch; some ranks have none.
std::vector<std::vector<std::int64_t>> batches_of(std::mt19937_64& random, int ranks, std::size_t rows) {
  std::vector<std::vector<std::int64_t>> batches;
  for (int r = 0; r < ranks; ++r)
    batches.push_back(indices<std::int64_t>(random, random() % 4 == 0 ? 0 : random() % 80, rows));
  return batches;
}

/// Rows at the positions of a batch, -7 for positions without one.
template <class Out>
std::vector<Out> rows_at(const std::vector<Out>& numbers, std::size_t columns,
                         const std::vector<std::int64_t>& ids, on_bad policy = on_bad::leave) {
  return gathered(numbers, columns, ids, std::vector<Out>(ids.size() * columns, Out(-7)), policy);
}

template <class Out, class Act>
std::vector<Out> gathered_by(std::size_t positions, std::size_t columns, const Act& act) {
  ferry::tensor<Out, host> out("out", positions, columns);
  std::fill_n(out.data(), out.size(), Out(-7));
  act(out);
  return std::vector<Out>(out.data(), out.data() + out.size());
}

/// check(claim, named, policies...) that the rows at `ids` come.
template <class Exec, class Table, class Out>
auto checker_of(const Exec& exec, const Table& big, const std::vector<Out>& numbers,
                const std::vector<std::int64_t>& ids) {
  return [&exec, &big, &ids, expected = rows_at(numbers, big.width(), ids)](
             const char* claim, const auto& named, auto... policies) {
    const auto got = gathered_by<Out>(ids.size(), big.width(), [&](auto& out) {
      ferry::gather(exec, big, named, out, policies...).wait();
    });
    expect(same_values(got, expected), claim);
  };
}

/// Ways in which codes play no part.
template <class Exec, class Table, class Out>
void gather_other_ways(const Exec& exec, const Table& big, const std::vector<Out>& numbers,
                       const std::vector<std::int64_t>& ids, bool is_rank) {
  constexpr bool in_kernels = Table::sharding_type::in_kernels;
  const std::size_t columns = big.width(), rows = big.rows();
  const auto check = checker_of(exec, big, numbers, ids);
  const auto plan = ferry::make_plan(exec, ids, big);
  check("each row once", ids, ferry::path::exchange{});
  check("a plan for one table", ferry::make_plan(exec, ids, rows));
  check("a sharded plan", plan);
  auto some = ids;
  for (std::size_t p = 0; p < some.size(); p += 3)
    some[p] = p % 2 == 0 ? -1 : static_cast<std::int64_t>(rows);
  const auto with_gaps = rows_at(numbers, columns, some);
  const auto skips = [&](auto... path) {
    const auto got = gathered_by<Out>(some.size(), columns, [&](auto& out) {
      ferry::gather(exec, big, some, out, ferry::bounds::skip{}, path...).wait();
    });
    expect(same_values(got, with_gaps), "skipped");
  };
  skips();
  if constexpr (in_kernels) skips(ferry::path::peer{});
  const auto reports = [&](auto... path) {
    std::string text;
    const auto got = gathered_by<Out>(some.size(), columns, [&](auto& out) {
      text = said<ferry::out_of_range>([&] { ferry::gather(exec, big, some, out, path...).wait(); });
    });
    const std::string count = std::to_string((some.size() + 2) / 3) + " of " + std::to_string(some.size());
    if (!some.empty()) expect(has(text, count) && has(text, big.label()), text.c_str());
    expect(same_values(got, with_gaps), "the good positions");
  };
  reports();
  if constexpr (in_kernels) reports(ferry::path::peer{});
  if (!is_rank) return;
  const auto clamped = gathered_by<Out>(some.size(), columns, [&](auto& out) {
    ferry::gather(exec, big, some, out, ferry::bounds::clamp{}).wait();
  });
  expect(same_values(clamped, rows_at(numbers, columns, some, on_bad::clamp)), "clamped");
}

template <class Exec, class Table, class Out>
void gather_all_ways(const Exec& exec, const Table& big, const std::vector<Out>& numbers,
                     const std::vector<std::int64_t>& ids, bool is_rank) {
  const auto check = checker_of(exec, big, numbers, ids);
  constexpr bool in_kernels = Table::sharding_type::in_kernels;
  check("indices", ids);
  if constexpr (in_kernels) check("by peers", ids, ferry::path::peer{});
  const auto plan = ferry::make_plan(exec, ids, big);
  check("a sharded plan, each row once", plan, ferry::path::exchange{});
  // The search for a row needs no codes: the other ways with one quantization.
  if constexpr (std::is_same_v<typename Table::quantization, quantization::mxfp8>)
    gather_other_ways(exec, big, numbers, ids, is_rank);
}

template <class Q, class Out, class Space = host, class ScaleSpace = Space>
void compare_gathers(std::uint64_t salt, std::size_t columns) {
  const watchdog guard("gathers from sharded quantized tables");
  auto random = generator(salt);
  const rank_space exec;
  for (const int ranks : {1, 2, 3, 5})
    for_each_sharding<by_all_shardings<Q>>([&](auto spread) {
      const std::size_t rows = 1 + random() % 150;
      INFO(Q::name << ", " << ranks << " ranks, " << rows << " x " << columns << ", " << spread.name);
      const auto bytes = random_codes<Q>(random, rows, columns);
      const auto numbers = decoded<Q, Out>(bytes);
      const auto table = table_of<Q, host>(bytes);
      const auto comm = group_of(ranks);
      ferry::sharded_quantized_table<Q, Space, ScaleSpace, decltype(spread)> big("codes", comm, rows, columns,
                                                                                 spread);
      REQUIRE(big.row_bytes() == table.row_bytes());
      REQUIRE(big.width() == columns);
      ferry::copy(exec, table, big).wait();
      REQUIRE(same(bytes_of_shards(exec, big), bytes));
      const auto batches = batches_of(random, ranks, rows);
      comm.run([&](int rank) {
        gather_all_ways(exec, big, numbers, batches[static_cast<std::size_t>(rank)], true);
      });
      const auto ids = indices<std::int64_t>(random, 90, rows);
      gather_all_ways(exec, big, numbers, ids, false);
      const auto fresh = ferry::gather<host>(exec, big, ids).get();
      const auto floats = rows_at(decoded<Q>(bytes), columns, ids);
      CHECK(same_values(std::vector<float>(fresh.data(), fresh.data() + fresh.size()), floats));
    });
}

TEST_CASE("gather decodes the rows of sharded quantized tables", "[quantized][distributed]") {
  compare_gathers<quantization::mxfp8, ferry::bhalf_t, host, ferry::device_space>(702, 32);
  compare_gathers<quantization::nvfp4, float>(704, 48);
  compare_gathers<by_rows, float>(706, 7);
  compare_gathers<six_bits, float>(707, 32);
}

/// quantize and dequantize of all rows.
template <class Q, class Value>
void compare_whole(std::uint64_t salt, std::size_t columns) {
  const watchdog guard("quantize of sharded tables");
  auto random = generator(salt);
  const rank_space exec;
  for (const int ranks : {1, 3, 4})
    for_each_sharding<by_all_shardings<Q>>([&](auto spread) {
      const std::size_t rows = 1 + random() % 90;
      INFO(Q::name << ", " << ranks << " ranks, " << rows << " x " << columns << ", " << spread.name);
      const auto comm = group_of(ranks);
      auto plain = make<host>("plain", rows, columns, values<Value>(random, rows * columns));
      ferry::quantized_tensor<Q, host> table("table", rows, columns);
      ferry::sharded_table<Value, host, decltype(spread)> values_there("values", comm, rows, columns, spread);
      ferry::sharded_quantized_table<Q, host, host, decltype(spread)> big("big", comm, rows, columns, spread),
          alike("alike", comm, rows, columns, spread);
      if constexpr (Q::has_tensor_scale) {
        table.set_scale(0.25f);
        big.set_scale(0.25f);
        alike.set_scale(0.25f);
      }
      ferry::quantize(exec, plain, table).wait();
      const auto is_table = [&](const auto& shards) {
        return same(bytes_of_shards(exec, shards), bytes_of(table));
      };
      ferry::quantize(exec, plain, big).wait();  // for the group
      CHECK(is_table(big));
      comm.run([&] {
        ferry::copy(exec, plain, values_there).wait();
        ferry::quantize(exec, values_there, alike).wait();
      });
      CHECK(is_table(alike));
      ferry::sharded_quantized_table<Q, host, host, ferry::sharding::block> third("third", comm, rows,
                                                                                  columns);
      comm.run([&](int rank) {
        ferry::quantize(exec, plain, alike).wait();
        ferry::tensor<float, host> expected("expected", rows, columns),
            out("out", rank == 0 ? 0 : rows, columns);
        ferry::dequantize(exec, table, expected).wait();
        std::fill_n(out.data(), out.size(), -7.0f);
        ferry::dequantize(exec, alike, out).wait();
        expect(rank == 0 || take(out) == take(expected), "dequantized");
      });
      ferry::copy(exec, alike, third).wait();
      CHECK(is_table(third));
      if constexpr (Q::has_tensor_scale) CHECK(third.scale() == 0.25f);
    });
}

TEST_CASE("quantize encodes the shards as an ordinary table", "[quantized][distributed]") {
  compare_whole<quantization::mxfp8, float>(711, 64);
  compare_whole<quantization::nvfp4, ferry::half_t>(712, 32);
  compare_whole<quantization::rowwise_int8, float>(715, 13);
}

/// Sums of bags in the order of their positions, and maxima.
template <class Q, class Space>
void compare_bags(std::uint64_t salt, std::size_t columns) {
  const watchdog guard("bags of sharded quantized tables");
  auto random = generator(salt);
  const rank_space exec;
  for (const int ranks : {1, 3})
    for_each_sharding<by_all_shardings<Q>>([&](auto spread) {
      const std::size_t rows = 1 + random() % 90, bags = 7;
      INFO(Q::name << ", " << ranks << " ranks, " << rows << " x " << columns << ", " << spread.name);
      const auto bytes = random_codes<Q>(random, rows, columns);
      const auto numbers = decoded<Q>(bytes);
      const auto comm = group_of(ranks);
      ferry::sharded_quantized_table<Q, Space, Space, decltype(spread)> big("codes", comm, rows, columns,
                                                                            spread);
      ferry::copy(exec, table_of<Q, host>(bytes), big).wait();
      comm.run([&](int rank) {
        auto mine = generator(salt + 1000 + static_cast<std::uint64_t>(rank));
        std::vector<std::int64_t> offsets{0}, ids;
        const std::size_t count = rank == 1 ? 0 : bags;
        for (std::size_t b = 0; b < count; ++b) {
          const auto more = indices<std::int64_t>(mine, mine() % 9, rows);
          ids.insert(ids.end(), more.begin(), more.end());
          offsets.push_back(static_cast<std::int64_t>(ids.size()));
        }
        std::vector<float> sums(count * columns), weighted(count * columns), most(count * columns);
        const auto weights = values<float>(mine, ids.size());
        for (std::size_t b = 0; b < count; ++b)
          for (std::size_t c = 0; c < columns; ++c) {
            float sum = 0, weighted_sum = 0, maximum = 0;
            bool is_first = true;
            for (auto p = static_cast<std::size_t>(offsets[b]); p < static_cast<std::size_t>(offsets[b + 1]);
                 ++p) {
              const float value = numbers[static_cast<std::size_t>(ids[p]) * columns + c];
              sum += value;
              weighted_sum += value * weights[p];
              if (is_first || value > maximum) maximum = value;  // a NaN counts only if it comes first
              is_first = false;
            }
            sums[b * columns + c] = sum;
            weighted[b * columns + c] = weighted_sum;
            most[b * columns + c] = maximum;
          }
        const auto pooled = [&](const auto& named, const auto&... more) {
          return gathered_by<float>(count, columns, [&](auto& out) {
            ferry::gather_bags(exec, big, named, offsets, out, more...).wait();
          });
        };
        expect(same_values(pooled(ids, ferry::pooling::sum{}), sums), "sums");
        expect(same_values(pooled(ferry::make_plan(exec, ids, big), ferry::pooling::sum{}), sums), "a plan");
        expect(same_values(pooled(ids, weights, ferry::pooling::sum{}, ferry::path::exchange{}), weighted),
               "weighted sums");
        expect(same_values(pooled(ids, ferry::pooling::max{}), most), "maxima");
      });
    });
}

TEST_CASE("gather_bags pools rows of sharded quantized tables", "[quantized][distributed]") {
  compare_bags<quantization::mxfp8, host>(721, 32);
  compare_bags<by_rows, host>(723, 5);
}

TEST_CASE("sharded quantized tables say what they refuse", "[quantized][distributed]") {
  const watchdog guard("refusals of sharded quantized tables");
  using table_type = ferry::sharded_quantized_table<quantization::mxfp8, host>;
  const rank_space exec;
  const auto comm = group_of(3);
  const auto width_text = said<ferry::invalid_argument>([&] { table_type("odd", comm, 10, 33); });
  CHECK(has(width_text, "33"));
  CHECK(has(width_text, "odd"));
  CHECK_THROWS_AS(table_type("negative", comm, 10, -32), ferry::invalid_argument);
  CHECK_THROWS_AS(table_type("negative", comm, -10, 32), ferry::invalid_argument);
  std::vector<std::string> texts(3);
  comm.run([&](int rank) {  // every rank learns of it, and the group goes on
    texts[static_cast<std::size_t>(rank)] =
        said<ferry::invalid_argument>([&] { table_type("odd", comm, 10, 31); });
    comm.barrier();
  });
  for (const auto& text : texts) CHECK(has(text, "31"));
  table_type big("big", comm, 10, 32);
  CHECK(has(big.describe(), "'big' [10 x 32] of mxfp8"));
  ferry::tensor<float, host> narrow("narrow", 2, 31), wrong("wrong", 9, 32), out("out", 1, 32);
  const std::vector<int> ids{1, 2};
  const auto shape = said<ferry::invalid_argument>([&] { ferry::gather(exec, big, ids, narrow).wait(); });
  CHECK(has(shape, "'big'"));
  CHECK(has(shape, "10 x 32"));
  CHECK_THROWS_AS(ferry::gather(exec, big, ids, out, ferry::path::peer{}).wait(), ferry::invalid_argument);
  CHECK(has(said<ferry::invalid_argument>([&] { ferry::quantize(exec, wrong, big).wait(); }), "quantize"));
  CHECK(
      has(said<ferry::invalid_argument>([&] { ferry::dequantize(exec, big, wrong).wait(); }), "dequantize"));
  ferry::sharded_table<float, host, ferry::sharding::hashed<3>> hashed("hashed", comm, 10, 32);
  ferry::sharded_quantized_table<quantization::mxfp8, host, host, ferry::sharding::hashed<5>> apart(
      "apart", comm, 10, 32);
  ferry::sharded_table<float, host, ferry::sharding::hashed<5>> alike("alike", group_of(3), 10, 32);
  CHECK(has(said<ferry::invalid_argument>([&] { ferry::quantize(exec, alike, apart).wait(); }),
            "spread differently"));
  ferry::sharded_quantized_table<quantization::e4m3, host> factor("factor", comm, 4, 3);
  CHECK_THROWS_AS(factor.set_scale(-1.0f), ferry::invalid_argument);
  CHECK_THROWS_AS(factor.set_scale(std::numeric_limits<float>::infinity()), ferry::invalid_argument);
  // No rows, and no ranks that ask.
  table_type none("none", comm, 0, 32);
  ferry::tensor<float, host> nothing("nothing", 0, 32);
  comm.run([&] { ferry::gather(exec, none, std::vector<int>{}, nothing).wait(); });
  ferry::gather(exec, none, std::vector<int>{}, nothing, ferry::path::peer{}).wait();
  CHECK_THROWS_AS(ferry::gather(exec, none, std::vector<int>{0}, out).wait(), ferry::out_of_range);
  // An object that holds the shard of its rank alone has no peers.
  comm.run([&](int rank) {
    const table_type mine("mine", comm, 10, 32);
    const auto lonely = said<ferry::invalid_argument>([&] {
      ferry::tensor<float, host> row("row", 1, 32);
      ferry::gather(exec, mine, std::vector<int>{rank}, row, ferry::path::peer{}).wait();
    });
    expect(has(lonely, "does not hold that of rank"), lonely.c_str());
    comm.barrier();
  });
}

}  // namespace ferry_test::quantized_shards_test
