// SPDX-License-Identifier: Apache-2.0
#include "bags/bags.hpp"
#include "quantized/rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

#include <ferry/bags.hpp>
#include <ferry/int8.hpp>

/// Bags of so many positions that several threads share them.
namespace ferry_test::long_bags_test {

template <class T>
using compute_of = std::conditional_t<std::is_integral_v<T>, std::int64_t,
                                      std::conditional_t<std::is_same_v<T, double>, double, float>>;

std::vector<std::size_t> offsets_of(const std::vector<std::size_t>& lengths, std::size_t first = 0) {
  std::vector<std::size_t> offsets{first};
  for (const std::size_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

constexpr bool on_host = ferry::execution_backend<exec_space>::device_is_host;

/// Batches around the length from which bags are long, and around the one from which pieces grow. In some of
/// them bags are few, in some a long one is among many short ones.
std::vector<std::vector<std::size_t>> batches() {
  std::vector<std::vector<std::size_t>> result = {{1023},
                                                  {1024},
                                                  {1025},
                                                  {1055, 1056, 0},
                                                  {3, 1024, 1023, 1087},
                                                  {8191, 8192},
                                                  {8193},
                                                  {8223, 8224, 1, 8447},
                                                  {8448},
                                                  {1, 2500, 0, 0, 31, 3000, 900}};
  std::vector<std::size_t> many(200, 3);
  many[77] = 5000;
  result.push_back(many);
  return result;
}

template <class T>
struct problem {
  static constexpr std::size_t rows = 300;

  std::size_t width;
  std::vector<std::size_t> offsets;
  std::vector<std::int64_t> ids;
  std::vector<T> values;
  ferry::tensor<T, ferry::device_space> table, out;

  problem(std::mt19937_64& random, const std::vector<std::size_t>& lengths, std::size_t width_,
          std::size_t first = 0)
      : width(width_), offsets(offsets_of(lengths, first)) {
    ids = indices<std::int64_t>(random, offsets.back(), rows);
    values = uneven_values<T>(random, rows * width);
    table = make<ferry::device_space>("table", rows, width, values);
    out = ferry::tensor<T, ferry::device_space>("pooled", lengths.size(), width);
  }
  [[nodiscard]] std::vector<T> poison() const { return std::vector<T>(out.size(), T(77)); }

  /// Runs `pool(out)` on poisoned rows, and compares with a plain loop.
  template <class Pooling, class Pool, class Weights = no_weights>
  void check(Pooling, const std::vector<std::int64_t>& named, const Pool& pool, const Weights& weights = {}) {
    CAPTURE(Pooling::name, width, offsets.size() - 1, offsets.back());
    put(out, poison());
    pool(Pooling{});
    const auto expected = pooled<compute_of<T>, T>(values, width, named, offsets, Pooling::name, weights);
    CHECK(same_bits(take(out), expected.rows));
  }
};

TEMPLATE_TEST_CASE("long bags are pooled in the documented order", "[long_bags]", float, double,
                   ferry::half_t, std::int32_t) {
  auto random = generator(31);
  const exec_space exec;
  using namespace ferry;
  for (const auto& lengths : batches())
    for (const std::size_t width : {1UL, 4UL, 19UL, 32UL}) {
      if (width % 19 != 0 && width != 4 && !std::is_same_v<TestType, float>) continue;
      problem<TestType> input(random, lengths, width, width == 4 ? 37 : 0);
      const auto& ids = input.ids;
      const auto plain = as_offsets<std::int32_t>(input.offsets);
      auto open = as_offsets<std::int64_t>(input.offsets);
      open.pop_back();
      const auto plan = ferry::make_plan(exec, ids, input.rows);
      const auto with_offsets = [&](auto pooling) {
        gather_bags(exec, input.table, ids, plain, input.out, pooling).wait();
      };
      input.check(pooling::sum{}, ids, with_offsets);
      input.check(pooling::mean{}, ids, with_offsets);
      input.check(pooling::max{}, ids, with_offsets);
      input.check(pooling::sum{}, ids, [&](auto pooling) {
        gather_bags(exec, input.table, plan, open, input.out, pooling).wait();
      });
      input.check(pooling::sum{}, ids, [&](auto pooling) {
        gather_bags(exec, input.table, ids, open, input.out, pooling, bounds::unchecked{}).wait();
      });
    }
}

TEST_CASE("long bags have weights", "[long_bags]") {
  auto random = generator(32);
  const exec_space exec;
  using namespace ferry;
  for (const auto& lengths : batches()) {
    problem<float> input(random, lengths, 20);
    const auto weights = uneven_values<float>(random, input.ids.size());
    const auto pool = [&](auto pooling) {
      gather_bags(exec, input.table, input.ids, input.offsets, input.out, weights, pooling).wait();
    };
    input.check(pooling::sum{}, input.ids, pool, weights);
    input.check(pooling::mean{}, input.ids, pool, weights);
  }
}

TEST_CASE("long bags of a fixed number of positions need no offsets", "[long_bags]") {
  auto random = generator(33);
  const exec_space exec;
  for (const std::size_t hotness : {1023UL, 1024UL, 1500UL, 9000UL}) {
    problem<float> input(random, {hotness, hotness, hotness}, 12);
    input.check(ferry::pooling::mean{}, input.ids, [&](auto pooling) {
      ferry::gather_bags(exec, input.table, input.ids, hotness, input.out, pooling).wait();
    });
  }
}

TEST_CASE("long bags leave out positions without a row, or keep their contents", "[long_bags]") {
  auto random = generator(34);
  const exec_space exec;
  using namespace ferry;
  for (const auto& lengths : batches()) {
    problem<float> input(random, lengths, 9);
    auto skipped = input.ids;
    for (auto& id : skipped)
      if (random() % 5 == 0) id = -1;
    // A bag, and within a long one a piece, without any row.
    std::fill_n(skipped.begin(), std::min<std::size_t>(100, lengths[0]), -1);
    const auto plan = make_plan(exec, skipped, input.rows, bounds::skip{});
    const auto pool = [&](auto pooling) {
      gather_bags(exec, input.table, skipped, input.offsets, input.out, pooling, bounds::skip{}).wait();
    };
    input.check(pooling::sum{}, skipped, pool);
    input.check(pooling::mean{}, skipped, pool);
    input.check(pooling::mean{}, skipped, [&](auto pooling) {
      gather_bags(exec, input.table, plan, input.offsets, input.out, pooling).wait();
    });

    // One bad index of a bag that is not empty.
    std::size_t bag = 0;
    while (lengths[bag] == 0 || (lengths.size() > 1 && lengths[bag] < 1024)) ++bag;
    auto bad = input.ids;
    bad[input.offsets[bag] + random() % lengths[bag]] = 1000;
    auto expected =
        pooled<float, float>(input.values, input.width, input.ids, input.offsets, "pooling::sum").rows;
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(bag * input.width), input.width, 77.0F);
    put(input.out, input.poison());
    CHECK_THROWS_AS(gather_bags(exec, input.table, bad, input.offsets, input.out, pooling::sum{}).wait(),
                    out_of_range);
    CHECK(same_bits(take(input.out), expected));
    put(input.out, input.poison());
    const auto bad_plan = make_plan(exec, bad, input.rows);
    CHECK_THROWS_AS(gather_bags(exec, input.table, bad_plan, input.offsets, input.out, pooling::sum{}).wait(),
                    out_of_range);
    CHECK(same_bits(take(input.out), expected));
  }
}

TEST_CASE("long bags may overlap next to bad offsets", "[long_bags]") {
  auto random = generator(35);
  const exec_space exec;
  problem<float> input(random, {3000, 0, 3000, 500}, 8);
  const std::vector<std::int64_t> offsets{0, 5000, 3000, 6000, 6500};
  const auto bag = [&](std::size_t begin, std::size_t end) {
    return pooled<float, float>(input.values, 8, input.ids, {begin, end}, "pooling::sum").rows;
  };
  put(input.out, input.poison());
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, input.table, input.ids, offsets, input.out, ferry::pooling::sum{}).wait(),
      ferry::out_of_range);
  auto expected = bag(0, 5000);
  expected.insert(expected.end(), 8, 77.0F);
  for (const auto& good : {bag(3000, 6000), bag(6000, 6500)})
    expected.insert(expected.end(), good.begin(), good.end());
  CHECK(same_bits(take(input.out), expected));
}

