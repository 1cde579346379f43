// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "reference/lru.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>
#include <ferry/optim/records.hpp>
#include <ferry/quantized.hpp>

/// cache::lru next to a model of it in plain C++.
namespace ferry_test::resolve_test {
namespace {

constexpr std::size_t width = 6;

/// A table of the numbers of its elements, and its cache.
template <class Space>
struct cached_rows_case {
  std::int64_t groups, slots, group_rows;
  std::vector<float> content;
  ferry::tensor<float, Space> table;
  ferry::cached_table<ferry::tensor<float, Space>, ferry::cache::lru> hot;
  lru_model model;

  cached_rows_case(std::mt19937_64& random, std::int64_t group_count, std::int64_t slot_count,
                   std::int64_t rows)
      : groups(group_count),
        slots(slot_count),
        group_rows(rows),
        content(values<float>(random, static_cast<std::size_t>(groups * rows) * width)),
        table(make<Space>("store", static_cast<std::size_t>(groups * rows), width, content)),
        hot(table, ferry::cache::lru{.slots = slots, .groups = groups}),
        model(groups, slots, rows) {}

  /// All slots that hold a row have its elements.
  void check_slots() {
    const auto row_of = model.rows();
    const auto hot_rows = hot.device_rows();
    ferry::tensor<float, ferry::pageable_space> copy("copy", row_of.size(), width);
    ferry::copy(exec_space(), hot_rows, copy).wait();
    for (std::size_t s = 0; s < row_of.size(); ++s)
      if (row_of[s] >= 0)
        for (std::size_t c = 0; c < width; ++c)
          REQUIRE(copy(s, c) == content[static_cast<std::size_t>(row_of[s]) * width + c]);
  }
};

std::vector<std::int64_t> draw_rows(std::mt19937_64& random, std::int64_t groups, std::int64_t group_rows,
                                    std::size_t count) {
  std::vector<std::int64_t> rows(count);
  for (std::size_t p = 0; p < count; ++p) {
    const auto range = static_cast<std::uint64_t>(group_rows);
    const auto first = static_cast<std::int64_t>(p / (count / static_cast<std::size_t>(groups))) * group_rows;
    const std::uint64_t number = (random() & 1) != 0 ? random() % range : random() % (range / 4 + 1);
    rows[p] = random() % 9 == 0 ? -1 : first + static_cast<std::int64_t>(number);
  }
  return rows;
}

}  // namespace

TEST_CASE("large groups have the slots of a model", "[cache][lru]") {
  auto random = generator(33);
  const exec_space exec;
  cached_rows_case<ferry::pinned_space> set(random, 3, 2100, 5000);
  for (int batch = 0; batch < 6; ++batch) {
    const auto list = draw_rows(random, 3, 5000, 3 * 1500);
    const auto expected = set.model.resolve(list, true, false);
    const auto rows_array = make<ferry::device_space>("rows", 3, 1500, list);
    auto slots_array =
        make<ferry::device_space>("slots", 3, 1500, std::vector<std::int64_t>(list.size(), 77));
    ferry::resolve(exec, set.hot, rows_array, slots_array).wait();
    CHECK(take(slots_array) == expected.slots);
    set.check_slots();
  }
}

namespace {

void train(bool write_back) {
  CAPTURE(write_back);
  auto random = generator(35);
  const exec_space exec;
  const std::size_t rows = 300, n = 90;
  const auto start = values<float>(random, rows * width);
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  auto twin = make<ferry::mapped_space>("twin", rows, width, start);
  const ferry::optim::adam rule{.lr = 0.02};
  auto state = ferry::optim::make_state(rule, table);
  auto twin_state = ferry::optim::make_state(rule, twin);
  {
    ferry::cached_table hot(table, ferry::cache::lru{.slots = 120, .write_back = write_back});
    for (int batch = 0; batch < 8; ++batch) {
      const auto ids = skewed<std::int32_t>(random, n, rows, static_cast<std::size_t>(batch) * 20, 40);
      auto mine = make<ferry::device_space>("mine", n, width, std::vector<float>(n * width, -1.0f));
      auto twin_out = make<ferry::device_space>("twin", n, width, std::vector<float>(n * width, -2.0f));
      ferry::gather(exec, hot, ids, mine).wait();
      ferry::gather(exec, twin, ids, twin_out).wait();
      CHECK(same_bits(take(mine), take(twin_out)));
      ferry::step(exec, rule, hot, state, ids, mine).wait();
      ferry::step(exec, rule, twin, twin_state, ids, twin_out).wait();
      if (!write_back) {
        CHECK(same_bits(take(table), take(twin)));
        CHECK(same_bits(take(state.field(1)), take(twin_state.field(1))));
      }
      // Changed rows leave when new_ids come.
      const auto new_ids = indices<std::int32_t>(random, 60, rows);
      auto slots = make<ferry::device_space>("slots", std::vector<std::int32_t>(60, 0));
      ferry::resolve(exec, hot, new_ids, slots).wait();
      const auto written = unique_indices<std::int32_t>(random, 20, rows);
      const auto new_rows = make<ferry::device_space>("new", 20, width, values<float>(random, 20 * width));
      ferry::scatter(exec, hot, written, new_rows).wait();
      ferry::scatter(exec, twin, written, new_rows).wait();
      if (batch == 4) hot.forget(exec, 0).wait();
      if (batch == 6) hot.prefetch(exec, new_ids).wait();
    }
    // A step of all rows brings none.
    const auto hits = hot.statistics().hits;
    const auto all_grads = make<ferry::device_space>("all", rows, width, values<float>(random, rows * width));
    ferry::step(exec, rule, hot, state, all_grads).wait();
    ferry::step(exec, rule, twin, twin_state, all_grads).wait();
    CHECK(hot.statistics().hits == hits + 120);
    if (write_back) hot.flush(exec).wait();
    CHECK(same_bits(take(table), take(twin)));
    CHECK(same_bits(take(state.field(0)), take(twin_state.field(0))));
  }
  CHECK(same_bits(take(table), take(twin)));
}

}  // namespace

TEST_CASE("verbs on a cache of the rows used last have the bits of the table", "[cache][lru]") {
  train(false);
  train(true);
}

namespace {

/// Bytes of a row of a view in the memory of a device.
template <class View>
std::vector<std::byte> bytes_of_rows(const View& view) {
  using element = std::remove_const_t<typename View::value_type>;
  ferry::tensor<element, ferry::pageable_space> copy("copy", view.rows(), view.width());
  ferry::copy(exec_space(), view, copy).wait();
  const auto* const first = reinterpret_cast<const std::byte*>(copy.data());
  return {first, first + copy.size() * sizeof(element)};
}

/// All slots that resolve has named hold the bytes of their rows.
void check_bytes(const std::vector<std::byte>& store, const std::vector<std::byte>& hot,
                 const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& slots,
                 std::size_t row_bytes) {
  for (std::size_t p = 0; p < rows.size(); ++p) {
    const auto row =
        store.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rows[p]) * row_bytes);
    const auto slot =
        hot.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slots[p]) * row_bytes);
    REQUIRE(std::equal(row, row + static_cast<std::ptrdiff_t>(row_bytes), slot));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("resolve finds codes and their scales", "[cache][lru]", ferry::quantization::mxfp8,
                   ferry::quantization::mxfp4, ferry::quantization::rowwise_int8,
                   ferry::quantization::per_row<ferry::quantization::e4m3>) {
  auto random = generator(39);
  const exec_space exec;
  const std::size_t rows = 200, columns = 64, n = 40;
  ferry::quantized_tensor<TestType, ferry::mapped_space> table("codes", rows, columns);
  const auto numbers =
      make<ferry::device_space>("numbers", rows, columns, values<float>(random, rows * columns));
  ferry::quantize(exec, numbers, table).wait();
  ferry::quantized_tensor<TestType, ferry::mapped_space> written("written", rows, columns);
  ferry::quantize(exec, numbers, written).wait();
  ferry::cached_table hot(table, ferry::cache::lru{.slots = 60, .groups = 2});
  for (int batch = 0; batch < 6; ++batch) {
    const auto list = indices<std::int32_t>(random, n, rows);
    auto slots = make<ferry::device_space>("slots", std::vector<std::int32_t>(n, 77));
    ferry::resolve(exec, hot, list, slots).wait();
    auto mine = make<ferry::device_space>("mine", n, columns, std::vector<float>(n * columns, -1.0f));
    auto twin = make<ferry::device_space>("twin", n, columns, std::vector<float>(n * columns, -2.0f));
    if constexpr (TestType::in_records) {
      check_bytes(bytes_of_rows(table.records()), bytes_of_rows(hot.device_rows()), list, take(slots),
                  table.row_bytes());
    } else {
      check_bytes(bytes_of_rows(table.codes()), bytes_of_rows(hot.device_rows()), list, take(slots),
                  table.codes().width() * sizeof(*table.codes().data()));
      check_bytes(bytes_of_rows(table.scales()), bytes_of_rows(hot.device_scales()), list, take(slots),
                  table.blocks() * sizeof(*table.scales().data()));
    }
    ferry::gather(exec, hot, list, mine).wait();
    ferry::gather(exec, table, list, twin).wait();
    CHECK(same_bits(take(mine), take(twin)));
    const auto new_rows = make<ferry::device_space>("new", n, columns, values<float>(random, n * columns));
    ferry::scatter(exec, hot, list, new_rows).wait();
    ferry::scatter(exec, written, list, new_rows).wait();
    if constexpr (TestType::in_records) {
      CHECK(bytes_of_rows(table.records()) == bytes_of_rows(written.records()));
    } else {
      CHECK(bytes_of_rows(table.codes()) == bytes_of_rows(written.codes()));
      CHECK(bytes_of_rows(table.scales()) == bytes_of_rows(written.scales()));
    }
  }
}

