// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <ferry/distributed.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

/// A program that links the library's verbs. Calls with default policies run out of the library; calls that name a
/// policy, also a default one, are compiled here. Both must give the same bits.
namespace ferry_test {

namespace {

constexpr std::size_t rows = 257, width = 13, n = 600;

using tables =
    std::tuple<ferry::tensor<float, ferry::device_space>, ferry::tensor<float, ferry::pinned_space>,
               ferry::tensor<float, ferry::mapped_space>>;

/// The last position that names each row.
std::map<std::size_t, std::size_t> last_positions(const std::vector<std::int64_t>& ids) {
  std::map<std::size_t, std::size_t> last;
  for (std::size_t p = 0; p < ids.size(); ++p) last[static_cast<std::size_t>(ids[p])] = p;
  return last;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("the library's verbs move and step rows as those of the headers do", "[instances]",
                        tables) {
  using T = typename TestType::value_type;
  using space = typename TestType::memory_space;
  using ref = ferry::detail::array_ref<T, space>;
  static_assert(ferry::detail::is_prebuilt_table<ref>);
  static_assert(ferry::detail::is_prebuilt_call<exec_space, ferry::detail::chosen_policies<>>);

  auto random = generator(311);
  const exec_space exec;
  const auto content = values<T>(random, rows * width);
  const auto batch = values<T>(random, n * width);
  const auto wide = indices<std::int64_t>(random, n, rows);
  const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
  const auto on_device = make<ferry::device_space>("indices", narrow);
  const auto plan = ferry::make_plan(exec, wide, rows);
  CHECK(plan.unique_count() == static_cast<std::int64_t>(last_positions(wide).size()));
  const auto grads = make<ferry::device_space>("grads", n, width, batch);

  // verb(indices) for every kind of indices that the library has.
  const auto for_each_kind = [&](const auto& verb) {
    verb(wide);
    verb(std::span<const std::int32_t>(narrow));
    verb(on_device);
    verb(plan);
  };

  SECTION("gather") {
    std::vector<T> expected(n * width);
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        expected[p * width + c] = content[static_cast<std::size_t>(wide[p]) * width + c];
    const auto table = make<space>("table", rows, width, content);
    for_each_kind([&](const auto& kind) {
      auto out = make<ferry::device_space>("out", n, width, std::vector<T>(n * width));
      ferry::gather(exec, table, kind, out).wait();
      CHECK(same_bits(take(out), expected));
    });
  }

  SECTION("scatter and scatter_add") {
    auto replaced = content;
    for (const auto& [row, position] : last_positions(wide))
      for (std::size_t c = 0; c < width; ++c) replaced[row * width + c] = batch[position * width + c];
    for_each_kind([&](const auto& kind) {
      auto table = make<space>("table", rows, width, content);
      ferry::scatter(exec, table, kind, grads).wait();
      CHECK(same_bits(take(table), replaced));
      auto sums = make<space>("sums", rows, width, content);
      auto compiled_here = make<space>("sums", rows, width, content);
      ferry::scatter_add(exec, sums, kind, grads).wait();
      ferry::scatter_add(exec, compiled_here, kind, grads, ferry::duplicates::sum{}).wait();
      CHECK(same_bits(take(sums), take(compiled_here)));
      CHECK_FALSE(same_bits(take(sums), content));
    });
  }

  SECTION("step") {
    const auto steps_of = [&](const auto& rule) {
      for_each_kind([&](const auto& kind) {
        auto table = make<space>("table", rows, width, content);
        auto compiled_here = make<space>("table", rows, width, content);
        auto state = ferry::optim::make_state(rule, table);
        auto twin_state = ferry::optim::make_state(rule, compiled_here);
        for (int step = 0; step < 3; ++step) {
          ferry::step(exec, rule, table, state, kind, grads).wait();
          ferry::step(exec, rule, compiled_here, twin_state, kind, grads, ferry::duplicates::sum{}).wait();
        }
        CHECK(state.steps() == 3);
        CHECK(same_bits(take(table), take(compiled_here)));
        CHECK_FALSE(same_bits(take(table), content));
        for (int f = 0; f < state.fields(); ++f)
          CHECK(same_bits(take(state.field(f)), take(twin_state.field(f))));
      });
    };
    steps_of(ferry::optim::sgd{.lr = 0.5, .momentum = 0.25});
    steps_of(ferry::optim::adagrad{.lr = 0.5});
    steps_of(ferry::optim::adam{.lr = 0.5});
    steps_of(ferry::optim::rowwise_adagrad{.lr = 0.5});
  }
}

TEST_CASE("the library's sgd step takes lr times the sum of the gradients of a row", "[instances]") {
  auto random = generator(312);
  const exec_space exec;
  const auto content = values<float>(random, rows * width);
  const auto batch = values<float>(random, n * width);
  const auto ids = indices<std::int32_t>(random, n, rows);
  auto table = make<ferry::mapped_space>("table", rows, width, content);
  const auto grads = make<ferry::device_space>("grads", n, width, batch);
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, ids, grads).wait();
  std::vector<double> expected(content.begin(), content.end());
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t c = 0; c < width; ++c)
      expected[static_cast<std::size_t>(ids[p]) * width + c] -=
          0.5 * static_cast<double>(batch[p * width + c]);
  // Multiples of a sixteenth far below 2^20: every sum is exact.
  CHECK(same_bits(take(table), std::vector<float>(expected.begin(), expected.end())));
}

/// Too many positions for one launch of any device's sort, with an index type that the library has no verbs for.
TEST_CASE("large plans are sorted out of the library", "[instances]") {
  auto random = generator(313);
  const exec_space exec;
  constexpr std::size_t many = 4'200'000;
  const auto ids = indices<std::uint64_t>(random, many, rows + 9);
  std::map<std::size_t, std::size_t> last;
  for (std::size_t p = 0; p < many; ++p)
    last[static_cast<std::size_t>(ids[p] < rows ? ids[p] : rows - 1)] = p;
  const auto plan = ferry::make_plan(exec, ids, rows, ferry::bounds::clamp{});
  CHECK(plan.unique_count() == static_cast<std::int64_t>(last.size()));

  auto table = make<ferry::device_space>("table", rows, 1, std::vector<float>(rows, -1.0f));
  const auto batch = values<float>(random, many);
  ferry::scatter(exec, table, plan, make<ferry::device_space>("batch", many, 1, batch)).wait();
  std::vector<float> expected(rows, -1.0f);
  for (const auto& [row, position] : last) expected[row] = batch[position];
  CHECK(same_bits(take(table), expected));
}

TEST_CASE("batches find the owners of their rows out of the library", "[instances]") {
  auto random = generator(314);
  auto comm = ferry::communicator::threads(3);
  ferry::sharded_table<float, ferry::device_space> table("table", comm, rows, width);
  const exec_space exec;
  const auto content = values<float>(random, rows * width);
  ferry::copy(exec, make<ferry::device_space>("content", rows, width, content), table).wait();
  const auto ids = make<ferry::device_space>("indices", indices<std::int64_t>(random, n, rows));
  const auto rows_of_batch = take(ids);
  auto out = make<ferry::device_space>("out", n, width, std::vector<float>(n * width));
  ferry::gather(exec, table, ids, out).wait();
  std::vector<float> expected(n * width);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t c = 0; c < width; ++c)
      expected[p * width + c] = content[static_cast<std::size_t>(rows_of_batch[p]) * width + c];
  CHECK(same_bits(take(out), expected));
}