TEMPLATE_LIST_TEST_CASE("long bags have the same bits in any space", "[long_bags]",
                        ferry_test::types_of<decltype(ferry_test::spaces)>) {
  auto random = generator(36);
  const exec_space exec;
  for (const auto& lengths : {std::vector<std::size_t>{2000, 12, 1100}, std::vector<std::size_t>{9000}}) {
    problem<float> input(random, lengths, 24);
    const auto lent_table = make<TestType>("table", input.rows, input.width, input.values);
    input.check(ferry::pooling::mean{}, input.ids, [&](auto pooling) {
      ferry::gather_bags(exec, lent_table, input.ids, input.offsets, input.out, pooling).wait();
    });
    if constexpr (staged_compiles<TestType, ferry::device_space>)
      input.check(ferry::pooling::sum{}, input.ids, [&](auto pooling) {
        ferry::gather_bags(exec, lent_table, input.ids, input.offsets, input.out, pooling,
                           ferry::path::staged{})
            .wait();
      });
    ferry::rowwise_int8_tensor<TestType> codes("codes", input.rows, input.width);
    ferry::quantize(exec, input.table, codes).wait();
    ferry::tensor<float, ferry::device_space> decoded("decoded", input.rows, input.width);
    ferry::dequantize(exec, codes, decoded).wait();
    input.values = take(decoded);
    input.check(ferry::pooling::sum{}, input.ids, [&](auto pooling) {
      ferry::gather_bags(exec, codes, input.ids, input.offsets, input.out, pooling).wait();
    });
  }
}

