// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/oracle.hpp"
#include "support/test.hpp"

/// The arrays that a plan must have, made by std::stable_sort, and its arrays brought to the host.
namespace ferry_test {

struct plan_arrays {
  std::vector<std::int64_t> row_of, order, sorted_rows, inverse, unique_rows, segment_begin, run_begin;

  bool operator==(const plan_arrays&) const = default;
};

template <class Index>
plan_arrays expected_plan(const std::vector<Index>& ids, std::size_t rows, on_bad policy) {
  plan_arrays arrays;
  for (const auto index : ids) arrays.row_of.push_back(row_of(index, rows, policy));
  const auto none = static_cast<std::int64_t>(rows);
  const auto key = [&](std::int64_t p) {
    const auto row = arrays.row_of[static_cast<std::size_t>(p)];
    return row < 0 ? none : row;
  };
  arrays.order.resize(ids.size());
  std::iota(arrays.order.begin(), arrays.order.end(), 0);
  std::stable_sort(arrays.order.begin(), arrays.order.end(),
                   [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
  arrays.inverse.assign(ids.size(), -1);
  std::int64_t places = 0;
  for (const auto p : arrays.order) {
    const auto row = key(p);
    arrays.sorted_rows.push_back(row);
    if (row == none) continue;
    if (arrays.unique_rows.empty() || arrays.unique_rows.back() != row) {
      if (arrays.unique_rows.empty() || arrays.unique_rows.back() + 1 != row)
        arrays.run_begin.push_back(static_cast<std::int64_t>(arrays.unique_rows.size()));
      arrays.unique_rows.push_back(row);
      arrays.segment_begin.push_back(places);
    }
    arrays.inverse[static_cast<std::size_t>(p)] = static_cast<std::int64_t>(arrays.unique_rows.size()) - 1;
    ++places;
  }
  arrays.segment_begin.push_back(places);
  arrays.run_begin.push_back(static_cast<std::int64_t>(arrays.unique_rows.size()));
  return arrays;
}

// oracles.cpp has these, optimised.
#define FERRY_TEST_PLANS(KIND, Index) \
  KIND template plan_arrays expected_plan(const std::vector<Index>&, std::size_t, on_bad);

FERRY_TEST_PLANS(extern, std::int32_t)
FERRY_TEST_PLANS(extern, std::uint32_t)
FERRY_TEST_PLANS(extern, std::int64_t)
FERRY_TEST_PLANS(extern, std::uint64_t)

template <class Backend, class T>
std::vector<std::int64_t> fetched(const T* array, std::int64_t count) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count));
  Backend::read(result.data(), array, result.size() * sizeof(std::int64_t));
  return result;
}

/// The arrays of a plan that an instance of Exec made.
template <class Exec>
plan_arrays arrays_of(const ferry::row_plan& plan) {
  using backend = ferry::execution_backend<Exec>;
  Kokkos::fence();
  const auto& storage = *plan.storage();
  const auto n = plan.positions();
  const auto segments = plan.unique_count();
  const auto runs = fetched<backend>(storage.run_count, 1)[0];
  REQUIRE(runs >= 0);
  REQUIRE(runs <= segments);
  REQUIRE(segments <= n);
  return {fetched<backend>(storage.row_of, n),
          fetched<backend>(storage.order, n),
          fetched<backend>(storage.sorted_rows, n),
          fetched<backend>(storage.inverse, n),
          fetched<backend>(storage.unique_rows, segments),
          fetched<backend>(storage.segment_begin, segments + 1),
          fetched<backend>(storage.run_begin, runs + 1)};
}

inline void check_same(const plan_arrays& arrays, const plan_arrays& expected) {
  CHECK(arrays.row_of == expected.row_of);
  CHECK(arrays.order == expected.order);
  CHECK(arrays.sorted_rows == expected.sorted_rows);
  CHECK(arrays.inverse == expected.inverse);
  CHECK(arrays.unique_rows == expected.unique_rows);
  CHECK(arrays.segment_begin == expected.segment_begin);
  CHECK(arrays.run_begin == expected.run_begin);
}

}  // namespace ferry_test