TEST_CASE("the library's verbs report bad indices and shapes", "[instances]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 3, 2, std::vector<float>(6));
  auto out = make<ferry::device_space>("out", 2, 2, std::vector<float>(4));
  CHECK_THROWS_AS(ferry::gather(exec, table, std::vector<std::int32_t>{0, 3}, out).wait(),
                  ferry::out_of_range);
  CHECK_THROWS_AS(ferry::gather(exec, table, std::vector<std::int64_t>{0}, out), ferry::invalid_argument);
}

TEST_CASE("types that the library does not have are compiled as ever", "[instances]") {
  static_assert(!ferry::detail::is_prebuilt_table<ferry::detail::array_ref<double, ferry::mapped_space>>);
  static_assert(
      !ferry::detail::is_prebuilt_table<ferry::detail::array_ref<ferry::half_t, ferry::mapped_space>>);
  auto random = generator(313);
  const exec_space exec;
  const auto content = values<double>(random, rows * width);
  const auto ids = indices<std::uint32_t>(random, n, rows);
  const auto table = make<ferry::mapped_space>("table", rows, width, content);
  auto out = make<ferry::device_space>("out", n, width, std::vector<double>(n * width));
  ferry::gather(exec, table, ids, out).wait();
  const auto result = take(out);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t c = 0; c < width; ++c)
      REQUIRE(result[p * width + c] == content[static_cast<std::size_t>(ids[p]) * width + c]);
}

}  // namespace ferry_test
