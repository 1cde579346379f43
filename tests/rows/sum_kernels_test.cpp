// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <ferry/rows/detail/sum_long_segments.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

/// The kernels by which a device sums long segments, run by this thread on the arrays of a plan.
namespace ferry_test::sum_kernels_test {
namespace {

namespace kernels = ferry::kernels;

struct sorted_batch {
  std::vector<std::int64_t> order, inverse, segment_begin{0};
};
sorted_batch sorted(const std::vector<std::size_t>& counts, std::size_t unnamed, unsigned seed) {
  std::vector<std::int64_t> row_of;
  for (std::size_t row = 0; row < counts.size(); ++row)
    row_of.insert(row_of.end(), counts[row], static_cast<std::int64_t>(row));
  row_of.insert(row_of.end(), unnamed, -1);
  auto random = generator(seed);
  std::shuffle(row_of.begin(), row_of.end(), random);
  sorted_batch result;
  for (std::size_t row = 0; row <= counts.size(); ++row) {
    const auto segment = row == counts.size() ? -1 : static_cast<std::int64_t>(row);
    for (std::size_t p = 0; p < row_of.size(); ++p)
      if (row_of[p] == segment) result.order.push_back(static_cast<std::int64_t>(p));
    if (segment >= 0) result.segment_begin.push_back(static_cast<std::int64_t>(result.order.size()));
  }
  result.inverse = row_of;
  return result;
}

void check_sums(const std::vector<std::size_t>& counts, std::size_t unnamed, std::size_t width, bool packed,
                unsigned seed) {
  CAPTURE(counts, unnamed, width, packed);
  const sorted_batch batch = sorted(counts, unnamed, seed);
  const std::size_t n = batch.order.size();
  auto random = generator(seed + 1);
  const auto values = ferry_test::values<float>(random, n * width);
  const std::int64_t slots = kernels::long_segments::slots(static_cast<std::int64_t>(n));
  std::vector<float> sums(static_cast<std::size_t>(slots) * width, std::numeric_limits<float>::quiet_NaN());
  const kernels::segment_finder segments{batch.order.data(), batch.inverse.data(),
                                         batch.segment_begin.data()};
  kernels::plan_rows source;
  source.order = batch.order.data();
  const auto elements = static_cast<std::int64_t>(width);
  const std::int64_t tiles = packed ? elements / 4 : elements;
  const kernels::sum_segment_pieces<float, float, kernels::plan_rows> sum_pieces{
      segments,    source,   values.data(), elements,
      sums.data(), elements, packed,        ferry::detail::fast_divisor(tiles)};
  const kernels::add_pieces<float> add{segments, sums.data(), ferry::detail::fast_divisor(elements)};
  for (std::int64_t i = slots * tiles; i-- > 0;) sum_pieces(i);
  for (std::int64_t i = slots * elements; i-- > 0;) add(i);
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const std::int64_t begin = batch.segment_begin[row];
    if (!kernels::long_segments::has(begin, batch.segment_begin[row + 1])) continue;
    for (std::size_t c = 0; c < width; ++c) {
      std::vector<float> column;
      for (std::int64_t k = begin; k < batch.segment_begin[row + 1]; ++k)
        column.push_back(
            values[static_cast<std::size_t>(batch.order[static_cast<std::size_t>(k)]) * width + c]);
      const auto slot = static_cast<std::size_t>(kernels::long_segments::slot(begin));
      const bool same = sums[slot * width + c] == sum_in_pieces(column);
      if (!same) FAIL("row " << row << ", column " << c);
    }
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("a device's kernels sum long segments", "[sum_order]") {
  check_sums({64}, 0, 4, true, 1);
  check_sums({63, 65, 1, 64, 31, 32, 95, 96, 97, 128, 129}, 3, 8, true, 2);
  check_sums({64, 64, 64, 1, 64, 2, 64}, 70, 3, false, 3);
  check_sums({1, 8191, 1, 8192, 8193, 8447, 8448, 8703, 8704}, 1, 4, true, 4);
  check_sums({100'000, 77, 30'000}, 0, 2, false, 5);
  auto random = generator(6);
  for (unsigned seed = 10; seed < 60; ++seed) {
    std::vector<std::size_t> counts(1 + random() % 30);
    for (auto& count : counts) count = random() % 3 == 0 ? random() % 700 : random() % 90;
    check_sums(counts, random() % 50, 4, seed % 2 == 0, seed);
  }
}

}  // namespace ferry_test::sum_kernels_test
