// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::sums_test {

// The order in which the values of a row are added, bit by bit, against plain loops over lists of values.

/// Rows of all these numbers of values, in a batch in random order.
struct problem {
  std::vector<std::int32_t> indices;
  std::size_t rows;
};
problem shuffled(const std::vector<std::size_t>& counts, unsigned seed) {
  problem result{{}, counts.size() + 1};
  for (std::size_t row = 0; row < counts.size(); ++row)
    result.indices.insert(result.indices.end(), counts[row], static_cast<std::int32_t>(row));
  auto random = generator(seed);
  std::shuffle(result.indices.begin(), result.indices.end(), random);
  return result;
}

template <class T>
std::vector<T> sums_of(const problem& batch, const std::vector<T>& values, std::size_t width, bool mean) {
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<T> result(batch.rows * width, ferry::convert<T>(number(0)));
  std::vector<std::vector<std::size_t>> positions(batch.rows);
  for (std::size_t p = 0; p < batch.indices.size(); ++p)
    positions[static_cast<std::size_t>(batch.indices[p])].push_back(p);
  for (std::size_t row = 0; row < batch.rows; ++row)
    for (std::size_t c = 0; c < width && !positions[row].empty(); ++c) {
      std::vector<number> list;
      for (const std::size_t p : positions[row])
        list.push_back(ferry::convert<number>(values[p * width + c]));
      number sum = sum_in_pieces(list);
      if (mean) sum /= static_cast<number>(list.size());
      result[row * width + c] = ferry::convert<T>(sum);
    }
  return result;
}

template <class T, class Space, class Named, class... Policies>
void check_order(const Named& named, const std::vector<T>& values, const std::vector<T>& expected,
                 std::size_t width, Policies... policies) {
  CAPTURE(Space::name, width, values.size());
  const exec_space exec;
  const std::size_t rows = expected.size() / width;
  const auto batch = make<ferry::device_space>("values", values.size() / width, width, values);
  auto table = make<Space>("table", rows, width, std::vector<T>(expected.size(), ferry::convert<T>(0.0F)));
  ferry::scatter_add(exec, table, named, batch, policies...).wait();
  CHECK(same_bits(take(table), expected));
}