TEST_CASE("resolve finds records, weights first", "[cache][lru]") {
  auto random = generator(41);
  const exec_space exec;
  const std::size_t rows = 90, n = 30;
  const ferry::optim::adam rule{.lr = 0.02};
  auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "records", rows, width);
  const auto start = make<ferry::device_space>("start", rows, width, values<float>(random, rows * width));
  ferry::copy(exec, start, records.table()).wait();
  ferry::cached_table hot(records, ferry::cache::lru{.slots = 35});
  for (int batch = 0; batch < 5; ++batch) {
    const auto list = indices<std::int32_t>(random, n, rows);
    const auto grads = make<ferry::device_space>("grads", n, width, values<float>(random, n * width));
    ferry::step(exec, rule, hot, list, grads).wait();
    const auto new_list = indices<std::int32_t>(random, n, rows);
    auto slots = make<ferry::device_space>("slots", std::vector<std::int32_t>(n, 77));
    ferry::resolve(exec, hot, new_list, slots).wait();
    const auto in_slots = bytes_of_rows(hot.device_rows());
    hot.flush(exec).wait();
    CHECK(hot.device_rows().width() * sizeof(float) == records.row_bytes());
    check_bytes(bytes_of_rows(records.bytes()), in_slots, new_list, take(slots), records.row_bytes());
  }
}

