// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// Rows of elements of one and two bytes whose width is no multiple of a packet, in slots and in host memory.
namespace ferry_test::odd_rows_test {

namespace {

constexpr std::size_t rows = 400;

/// A gather from a cached table has the bytes of the table's rows; `shift` elements lie before the batch.
template <class T>
void compare(std::size_t width, std::size_t shift, std::int64_t refresh) {
  CAPTURE(width, shift, refresh);
  auto random = generator(5200 + width + shift);
  const exec_space exec;
  std::vector<T> start(rows * width);
  for (auto& element : start) element = static_cast<T>(static_cast<float>(1 + random() % 100));
  auto table = make<ferry::mapped_space>("table", rows, width, start);
  ferry::cached_table hot(table, ferry::cache::frequency{.rows = 60, .refresh = refresh});
  for (int turn = 0; turn < 5; ++turn) {
    const auto ids = skewed<std::int64_t>(random, 150, rows, 0, 50);
    std::vector<T> expected;
    for (const auto row : ids) {
      const auto begin = start.begin() + row * static_cast<std::ptrdiff_t>(width);
      expected.insert(expected.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    const std::size_t size = ids.size() * width;
    const std::vector<T> poison(size + shift, static_cast<T>(0.0f));
    auto memory = make<ferry::device_space>("memory", 1, size + shift, poison);
    const ferry::tensor_view<T, ferry::device_space> batch(memory.data() + shift, ids.size(), width);
    const auto check = [&](const char* way) {
      CAPTURE(way, turn);
      const auto read = take(memory);
      REQUIRE(
          same_bits(std::vector<T>(read.begin() + static_cast<std::ptrdiff_t>(shift), read.end()), expected));
      put(memory, poison);
    };
    ferry::gather(exec, hot, ids, batch).wait();
    check("indices");
    ferry::gather(exec, hot, ferry::make_plan(exec, ids, rows), batch).wait();
    check("a plan");
    ferry::gather(exec, hot, ids, batch, ferry::path::ordered{}).wait();
    check("ordered");
    ferry::gather_unique(exec, hot, ids, batch).wait();
    check("unique");
  }
}

template <class T>
void compare_widths() {
  for (const std::size_t width : {33u, 65u, 130u, 300u})
    for (const std::size_t shift : {0u, 1u})
      for (const std::int64_t refresh : {3, 64}) compare<T>(width, shift, refresh);
}

}  // namespace

TEMPLATE_TEST_CASE("rows of odd widths come out of both memories of a cache", "[cache][gather][width]",
                   ferry::half_t, std::uint8_t) {
  compare_widths<TestType>();
}

}  // namespace ferry_test::odd_rows_test
