// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/row_kernels.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/search_rows.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

/// The kernel that searches a small batch, run by this thread as a team of one with one lane.
namespace ferry_test::search_sums_test {
namespace {

namespace kernels = ferry::kernels;
namespace detail = ferry::detail;

struct one_thread {
  int rank;

  static constexpr int lanes = 1;
  [[nodiscard]] int league_rank() const { return rank; }
  [[nodiscard]] static int team_rank() { return 0; }
  [[nodiscard]] static int team_size() { return 1; }
  static void team_barrier() {}
  [[nodiscard]] static std::uint32_t vote(bool mine) { return mine ? 1u : 0u; }
  template <class T>
  [[nodiscard]] static T from_first_lane(T value) {
    return value;
  }
  template <class T>
  [[nodiscard]] T& shared() const {
    static T memory;
    std::memset(static_cast<void*>(&memory), 0xa5, sizeof memory);
    return memory;
  }
};

template <class T, class Tile, class Duplicates = ferry::duplicates::sum>
void check_added(const std::vector<std::size_t>& counts, std::size_t width, unsigned seed,
                 std::size_t skew = 0) {
  CAPTURE(counts, width, skew, Tile::elements, Tile::masked);
  auto random = generator(seed);
  std::vector<std::int32_t> indices;
  for (std::size_t row = 0; row < counts.size(); ++row)
    indices.insert(indices.end(), counts[row], static_cast<std::int32_t>(2 * row + 1));
  std::shuffle(indices.begin(), indices.end(), random);
  const std::size_t n = indices.size(), rows = 2 * counts.size() + 1;
  const auto values = ferry_test::values<T>(random, n * width);
  auto table = ferry_test::values<T>(random, rows * width + 8);
  auto sums = table;
  for (std::size_t row = 0; row < counts.size(); ++row)
    for (std::size_t c = 0; c < width && counts[row] != 0; ++c) {
      std::vector<T> column;
      for (std::size_t p = 0; p < n; ++p)
        if (indices[p] == static_cast<std::int32_t>(2 * row + 1)) column.push_back(values[p * width + c]);
      T sum = sum_in_pieces(column);
      if (std::is_same_v<Duplicates, ferry::duplicates::mean>) sum /= static_cast<T>(counts[row]);
      sums[skew + (2 * row + 1) * width + c] += sum;
    }
  detail::index_report findings;
  unsigned int raised = 0;
  const auto columns = static_cast<std::int64_t>(width), positions = static_cast<std::int64_t>(n);
  using named_rows = kernels::index_rows<std::int32_t, ferry::bounds::check>;
  const named_rows named{indices.data(), static_cast<std::int64_t>(rows), {&findings, &raised}};
  const auto kernel =
      detail::apply_kernel<T, Tile, Duplicates>(kernels::found_rows{}, positions, values.data(), columns,
                                                columns, kernels::add_row<T>{table.data() + skew, columns});
  const kernels::search_rows<std::remove_const_t<decltype(kernel)>, named_rows> search{
      {}, kernel, named, positions, kernel.per_item()};
  for (int team = kernels::search_shape::teams(positions); team-- > 0;) search(one_thread{team});
  CHECK(table == sums);
}

}  // namespace

TEST_CASE("a team that searches sums long segments", "[sum_order]") {
  using packed = kernels::packed_tile;
  using masked = kernels::masked_tile;
  check_added<float, packed>({64}, 4, 1);
  check_added<float, packed>({4096}, 8, 2);
  check_added<float, packed>({1, 63, 2, 5}, 128, 3);
  check_added<float, packed>({63, 65, 1, 64, 31, 32, 95, 96, 97, 128, 129, 0, 3}, 128, 4);
  check_added<float, packed>({2000, 70, 1, 1000, 900}, 12, 5);
  check_added<double, packed>({300, 2, 64, 700}, 260, 6);
  check_added<float, packed>({100, 1, 64}, 2052, 7);
  check_added<float, kernels::wide_packed_tile>({200, 1, 64}, 24, 8);
  check_added<float, packed, ferry::duplicates::mean>({70, 3, 300, 2}, 8, 9);
  for (std::size_t skew = 0; skew < 4; ++skew)
    for (const std::size_t width : {1u, 2u, 3u, 4u, 5u, 7u, 131u, 1031u})
      check_added<float, masked>({70, 3, 200}, width, 10, skew);
  check_added<double, masked, ferry::duplicates::mean>({70, 3, 200}, 5, 11, 1);
}

}  // namespace ferry_test::search_sums_test
