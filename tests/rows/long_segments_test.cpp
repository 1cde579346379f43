// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

/// Rows that a batch names a few times and very often, about the length from which a device adds them up in another way,
/// in large batches by a kernel of its own: the same bits as one addition after the other, in the order of the batch.
namespace ferry_test::long_segments_test {

namespace {

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

}  // namespace

TEMPLATE_TEST_CASE("rows that are named very often", "[scatter][step][long][once]", ferry::device_space,
                   ferry::mapped_space) {
  auto random = generator(31);
  for (const std::size_t width : {1u, 3u, 4u, 68u, 128u}) {
    add_up<TestType>(random, {1, 63, 64, 65, 66, 2, 129, 130, 131, 1000, 1, 72, 73, 74}, width);
    add_up<TestType>(random, {65, 65, 65}, width);
    add_up<TestType>(random, {64}, width);
    add_up<TestType>(random, {65}, width);
    add_up<TestType>(random, {1, 64, 1, 130, 194, 195}, width);
    for (const std::size_t total : {255u, 256u, 257u, 1023u, 1024u, 1025u}) {
      add_up<TestType>(random, {total}, width);
      add_up<TestType>(random, {66, 67, 3, total - 136}, width);
    }
  }
  // Pieces of 32 values and more.
  add_up<TestType>(random, {40000, 255, 256, 257, 12000, 511, 513, 8191, 8192, 8447, 8448, 8703, 65, 1}, 36);
}

}  // namespace ferry_test::long_segments_test
