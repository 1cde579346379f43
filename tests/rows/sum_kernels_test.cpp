// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/row_operations.hpp>

/// The kernels by which a device sums long segments, run by this thread on the arrays of a plan.
namespace ferry_test::sum_kernels_test {

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

/// The columns of a row's values, and the sum of one.
float sum_of(const sorted_batch& batch, const std::vector<float>& values, std::size_t width, std::size_t row,
             std::size_t column) {
  std::vector<float> terms;
  for (std::int64_t k = batch.segment_begin[row]; k < batch.segment_begin[row + 1]; ++k)
    terms.push_back(
        values[static_cast<std::size_t>(batch.order[static_cast<std::size_t>(k)]) * width + column]);
  return sum_in_pieces(terms);
}

/// The arrays of a plan that names row 2 r + 1 for segment r, with a buffer full of NaN.
struct plan_arrays {
  sorted_batch batch;
  std::size_t width;
  std::int64_t has_long = 0;
  std::vector<std::int64_t> unique_rows;
  std::int64_t unique_count;
  std::vector<float> sums;

  plan_arrays(const std::vector<std::size_t>& counts, std::size_t unnamed, std::size_t columns, unsigned seed)
      : batch(sorted(counts, unnamed, seed)), width(columns) {
    const std::size_t n = batch.order.size();
    for (const std::size_t count : counts) has_long |= count >= 64 ? 1 : 0;
    // Empty segments are none.
    std::vector<std::int64_t> begins{0}, segment_of(counts.size());
    for (std::size_t row = 0; row < counts.size(); ++row) {
      segment_of[row] = static_cast<std::int64_t>(unique_rows.size());
      if (counts[row] == 0) continue;
      unique_rows.push_back(static_cast<std::int64_t>(2 * row + 1));
      begins.push_back(batch.segment_begin[row + 1]);
    }
    for (auto& row : batch.inverse)
      if (row >= 0) row = segment_of[static_cast<std::size_t>(row)];
    unique_count = static_cast<std::int64_t>(unique_rows.size());
    unique_rows.resize(n + 1, 0);
    begins.resize(n + 2, static_cast<std::int64_t>(n));
    segments = begins;
    sums.assign(n / 32 * width, std::numeric_limits<float>::quiet_NaN());
  }
  [[nodiscard]] kernels::plan_rows source() {
    kernels::plan_rows rows{unique_rows.data(), segments.data(), batch.order.data(), &unique_count};
    rows.sums = {sums.data(), static_cast<std::uint32_t>(width)};
    return rows;
  }
  std::vector<std::int64_t> segments;  ///< where those of named rows begin
};

template <class Kernel>
void run_shuffled(const Kernel& kernel, std::int64_t items, std::mt19937_64& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(items));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::int64_t i : order) kernel(i);
}

/// The kernel that sums pieces, of the columns from `first` on of wider values.
template <class Tile>
void sum_pieces_by(plan_arrays& plan, const std::vector<float>& values, std::int64_t stride,
                   std::int64_t first, std::mt19937_64& random) {
  const auto columns = static_cast<std::int64_t>(plan.width);
  const std::int64_t tiles = kernels::tiles_of<Tile>(columns + 8);  // some are beyond the row
  const auto rows = static_cast<std::int64_t>(plan.batch.order.size()) / 32;
  const kernels::sum_pieces_of_segments<float, Tile, kernels::plan_rows, float, kernels::column_range> kernel{
      plan.source(), &plan.has_long, plan.batch.order.data(), plan.batch.inverse.data(),
      values.data(), stride,         {first, columns},        ferry::detail::fast_divisor(tiles),
      rows};
  CHECK(kernel.work_items() == (plan.has_long != 0 ? rows * tiles : 0));
  run_shuffled(kernel, kernel.work_items(), random);
}

