// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <fstream>

/// Sizes beyond 4 GiB and counts beyond 2^31. Only a few pages of the tables are touched, so on a host
/// backend they cost address space more than memory.
namespace ferry_test::large_test {

constexpr std::size_t gib = std::size_t{1} << 30;

void need_memory(std::size_t bytes) {
  std::ifstream in("/proc/meminfo");
  std::size_t kib = 0;
  for (std::string word; in >> word;)
    if (word == "MemAvailable:" && in >> kib) break;
  if (kib * 1024 < bytes)
    SKIP("needs " << bytes / gib << " GiB of memory, " << kib * 1024 / gib << " GiB are available");
}

/// Writes rows at both ends of a table and in its middle, and reads them back.
template <class T, class Index, class Table>
void check_ends(Table& table) {
  const exec_space exec;
  const auto last = static_cast<Index>(table.rows() - 1);
  const auto width = table.width();
  const std::vector<Index> places{last, 0, static_cast<Index>(last / 2 + 1), static_cast<Index>(last - 3), 2};
  std::vector<T> rows(places.size() * width);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<T>(1 + i % 101);
  const auto batch = make<ferry::device_space>("batch", places.size(), width, rows);
  ferry::scatter(exec, table, places, batch).wait();
  ferry::scatter_add(exec, table, places, batch).wait();
  ferry::tensor<T, ferry::device_space> back("back", places.size(), width);
  ferry::gather(exec, table, places, back).wait();
  auto expected = rows;
  for (auto& value : expected) value = static_cast<T>(2 * value);
  CHECK(take(back) == expected);
  // A check through host memory, without the verbs' arithmetic of places.
  if constexpr (Table::memory_space::is_host_accessible) {
    Kokkos::fence();
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < places.size(); ++p)
      for (std::size_t j = 0; j < width; ++j)
        wrong += table.data()[static_cast<std::size_t>(places[p]) * width + j] != expected[p * width + j];
    CHECK(wrong == 0);
  }
  const std::vector<Index> past{static_cast<Index>(table.rows())};
  ferry::tensor<T, ferry::device_space> single("one", 1, width);
  CHECK_THROWS_AS(ferry::gather(exec, table, past, single).wait(), ferry::out_of_range);
}

// A space for each: the arithmetic of places does not ask where a table is.
TEST_CASE("tables of more than 2^31 rows", "[large]") {
  need_memory(4 * gib);
  ferry::tensor<std::int8_t, ferry::device_space> table("long", (std::size_t{1} << 31) + 5, 1);
  check_ends<std::int8_t, std::int64_t>(table);
  check_ends<std::int8_t, std::uint32_t>(table);
}

TEST_CASE("tables of more than 4 GiB", "[large]") {
  need_memory(6 * gib);
  // 1.2 times 2^32 bytes, and rows that no power of two divides.
  ferry::tensor<float, ferry::pageable_space> table("wide", 5 * gib / 4 / 131, 131);
  check_ends<float, std::int32_t>(table);
  const auto plan = ferry::make_plan(
      exec_space{}, std::vector<std::int64_t>{3, static_cast<std::int64_t>(table.rows()) - 1, 3},
      table.rows());
  CHECK(plan.unique_count() == 2);
  ferry::tensor<float, ferry::device_space> rows("rows", 3, 131);
  ferry::gather(exec_space{}, table, plan, rows).wait();
  CHECK(take(rows)[131 + 1] == 4.0f);  // row rows() - 1 is the first of check_ends: 2 * (1 + 1)
}

TEST_CASE("a batch of more than 2^31 elements", "[large]") {
  need_memory(4 * gib);
  // Only the first and the last position take part, so that the batch's pages in between stay untouched.
  constexpr std::size_t width = 65536;
  constexpr std::size_t count = (std::size_t{1} << 31) / width + 3;
  const exec_space exec;
  std::vector<std::int8_t> row(width);
  for (std::size_t j = 0; j < width; ++j) row[j] = static_cast<std::int8_t>(j % 127);
  const auto table = make<ferry::mapped_space>("table", 1, width, row);
  std::vector<std::int32_t> chosen(count, -1);
  chosen.front() = 0;
  chosen.back() = 0;
  ferry::tensor<std::int8_t, ferry::device_space> batch("batch", count, width);
  ferry::gather(exec, table, chosen, batch, ferry::bounds::skip{}).wait();
  ferry::tensor<std::int8_t, ferry::pageable_space> ends("ends", 2, width);
  ferry::gather(exec, batch, std::vector<std::int32_t>{0, static_cast<std::int32_t>(count - 1)}, ends,
                ferry::path::staged{})
      .wait();
  const auto values_read = take(ends);
  CHECK(std::vector<std::int8_t>(values_read.begin(), values_read.begin() + width) == row);
  CHECK(std::vector<std::int8_t>(values_read.begin() + width, values_read.end()) == row);
}

TEST_CASE("copies of more than 2^31 elements", "[large][once]") {
  need_memory(6 * gib);
  constexpr std::size_t size = (std::size_t{1} << 31) + 77;
  const exec_space exec;
  ferry::tensor<std::int8_t, ferry::device_space> source("from", size);
  ferry::init::zeros(exec, source);
  const std::vector<std::int64_t> places{static_cast<std::int64_t>(size) - 1, 1};
  ferry::scatter(exec, source, places, make<ferry::device_space>("values", std::vector<std::int8_t>{9, 8}))
      .wait();
  ferry::tensor<std::int8_t, ferry::mapped_space> target("to", size);
  ferry::copy(exec, source, target).wait();
  CHECK(target.data()[size - 1] == 9);
  CHECK(target.data()[1] == 8);
  CHECK(target.data()[size / 2] == 0);
}

}  // namespace ferry_test::large_test
