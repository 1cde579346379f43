// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::arguments_test {

auto says(const std::string& text) { return MessageMatches(ContainsSubstring(text)); }

TEST_CASE("shapes that do not fit are refused by name before anything is launched", "[errors]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("weights", 100, 8);
  ferry::init::uniform(exec, table, -1.0, 1.0, 5);
  const auto before = take(table);
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 8);
  ferry::tensor<float, ferry::device_space> narrow("narrow", 3, 7);
  const std::vector<int> ids{1, 2, 3};
  const std::vector<int> longer{1, 2, 3, 4};

  CHECK_THROWS_MATCHES(ferry::gather(exec, table, longer, batch), ferry::invalid_argument,
                       says("ferry::gather: 4 indices were given for the 3 rows of 'batch' [3 x 8]"));
  CHECK_THROWS_MATCHES(
      ferry::gather(exec, table, ids, narrow), ferry::invalid_argument,
      says("rows of 'weights' [100 x 8] in mapped_space have 8 elements, rows of 'narrow' [3 x 7]"));
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, longer, batch), ferry::invalid_argument,
                       says("ferry::scatter: 4"));
  CHECK_THROWS_MATCHES(ferry::scatter_add(exec, table, ids, narrow), ferry::invalid_argument,
                       says("ferry::scatter_add: rows of"));
  ferry::tensor<int, ferry::device_space> matrix("matrix", 3, 2), cube("cube", 3, 2, 1);
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, matrix, batch), ferry::invalid_argument,
                       says("ferry::gather: 6 indices were given for the 3 rows of 'batch' [3 x 8]"));
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, cube, batch), ferry::invalid_argument,
                       says("'cube' [3 x 2 x 1] in device_space have rank 3, must be 1 or 2"));
  CHECK_THROWS_MATCHES(ferry::make_plan(exec, cube, 100), ferry::invalid_argument, says("rank 3"));
  CHECK_THROWS_MATCHES(ferry::make_plan(exec, ids, -1), ferry::invalid_argument, says("-1"));

  const auto plan = ferry::make_plan(exec, ids, 99);
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, plan, batch), ferry::invalid_argument,
                       says("for tables of 99 rows, but 'weights' [100 x 8] in mapped_space has 100"));
  const auto fitting = ferry::make_plan(exec, ids, 100);
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, fitting, batch, ferry::bounds::clamp{}),
                       ferry::invalid_argument,
                       says("made with bounds::check, the verb can't change that to bounds::clamp"));
  CHECK_THROWS_MATCHES(ferry::gather(exec, table, ferry::row_plan{}, batch), ferry::invalid_argument,
                       says("empty"));

  ferry::tensor<float, ferry::mapped_space> none("none", 0, 8);
  CHECK_THROWS_MATCHES(ferry::gather(exec, none, ids, batch, ferry::bounds::clamp{}), ferry::invalid_argument,
                       says("no row to send 3 indices to, 'none' [0 x 8] in mapped_space has none"));
  CHECK_THROWS_AS(ferry::gather(exec, none, ids, batch).wait(), ferry::out_of_range);
  const ferry::tensor<float, ferry::mapped_space> handle;
  CHECK_THROWS_MATCHES(ferry::gather(exec, handle, ids, batch), ferry::invalid_argument,
                       says("empty handle"));
  ferry::tensor<float, ferry::mapped_space> source("source", 5, 8), target("target", 1, 8);
  const auto owner = std::move(source);
  CHECK_THROWS_MATCHES(ferry::gather(exec, source, ids, batch), ferry::invalid_argument,
                       says("'source' is an empty handle without extents: it was moved from"));
  target = ferry::tensor<float, ferry::mapped_space>("second", 5, 8);
  source = std::move(target);
  CHECK_THROWS_MATCHES(ferry::gather(exec, target, ids, batch), ferry::invalid_argument,
                       says("'second' is an empty handle"));
  CHECK(source.label() == "second");
  CHECK(take(table) == before);
}