/// Both kernels of an addition to a table.
template <class Tile, class Duplicates = ferry::duplicates::sum>
void check_added(const std::vector<std::size_t>& counts, std::size_t unnamed, std::size_t width,
                 unsigned seed, std::size_t skew = 0) {
  CAPTURE(counts, unnamed, width, skew, Tile::elements, Tile::masked);
  plan_arrays plan(counts, unnamed, width, seed);
  auto random = generator(seed + 1);
  const std::size_t n = plan.batch.order.size(), rows = 2 * counts.size() + 1;
  const auto values = ferry_test::values<float>(random, n * width);
  auto table = ferry_test::values<float>(random, rows * width + 8);
  auto expected = table;
  const auto columns = static_cast<std::int64_t>(width);
  if (width % 4 == 0)
    sum_pieces_by<kernels::packed_tile>(plan, values, columns, 0, random);
  else
    sum_pieces_by<kernels::single_tile>(plan, values, columns, 0, random);
  const auto kernel = ferry::detail::apply_kernel<float, Tile, Duplicates>(
      plan.source(), static_cast<std::int64_t>(n), values.data(), columns, columns,
      kernels::add_row<float>{table.data() + skew, columns});
  CHECK(kernel.work_items() == plan.unique_count * kernel.per_item());
  run_shuffled(kernel, kernel.work_items(), random);
  for (std::size_t row = 0; row < counts.size(); ++row)
    for (std::size_t c = 0; c < width && counts[row] != 0; ++c) {
      float sum = sum_of(plan.batch, values, width, row, c);
      if (std::is_same_v<Duplicates, ferry::duplicates::mean>) sum /= static_cast<float>(counts[row]);
      expected[skew + (2 * row + 1) * width + c] += sum;
    }
  CHECK(table == expected);
}

TEST_CASE("a device's kernel sums the pieces of some columns", "[sum_order]") {
  plan_arrays plan({70, 3, 300, 20'000}, 2, 8, 1);
  auto random = generator(2);
  const std::size_t n = plan.batch.order.size(), width = 8, stride = 20;
  const auto wide = ferry_test::values<float>(random, n * stride);
  std::vector<float> part(n * width);
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = wide[i / width * stride + 4 + i % width];
  sum_pieces_by<kernels::packed_tile>(plan, wide, 20, 4, random);
  const auto of_wide = plan.sums;
  plan.sums.assign(plan.sums.size(), 0.0f);
  sum_pieces_by<kernels::single_tile>(plan, part, 8, 0, random);
  std::size_t written = 0;
  for (std::size_t i = 0; i < of_wide.size(); ++i)
    if (of_wide[i] == of_wide[i]) {
      ++written;
      REQUIRE(of_wide[i] == plan.sums[i]);
    } else {
      REQUIRE(plan.sums[i] == 0.0f);
    }
  CHECK(written == (2 + 9 + 256) * width);
}

TEST_CASE("a device's kernels sum long segments and update their rows", "[sum_order][once]") {
  using packed = kernels::packed_tile;
  using single = kernels::single_tile;
  using masked = kernels::masked_tile;
  check_added<packed>({64}, 0, 4, 1);
  check_added<packed>({1, 63, 2, 5}, 3, 8, 2);  // none is long
  check_added<packed>({63, 65, 1, 64, 31, 32, 95, 96, 97, 128, 129}, 3, 8, 3);
  check_added<single>({64, 64, 64, 1, 64, 2, 64}, 70, 3, 4);
  check_added<packed>({1, 8191, 1, 8192, 8193, 8447, 8448}, 1, 4, 5);
  check_added<single>({20'000, 77}, 0, 2, 6);
  check_added<packed>({1, 8447, 1, 8448, 8703, 8704}, 1, 4, 13);
  check_added<single>({100'000, 77, 30'000}, 0, 2, 14);
  check_added<single>({70, 3, 300}, 2, 71, 15);
  check_added<packed>({70, 3, 300}, 2, 260, 7);
  check_added<kernels::wide_packed_tile>({70, 3, 300}, 2, 24, 8);
  check_added<packed, ferry::duplicates::mean>({70, 3, 300, 2}, 2, 8, 9);
  for (std::size_t skew = 0; skew < 4; ++skew)
    for (const std::size_t width : {1u, 2u, 3u, 4u, 5u, 7u, 131u})
      check_added<masked>({70, 3, 200}, 1, width, 10, skew);
  auto random = generator(11);
  for (unsigned seed = 70; seed < 100; ++seed) {
    std::vector<std::size_t> counts(1 + random() % 30);
    for (auto& count : counts) count = random() % 3 == 0 ? random() % 700 : random() % 90;
    check_added<packed>(counts, random() % 50, 4, seed);
    check_added<masked, ferry::duplicates::mean>(counts, random() % 50, 6, seed, seed % 4);
  }
}

}  // namespace ferry_test::sum_kernels_test