TEMPLATE_TEST_CASE("the values of a row are added in the documented order", "[sum_order]", double,
                   ferry::half_t) {
  const exec_space exec;
  const std::vector<std::vector<std::size_t>> batches = {
      {1},
      {63, 64},
      {64, 1, 65, 2, 95, 96, 97, 3, 127, 128, 129},
      {1024},
      {1000, 33, 991, 64, 0, 5, 2000},
      {8191, 1, 8192, 8193, 64, 8223, 8447, 63, 8448, 8703, 40'000, 7}};
  unsigned seed = 3;
  for (const auto& counts : batches)
    for (const std::size_t width : {1u, 4u, 7u, 20u}) {
      const problem batch = shuffled(counts, ++seed);
      auto random = generator(++seed);
      const auto values = ferry_test::values<TestType>(random, batch.indices.size() * width);
      const auto expected = sums_of(batch, values, width, false);
      check_order<TestType, ferry::device_space>(batch.indices, values, expected, width);
      check_order<TestType, ferry::pageable_space>(batch.indices, values, expected, width,
                                                   ferry::path::staged{});
      const auto plan = ferry::make_plan(exec, batch.indices, batch.rows);
      check_order<TestType, ferry::device_space>(plan, values, expected, width);
      check_order<TestType, ferry::device_space>(plan, values, sums_of(batch, values, width, true), width,
                                                 ferry::duplicates::mean{});
    }
}

// scatter_add with duplicates::sum_any_order against plain loops.

namespace sum_any_order {

using any_order = ferry::duplicates::sum_any_order;

struct batch {
  std::size_t rows, width;
  std::vector<std::int64_t> indices;
  std::vector<int> table, values;
};

/// Small integers, whose sums every element type holds exactly in any order. Row 1 is named by a quarter of
/// the positions, at most `most_hot` of them.
batch random_batch(std::size_t n, std::size_t rows, std::size_t width, std::size_t most_hot) {
  auto random = generator(static_cast<unsigned>(n * 131 + width));
  batch result{rows, width, std::vector<std::int64_t>(n), std::vector<int>(rows * width),
               std::vector<int>(n * width)};
  for (std::size_t p = 0; p < n; ++p) {
    const bool hot = rows > 1 && p % 4 == 0 && p / 4 < most_hot;
    result.indices[p] = hot ? 1 : static_cast<std::int64_t>(random() % rows);
  }
  for (auto& x : result.table) x = static_cast<int>(random() % 5);
  for (auto& x : result.values) x = static_cast<int>(random() % 3);
  return result;
}

std::vector<int> sums_of(const batch& problem) {
  std::vector<int> sums = problem.table;
  for (std::size_t p = 0; p < problem.indices.size(); ++p)
    for (std::size_t c = 0; c < problem.width; ++c)
      sums[static_cast<std::size_t>(problem.indices[p]) * problem.width + c] +=
          problem.values[p * problem.width + c];
  return sums;
}

template <class T>
std::vector<T> as(const std::vector<int>& numbers) {
  std::vector<T> result;
  for (const int x : numbers) result.push_back(ferry::convert<T>(static_cast<float>(x)));
  return result;
}
template <class T>
std::vector<float> as_floats(const std::vector<T>& numbers) {
  std::vector<float> result;
  for (const T& x : numbers) result.push_back(ferry::convert<float>(x));
  return result;
}

template <class T, class Space, class... Policies>
void check_sums(const batch& problem, Policies... policies) {
  CAPTURE(problem.indices.size(), problem.rows, problem.width, Space::name);
  const exec_space exec;
  auto table = make<Space>("table", problem.rows, problem.width, as<T>(problem.table));
  const auto values =
      make<ferry::device_space>("values", problem.indices.size(), problem.width, as<T>(problem.values));
  ferry::scatter_add(exec, table, problem.indices, values, any_order{}, policies...).wait();
  CHECK(as_floats(take(table)) == as_floats(as<T>(sums_of(problem))));
}

TEMPLATE_TEST_CASE("sums that are exact in any order have the same bits", "[any_order]", float, double,
                   ferry::half_t, ferry::bhalf_t, std::int8_t, std::uint8_t, std::int16_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t) {
  for (const std::size_t width : {1u, 3u, 4u, 8u, 17u, 64u})
    for (const std::size_t n : {1u, 2u, 33u, 160u}) {
      const auto problem = random_batch(n, 37, width, 40);
      if constexpr (sizeof(TestType) <= 2)
        check_sums<TestType, ferry::pinned_space>(problem);
      else
        check_sums<TestType, ferry::device_space>(problem);
    }
}

TEMPLATE_TEST_CASE("batches for many threads are summed in every space and on every path", "[any_order]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for (const std::size_t width : {1u, 2u, 5u, 128u}) {
    const auto problem = random_batch(3001, 211, width, 3001);
    check_sums<float, TestType>(problem);
    if (direct_runs<TestType>()) check_sums<float, TestType>(problem, ferry::path::ordered{});
    check_sums<float, TestType>(problem, ferry::bounds::unchecked{});
    if constexpr (TestType::is_host_accessible) check_sums<float, TestType>(problem, ferry::path::staged{});
  }
  check_sums<float, TestType>(random_batch(5000, 1, 64, 0));
}

TEST_CASE("values of another type are converted one by one", "[any_order]") {
  const auto problem = random_batch(500, 20, 12, 20);
  const exec_space exec;
  auto table = make<ferry::device_space>("table", problem.rows, problem.width, as<float>(problem.table));
  ferry::scatter_add(exec, table, problem.indices,
                     make<ferry::device_space>("values", problem.indices.size(), problem.width,
                                               as<std::int16_t>(problem.values)),
                     any_order{})
      .wait();
  CHECK(take(table) == as<float>(sums_of(problem)));
}

TEST_CASE("bad indices are found before anything is added in any order", "[any_order]") {
  const exec_space exec;
  const std::vector<float> before(40, 1.0f);
  auto table = make<ferry::device_space>("table", 10, 4, before);
  const auto values = make<ferry::device_space>("values", 3, 4, std::vector<float>(12, 2.0f));
  const std::vector<std::int64_t> indices{3, 10, 3};
  CHECK_THROWS_AS(ferry::scatter_add(exec, table, indices, values, any_order{}).wait(), ferry::out_of_range);
  CHECK(take(table) == before);
  ferry::scatter_add(exec, table, indices, values, any_order{}, ferry::bounds::skip{}).wait();
  auto skipped = before;
  for (std::size_t c = 0; c < 4; ++c) skipped[12 + c] = 5.0f;
  CHECK(take(table) == skipped);
  ferry::scatter_add(exec, table, indices, values, any_order{}, ferry::bounds::clamp{}).wait();
  for (std::size_t c = 0; c < 4; ++c) skipped[12 + c] = 9.0f;
  for (std::size_t c = 0; c < 4; ++c) skipped[36 + c] = 3.0f;
  CHECK(take(table) == skipped);
  ferry::scatter_add(exec, table, std::vector<std::int64_t>{},
                     ferry::tensor<float, ferry::device_space>("none", 0, 4), any_order{})
      .wait();
  CHECK(take(table) == skipped);
}

}  // namespace sum_any_order

// Rows that a batch names a few times and very often, about the length from which a device adds them up in another way,
// in large batches by a kernel of its own: the same bits as one addition after the other, in the order of the batch.

constexpr std::size_t rows = 40;

std::vector<std::int32_t> named_so_often(std::mt19937_64& random, const std::vector<std::size_t>& lengths) {
  std::vector<std::int32_t> ids;
  for (std::size_t row = 0; row < lengths.size(); ++row)
    ids.insert(ids.end(), lengths[row], static_cast<std::int32_t>(2 * row + 1));
  std::shuffle(ids.begin(), ids.end(), random);
  return ids;
}

std::vector<float> anything(std::mt19937_64& random, std::size_t count) {
  std::uniform_real_distribution<float> any(-1.0f, 1.0f);
  std::vector<float> result(count);
  for (auto& value : result) value = any(random);
  return result;
}

/// A step with a plan's duplicates has the bits of a step on the sums.
template <class Space, class Rule, class Plan, class Batch>
void step_as_on_sums(const Rule& rule, const Plan& plan, const Batch& batch,
                     const std::vector<std::int32_t>& unique, const Batch& sums,
                     const std::vector<float>& start) {
  const exec_space exec;
  const std::size_t width = batch.extent(1);
  auto table = make<Space>("table", rows, width, start);
  auto expected = make<Space>("expected", rows, width, start);
  auto state = ferry::optim::make_state(rule, table);
  auto expected_state = ferry::optim::make_state(rule, expected);
  ferry::step(exec, rule, table, state, plan, batch).wait();
  ferry::step(exec, rule, expected, expected_state, unique, sums, ferry::duplicates::assume_unique{}).wait();
  CHECK(take(table) == take(expected));
}

template <class Space>
void add_up(std::mt19937_64& random, const std::vector<std::size_t>& lengths, std::size_t width) {
  CAPTURE(Space::name, lengths, width);
  const exec_space exec;
  const auto ids = named_so_often(random, lengths);
  const auto start = anything(random, rows * width);
  const auto values = anything(random, ids.size() * width);
  std::vector<float> sums(rows * width, 0.0f);
  std::vector<std::vector<std::size_t>> positions(rows);
  for (std::size_t p = 0; p < ids.size(); ++p) positions[static_cast<std::size_t>(ids[p])].push_back(p);
  const auto is_named = [&](std::size_t row) { return !positions[row].empty(); };
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t c = 0; c < width && is_named(row); ++c) {
      std::vector<float> column;
      for (const std::size_t p : positions[row]) column.push_back(values[p * width + c]);
      sums[row * width + c] = sum_in_pieces(column);
    }
  auto added = start, stepped = start, mean = start;
  std::vector<std::int32_t> unique;
  std::vector<float> sums_of_rows;
  for (std::size_t row = 0; row < rows; ++row) {
    if (!is_named(row)) continue;
    unique.push_back(static_cast<std::int32_t>(row));
    const auto first = sums.begin() + static_cast<std::ptrdiff_t>(row * width);
    sums_of_rows.insert(sums_of_rows.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t c = 0; c < width && is_named(row); ++c) {
      const std::size_t element = row * width + c;
      const auto times = static_cast<float>(positions[row].size());
      added[element] += sums[element];
      stepped[element] -= sums[element];
      mean[element] = sums[element] / times;
    }
  const auto batch = make<ferry::device_space>("values", ids.size(), width, values);
  const auto plan = ferry::make_plan(exec, ids, rows);
  for_each_path<Space, ferry::device_space, work::changes>([&](auto path) {
    auto table = make<Space>("table", rows, width, start);
    ferry::scatter_add(exec, table, ids, batch, path).wait();
    CHECK(take(table) == added);
    put(table, start);
    ferry::scatter(exec, table, plan, batch, ferry::duplicates::mean{}, path).wait();
    CHECK(take(table) == mean);
    put(table, start);
    const ferry::optim::sgd rule{.lr = 1.0};
    auto state = ferry::optim::make_state(rule, table);
    ferry::step(exec, rule, table, state, plan, batch, path).wait();
    CHECK(take(table) == stepped);
  });
  const auto sum_rows = make<ferry::device_space>("sums", unique.size(), width, sums_of_rows);
  step_as_on_sums<Space>(ferry::optim::adagrad{}, plan, batch, unique, sum_rows, start);
  step_as_on_sums<Space>(ferry::optim::rowwise_adagrad{}, plan, batch, unique, sum_rows, start);
}

TEMPLATE_TEST_CASE("rows that are named very often", "[scatter][step][long][once]", ferry::device_space,
                   ferry::mapped_space) {
  auto random = generator(31);
  for (const std::size_t width : {1u, 3u, 4u, 68u, 128u}) {
    add_up<TestType>(random, {1, 63, 64, 65, 66, 2, 129, 130, 131, 1000, 1, 72, 73, 74}, width);
    add_up<TestType>(random, {65, 65, 65}, width);
    add_up<TestType>(random, {64}, width);
    add_up<TestType>(random, {65}, width);
    add_up<TestType>(random, {1, 64, 1, 130, 194, 195}, width);
    if (width != 4 && width != 68) continue;
    for (const std::size_t total : {255u, 256u, 257u, 1023u, 1024u, 1025u}) {
      add_up<TestType>(random, {total}, width);
      add_up<TestType>(random, {66, 67, 3, total - 136}, width);
    }
  }
  // Pieces of 32 values and more.
  add_up<TestType>(random, {40000, 255, 256, 257, 12000, 511, 513, 8191, 8192, 8447, 8448, 8703, 65, 1}, 36);
}

}  // namespace ferry_test::sums_test