/// So many positions that long bags are listed on a device, too: 24 tiles for each of its threads.
TEMPLATE_TEST_CASE("long bags among many short ones", "[long_bags][once]", float, ferry::half_t, double) {
  auto random = generator(39);
  const exec_space exec;
  using namespace ferry;
  constexpr std::size_t width = on_host ? 12 : sizeof(TestType) == 2 ? 256 : 128;
  std::vector<std::size_t> lengths(60'000);
  for (auto& length : lengths) length = random() % 4;
  std::size_t bag = 100;
  for (const std::size_t length : {1023UL, 1024UL, 1025UL, 30'000UL, 8447UL, 8448UL})
    lengths[bag += 5000] = length;
  problem<TestType> input(random, lengths, width);
  REQUIRE(input.ids.size() > 130'000);
  const auto weights = uneven_values<float>(random, input.ids.size());
  auto skipped = input.ids;
  for (auto& id : skipped)
    if (random() % 5 == 0) id = -1;
  input.check(pooling::sum{}, input.ids, [&](auto pooling) {
    gather_bags(exec, input.table, input.ids, input.offsets, input.out, pooling).wait();
    // Once more: the counts of the list are clean.
    put(input.out, input.poison());
    gather_bags(exec, input.table, input.ids, input.offsets, input.out, pooling, bounds::unchecked{}).wait();
  });
  input.check(pooling::max{}, input.ids, [&](auto pooling) {
    gather_bags(exec, input.table, input.ids, input.offsets, input.out, pooling).wait();
  });
  input.check(pooling::mean{}, skipped, [&](auto pooling) {
    gather_bags(exec, input.table, skipped, input.offsets, input.out, pooling, bounds::skip{}).wait();
  });
  if constexpr (std::is_same_v<TestType, float>) {
    const auto with_weights = [&](auto pooling) {
      gather_bags(exec, input.table, input.ids, input.offsets, input.out, weights, pooling).wait();
    };
    input.check(pooling::mean{}, input.ids, with_weights, weights);
    const auto plan = make_plan(exec, input.ids, input.rows);
    input.check(pooling::sum{}, input.ids, [&](auto pooling) {
      gather_bags(exec, input.table, plan, input.offsets, input.out, pooling).wait();
    });
    if constexpr (staged_compiles<device_space, device_space>)
      input.check(pooling::sum{}, input.ids, [&](auto pooling) {
        gather_bags(exec, input.table, input.ids, input.offsets, input.out, pooling, path::staged{}).wait();
      });
  }
}

TEST_CASE("a long bag among many short ones keeps its contents for a bad index", "[long_bags][once]") {
  auto random = generator(40);
  const exec_space exec;
  std::vector<std::size_t> lengths(60'000, 2);
  lengths[30'000] = 20'000;
  constexpr std::ptrdiff_t width = on_host ? 8 : 128;
  problem<float> input(random, lengths, width);
  const auto good = pooled<float, float>(input.values, width, input.ids, input.offsets, "pooling::sum").rows;
  auto expected = good;
  std::fill_n(expected.begin() + 30'000 * width, width, 77.0F);
  auto bad = input.ids;
  bad[input.offsets[30'000] + 19'999] = 300;
  put(input.out, input.poison());
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, input.table, bad, input.offsets, input.out, ferry::pooling::sum{}).wait(),
      ferry::out_of_range);
  CHECK(same_bits(take(input.out), expected));
  // Half of the offsets end a bag at the end of the batch: long bags that overlap exceed the list.
  auto offsets = as_offsets<std::int64_t>(input.offsets);
  for (std::size_t b = 2; b < 200; b += 2) offsets[b] = offsets.back();
  put(input.out, input.poison());
  CHECK_THROWS_AS(
      ferry::gather_bags(exec, input.table, input.ids, offsets, input.out, ferry::pooling::sum{}).wait(),
      ferry::out_of_range);
  const auto result = take(input.out);
  const auto whole =
      pooled<float, float>(input.values, width, input.ids,
                           {static_cast<std::size_t>(offsets[99]), input.offsets.back()}, "pooling::sum");
  const auto row = [&](std::ptrdiff_t bag) { return result.begin() + bag * width; };
  CHECK(std::equal(whole.rows.begin(), whole.rows.end(), row(99)));
  CHECK(std::all_of(row(100), row(101), [](float x) { return x == 77.0F; }));
  CHECK(std::equal(good.begin() + 200 * width, good.end(), row(200)));
}

TEST_CASE("long bags of several tables are pooled in the same order", "[long_bags]") {
  auto random = generator(38);
  const exec_space exec;
  std::vector<ferry::tensor<float, ferry::device_space>> tables;
  std::vector<float> expected(2 * 16);
  const std::vector<std::size_t> lengths{1500, 10, 1024, 9000}, widths{4, 12};
  const auto offsets = offsets_of(lengths);
  const auto ids = indices<std::int64_t>(random, offsets.back(), 50);
  for (std::size_t t = 0; t < 2; ++t) {
    const auto values = uneven_values<float>(random, 50 * widths[t]);
    tables.push_back(make<ferry::device_space>("table", 50, widths[t], values));
    const std::vector<std::size_t> of_table(offsets.begin() + static_cast<std::ptrdiff_t>(2 * t),
                                            offsets.begin() + static_cast<std::ptrdiff_t>(2 * t + 3));
    const auto sums = pooled<float, float>(values, widths[t], ids, of_table, "pooling::sum").rows;
    for (std::size_t b = 0; b < 2; ++b)
      std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(b * widths[t]), widths[t],
                  expected.begin() + static_cast<std::ptrdiff_t>(b * 16 + t * 4));
  }
  ferry::tensor<float, ferry::device_space> out("pooled", 2, 16);
  put(out, std::vector<float>(32, 77.0F));
  ferry::gather_bags(exec, ferry::for_each_table(tables), ids, offsets, out, ferry::pooling::sum{}).wait();
  CHECK(same_bits(take(out), expected));
}

}  // namespace ferry_test::long_bags_test