TEST_CASE("layers are groups of one table", "[cache][lru]") {
  auto random = generator(43);
  const exec_space exec;
  const std::int64_t layers = 60, tokens = 50, slots = 12;
  cached_rows_case<ferry::mapped_space> set(random, layers, slots, tokens);
  for (int batch = 0; batch < 4; ++batch) {
    const auto list = draw_rows(random, layers, tokens, static_cast<std::size_t>(layers * 10));
    const auto expected = set.model.resolve(list, true, false);
    const auto rows_array = make<ferry::device_space>("rows", static_cast<std::size_t>(layers), 10, list);
    auto slots_array = make<ferry::device_space>("slots", static_cast<std::size_t>(layers), 10,
                                                 std::vector<std::int64_t>(list.size(), 77));
    ferry::resolve(exec, set.hot, rows_array, slots_array).wait();
    CHECK(take(slots_array) == expected.slots);
  }
  set.check_slots();
}

TEST_CASE("statistics count positions, by a plan as well", "[cache][lru]") {
  auto random = generator(45);
  const exec_space exec;
  cached_rows_case<ferry::mapped_space> set(random, 1, 8, 20);
  const std::vector<std::int64_t> list(30, 7);
  auto out = make<ferry::device_space>("out", 30, width, std::vector<float>(30 * width, -1.0f));
  const auto plan = ferry::make_plan(exec, list, 20);
  ferry::scatter(exec, set.hot, plan, out).wait();
  CHECK(set.hot.statistics().misses == 30);
  ferry::scatter(exec, set.hot, plan, out).wait();
  CHECK(set.hot.statistics().hits == 30);
}

