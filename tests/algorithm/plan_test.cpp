#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <numeric>

namespace ferry_test {
namespace {

/// An array of the plan's, on the host.
std::vector<std::int64_t> fetched(const std::int64_t* from, std::int64_t count) {
  std::vector<std::int64_t> made(static_cast<std::size_t>(count));
  Kokkos::fence();
  ferry::device_backend<exec_space>::read(made.data(), from, made.size() * sizeof(std::int64_t));
  return made;
}

template <class Index>
void check_plan(const std::vector<Index>& which, std::size_t rows) {
  CAPTURE(which.size(), rows);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, which, rows, ferry::bounds::skip{});
  const auto& made = *plan.storage();
  const auto n = static_cast<std::int64_t>(which.size());
  REQUIRE(plan.positions() == n);
  REQUIRE(plan.rows() == static_cast<std::int64_t>(rows));

  std::vector<std::int64_t> resolved(which.size());
  for (std::size_t p = 0; p < which.size(); ++p) resolved[p] = row_of(which[p], rows, on_bad::leave);
  std::vector<std::int64_t> order(which.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](std::int64_t p) { return resolved[static_cast<std::size_t>(p)] < 0; });
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return resolved[static_cast<std::size_t>(a)] < resolved[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> unique, begin, inverse(which.size(), -1);
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto row = resolved[static_cast<std::size_t>(order[k])];
    if (unique.empty() || unique.back() != row) {
      unique.push_back(row);
      begin.push_back(static_cast<std::int64_t>(k));
    }
    inverse[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(unique.size()) - 1;
  }
  begin.push_back(static_cast<std::int64_t>(order.size()));

  REQUIRE(plan.unique_count() == static_cast<std::int64_t>(unique.size()));
  CHECK(fetched(made.row_of, n) == resolved);
  CHECK(fetched(made.inverse, n) == inverse);
  CHECK(fetched(made.order, static_cast<std::int64_t>(order.size())) == order);
  CHECK(fetched(made.unique_rows, plan.unique_count()) == unique);
  if (!unique.empty()) CHECK(fetched(made.segment_begin, plan.unique_count() + 1) == begin);
}

}  // namespace

TEMPLATE_TEST_CASE("make_plan against a stable sort", "[plan]", std::int32_t, std::int64_t, std::uint32_t,
                   std::uint64_t) {
  auto random = generator(41);
  for (const std::size_t rows : {1u, 2u, 255u, 2047u, 2048u, 2049u, 1000000u})
    for (const std::size_t n : {0u, 1u, 2u, 31u, 1000u, 4096u, 4097u, 30000u})
      check_plan(indices<TestType>(random, n, rows), rows);
}

TEMPLATE_TEST_CASE("make_plan with indices outside of the table", "[plan]", std::int32_t, std::uint64_t) {
  auto random = generator(42);
  for (const std::size_t n : {1u, 33u, 9001u}) {
    auto which = indices<TestType>(random, n, 77);
    for (std::size_t p = 0; p < n; p += 3) which[p] = static_cast<TestType>(p % 2 == 0 ? -1 : 77);
    check_plan(which, 77);
    check_plan(std::vector<TestType>(n, static_cast<TestType>(-5)), 77);
    check_plan(std::vector<TestType>(n, static_cast<TestType>(76)), 77);
  }
  check_plan(std::vector<TestType>{0, 1, 2}, 0);
}

TEST_CASE("a plan serves many verbs, outlives its indices and may die before its verbs have ended",
          "[plan]") {
  auto random = generator(43);
  const std::size_t rows = 500, width = 16, n = 2000;
  const auto content = values<double>(random, rows * width);
  const auto batch = values<double>(random, n * width);
  auto which = indices<std::int64_t>(random, n, rows);
  const auto kept = which;
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", rows, width, content);
  const auto device = make<ferry::device_space>("values", n, width, batch);
  ferry::tensor<double, ferry::device_space> out("batch", n, width);
  ferry::ticket gathered_rows;
  ferry::ticket added_rows;
  {
    const auto plan = ferry::make_plan(exec, which, rows);
    std::fill(which.begin(), which.end(), -1);
    gathered_rows = ferry::gather(exec, table, plan, out);
    added_rows = ferry::scatter_add(exec, table, plan, device);
  }
  gathered_rows.wait();
  added_rows.wait();
  CHECK(same_bits(take(out), gathered(content, width, kept, std::vector<double>(n * width))));
  CHECK(close(take(table), scattered(content, width, kept, batch, true, "duplicates::sum")));
}

}  // namespace ferry_test