TEST_CASE("empty batches and rows of no elements are legal", "[errors]") {
  const exec_space exec;
  const std::vector<int> nobody;
  ferry::tensor<float, ferry::mapped_space> table("weights", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 0, 4);
  ferry::init::zeros(exec, table);
  CHECK_NOTHROW(ferry::gather(exec, table, nobody, batch).wait());
  CHECK_NOTHROW(ferry::scatter(exec, table, nobody, batch).wait());
  CHECK_NOTHROW(ferry::scatter_add(exec, table, nobody, batch, ferry::duplicates::reject{}).wait());
  const auto plan = ferry::make_plan(exec, nobody, 10);
  CHECK(plan.unique_count() == 0);
  CHECK_NOTHROW(ferry::gather(exec, table, plan, batch).wait());
  CHECK_NOTHROW(ferry::scatter(exec, table, plan, batch).wait());
  ferry::tensor<float, ferry::mapped_space> thin("thin", 10, 0);
  ferry::tensor<float, ferry::device_space> row("row", 1, 0);
  CHECK_NOTHROW(ferry::gather(exec, thin, std::vector<int>{3}, row).wait());
  CHECK_NOTHROW(ferry::scatter(exec, thin, std::vector<int>{3}, row).wait());
  ferry::init::zeros(exec, thin);
  CHECK_NOTHROW(ferry::copy(exec, batch, batch).wait());
}

TEST_CASE("a direct path to pageable memory is refused where the device can't reach it", "[errors]") {
  const exec_space exec;
  ferry::tensor<float, ferry::pageable_space> table("weights", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 1, 4);
  ferry::init::zeros(exec, table);
  const std::vector<int> ids{3};
  if (ferry::execution_backend<exec_space>::reaches_pageable(exec)) {
    CHECK_NOTHROW(ferry::gather(exec, table, ids, batch, ferry::path::direct{}).wait());
  } else {
    CHECK_THROWS_MATCHES(ferry::gather(exec, table, ids, batch, ferry::path::direct{}),
                         ferry::invalid_argument,
                         says("path::direct can't reach 'weights' [10 x 4] in pageable_space"));
    CHECK_THROWS_AS(ferry::scatter(exec, table, ids, batch, ferry::path::direct{}), ferry::invalid_argument);
    CHECK_THROWS_AS(ferry::copy(exec, table, batch, ferry::path::direct{}), ferry::invalid_argument);
  }
}