TEST_CASE("resolve refuses what does not fit", "[cache][lru]") {
  auto random = generator(37);
  const exec_space exec;
  cached_rows_case<ferry::mapped_space> set(random, 2, 5, 20);
  const auto slots_of = [](std::size_t count) {
    return make<ferry::device_space>("slots", std::vector<std::int64_t>(count, 77));
  };
  const auto fails = [&](const std::vector<std::int64_t>& rows, const char* text) {
    auto slots = slots_of(rows.size());
    CHECK_THROWS_MATCHES(ferry::resolve(exec, set.hot, rows, slots).wait(), ferry::error,
                         MessageMatches(ContainsSubstring(text)));
    CHECK(set.hot.statistics().hits + set.hot.statistics().misses == 0);
  };
  fails({1, 40, 2}, "index 40 at position 1");
  fails({1, -3}, "index -3 at position 1");
  fails({0, 1, 2, 3, 4, 5}, "the first is group 0");
  auto few = slots_of(2);
  CHECK_THROWS_AS(ferry::resolve(exec, set.hot, std::vector<std::int64_t>{1, 2, 3}, few),
                  ferry::invalid_argument);
  const auto lines = make<ferry::device_space>("rows", 3, 2, std::vector<std::int64_t>(6, 1));
  auto line_slots = make<ferry::device_space>("slots", 3, 2, std::vector<std::int64_t>(6, 0));
  CHECK_THROWS_MATCHES(ferry::resolve(exec, set.hot, lines, line_slots), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("2 groups")));
  const auto foreign = make<ferry::device_space>("foreign", 2, 1, std::vector<std::int64_t>{1, 1});
  auto two = make<ferry::device_space>("slots", 2, 1, std::vector<std::int64_t>(2, 0));
  CHECK_THROWS_MATCHES(
      ferry::resolve(exec, set.hot, foreign, two).wait(), ferry::out_of_range,
      MessageMatches(ContainsSubstring("index 1 at position 1, in the line of another group")));
  CHECK(take(two) == std::vector<std::int64_t>{0, -2});
  auto list_of_both = make<ferry::device_space>("list_of_both", std::vector<std::int64_t>{1, 2, 3});
  CHECK_THROWS_MATCHES(ferry::resolve(exec, set.hot, list_of_both, list_of_both), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("shares memory with")));
  CHECK_THROWS_AS(ferry::cached_table(set.table, ferry::cache::lru{.slots = 5, .groups = 3}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(set.hot.forget(exec, 2), ferry::invalid_argument);
  CHECK_THROWS_MATCHES(set.hot.resize(1), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("1 slots in all are too few for 2 groups")));
}

}  // namespace ferry_test::resolve_test
