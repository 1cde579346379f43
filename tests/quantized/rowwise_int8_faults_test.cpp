// SPDX-License-Identifier: Apache-2.0
#include "rowwise_int8.hpp"
#include "support/matrix.hpp"
#include "support/test.hpp"

namespace ferry_test::rowwise_int8_faults_test {

template <class TableSpace, class ValueSpace, class Path, bool IsDirect>
struct fault_way {
  using table_space = TableSpace;
  using value_space = ValueSpace;
  using path = Path;
  static bool runs() { return !IsDirect || direct_runs<TableSpace, ValueSpace>(); }
};
template <class TableSpace, class ValueSpace, class Path>
using kernels_way = fault_way<TableSpace, ValueSpace, Path, true>;
template <class TableSpace, class ValueSpace>
using staged_way = fault_way<TableSpace, ValueSpace, ferry::path::staged, false>;

// Each table on each path, and path::staged wherever it is another one; path::automatic takes these for a scatter.
using faulty_ways =
    std::tuple<kernels_way<ferry::device_space, ferry::device_space, ferry::path::direct>,
               kernels_way<ferry::device_space, ferry::device_space, ferry::path::ordered>,
               staged_way<ferry::device_space, ferry::pageable_space>,
               kernels_way<ferry::mapped_space, ferry::pageable_space, ferry::path::direct>,
               kernels_way<ferry::mapped_space, ferry::device_space, ferry::path::ordered>,
               kernels_way<ferry::mapped_space, ferry::device_space, ferry::path::cooperative>,
               staged_way<ferry::mapped_space, ferry::device_space>,
               kernels_way<ferry::pageable_space, ferry::device_space, ferry::path::direct>,
               kernels_way<ferry::pageable_space, ferry::pageable_space, ferry::path::ordered>,
               kernels_way<ferry::pageable_space, ferry::device_space, ferry::path::cooperative>,
               staged_way<ferry::pageable_space, ferry::pageable_space>,
               fault_way<ferry::pageable_space, ferry::pageable_space, ferry::path::automatic, false>>;
TEMPLATE_LIST_TEST_CASE("a faulty batch leaves an 8-bit table untouched", "[int8][scatter][errors]",
                        faulty_ways) {
  using space = typename TestType::table_space;
  using values_in = typename TestType::value_space;
  const typename TestType::path path;
  if (!TestType::runs()) SKIP("this device has no access to pageable memory");
  auto random = generator(113);
  const std::size_t rows = 61, width = 13, n = 40;
  const auto records = records_of(uneven_rows<float>(random, rows, width), width);
  const auto batch = uneven_rows<float>(random, n, width);
  const exec_space exec;
  const auto says = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  const auto source = make<values_in>("values", n, width, batch);
  CAPTURE(space::name, values_in::name, path.name);
  auto table = table_of<space>(records, width);
  auto bad = unique_indices<std::int32_t>(random, n, rows);
  bad[7] = 61;
  bad[30] = -4;
  const auto plan = ferry::make_plan(exec, bad, rows);
  const char* outside = "ferry::scatter: 2 of 40 indices are outside of 'weights' [61 x 13]";
  const auto refuse = [&](const auto& ids, auto duplicates) {
    CHECK_THROWS_MATCHES(ferry::scatter(exec, table, ids, source, path, duplicates).wait(),
                         ferry::out_of_range, says(outside));
  };
  refuse(bad, ferry::duplicates::last{});
  refuse(bad, ferry::duplicates::assume_unique{});
  refuse(plan, ferry::duplicates::first{});
  auto twice = unique_indices<std::int32_t>(random, n, rows);
  twice[9] = twice[21];
  CHECK_THROWS_MATCHES(ferry::scatter(exec, table, twice, source, path, ferry::duplicates::reject{}).wait(),
                       ferry::invalid_argument, says("ferry::scatter: 1 row of 'weights' [61 x 13]"));
  CHECK(take(table.records()) == records);

  // If bad indices are skipped or clamped, the others are written, on any path: an index becomes a row before.
  if constexpr (!std::is_same_v<values_in, ferry::device_space>) {
    ferry::scatter(exec, table, bad, source, path, ferry::bounds::skip{}, ferry::duplicates::sum{}).wait();
    auto expected = scattered_records(records, width, bad, batch, "duplicates::sum");
    CHECK(take(table.records()) == expected);
    ferry::scatter(exec, table, bad, source, path, ferry::bounds::skip{}, ferry::duplicates::assume_unique{})
        .wait();
    expected = scattered_records(expected, width, bad, batch, "duplicates::assume_unique");
    CHECK(take(table.records()) == expected);
    ferry::scatter(exec, table, bad, source, path, ferry::bounds::clamp{}).wait();
    expected = scattered_records(expected, width, bad, batch, "duplicates::last", on_bad::clamp);
    CHECK(take(table.records()) == expected);
  }
}

}  // namespace ferry_test::rowwise_int8_faults_test