TEST_CASE("operands that share memory are refused by name", "[errors]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> memory("memory", 20, 16);
  ferry::init::zeros(exec, memory);
  using view = ferry::tensor_view<float, ferry::mapped_space>;
  const std::vector<int> ids{1, 2, 3};
  const auto shared = [&](const auto& table, auto&& batch) {
    CHECK_THROWS_MATCHES(ferry::gather(exec, table, ids, batch), ferry::invalid_argument,
                         says("ferry::gather: ") && says("[3 x ") && says("overlap in memory"));
    CHECK_THROWS_MATCHES(ferry::scatter(exec, table, ids, batch), ferry::invalid_argument,
                         says("ferry::scatter: ") && says("overlap in memory"));
  };
  shared(view(memory.data(), 10, 16), view(memory.data() + 9 * 16, 3, 16));
  shared(view(memory.data() + 4, 10, 16), view(memory.data(), 3, 16));
  CHECK_NOTHROW(
      ferry::gather(exec, view(memory.data(), 10, 16), ids, view(memory.data() + 160, 3, 16)).wait());
  CHECK_NOTHROW(
      ferry::gather(exec, view(memory.data() + 160, 10, 16), ids, view(memory.data(), 3, 16)).wait());
  CHECK_THROWS_MATCHES(ferry::copy(exec, view(memory.data(), 3, 16), view(memory.data() + 1, 3, 16)),
                       ferry::invalid_argument, says("ferry::copy: ") && says("overlap in memory"));

  // All elements of these lie in one place.
  using stretched =
      Kokkos::View<float*, Kokkos::LayoutStride, ferry::detail::kokkos_space_t<ferry::mapped_space>,
                   Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  CHECK_THROWS_AS(ferry::gather(exec, stretched(memory.data(), Kokkos::LayoutStride(4, 0)), ids,
                                stretched(memory.data(), Kokkos::LayoutStride(3, 0))),
                  ferry::invalid_argument);

  // Columns of one array lie between each other's.
  const Kokkos::View<float**, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<ferry::mapped_space>,
                     Kokkos::MemoryTraits<Kokkos::Unmanaged>>
      whole(memory.data(), 20, 16);
  const auto columns = [&](std::size_t source, std::size_t target, std::size_t rows) {
    return Kokkos::subview(whole, Kokkos::make_pair(std::size_t{0}, rows), Kokkos::make_pair(source, target));
  };
  CHECK_NOTHROW(ferry::gather(exec, columns(0, 8, 20), ids, columns(8, 16, 3)).wait());
  CHECK_NOTHROW(ferry::gather(exec, columns(8, 16, 20), ids, columns(0, 8, 3)).wait());
  shared(columns(0, 8, 20), columns(7, 15, 3));
  shared(columns(7, 15, 20), columns(0, 8, 3));
}

TEST_CASE("memory that a verb can't have is missed by the verb's name", "[errors][budget]") {
  const exec_space exec;
  const auto ids = make<ferry::device_space>("which", std::vector<std::int64_t>(40000, 1));
  ferry::trim();
  ferry::set_memory_budget<ferry::pageable_space>(1);
  ferry::set_memory_budget<ferry::device_space>(1);
  CHECK_THROWS_MATCHES(ferry::make_plan(exec, ids, 5), ferry::budget_exceeded, says("ferry::make_plan: "));
  ferry::set_memory_budget<ferry::pageable_space>(0);
  ferry::set_memory_budget<ferry::device_space>(0);
  CHECK(ferry::make_plan(exec, ids, 5).unique_count() == 1);
}

// Batches on both sides of the sizes at which a device takes other kernels: distinct rows, one row, and a bad index at
// the last position.

const std::vector<std::size_t> sizes =
    ferry::detail::is_host_exec<exec_space>
        ? std::vector<std::size_t>{1, 1025, 16385}
        : std::vector<std::size_t>{1,    63,   64,   1023, 1024,  1025,  2048,
                                   2049, 4095, 4096, 4097, 16383, 16384, 16385};
constexpr std::size_t rows = 20000, width = 4;

struct row_batch {
  exec_space exec;
  std::vector<float> content, batch;
  std::vector<std::int64_t> ids;

  row_batch(std::size_t n, bool distinct) {
    auto random = generator(static_cast<unsigned int>(400 + n));
    content = values<float>(random, rows * width);
    batch = values<float>(random, n * width);
    // Sums of many small whole numbers are exact.
    for (float& value : batch) value = std::round(8 * value);
    for (float& value : content) value = std::round(8 * value);
    ids = distinct ? unique_indices<std::int64_t>(random, n, rows) : std::vector<std::int64_t>(n, 7);
  }
  /// The table after verb(table, indices, values).
  template <class Verb>
  [[nodiscard]] std::vector<float> written(const Verb& verb) const {
    auto table = make<ferry::device_space>("weights", rows, width, content);
    const auto indices = make<ferry::device_space>("ids", ids);
    verb(table, indices, make<ferry::device_space>("values", ids.size(), width, batch));
    return take(table);
  }
  [[nodiscard]] std::vector<double> oracle(bool adds, const char* duplicates) const {
    return scattered(content, width, ids, batch, adds, duplicates);
  }
};

}  // namespace ferry_test::arguments_test
