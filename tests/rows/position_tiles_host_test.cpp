// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/rows/detail/position_tiles.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/row_operations.hpp>

/// The kernel by which a device adds in any order, run by this thread as a team of one.
namespace ferry_test::position_tiles_host_test {

namespace kernels = ferry::kernels;
namespace detail = ferry::detail;
using backend = ferry::execution_backend<Kokkos::DefaultHostExecutionSpace>;

template <class Shared>
struct one_thread {
  Shared& memory;
  int rank;

  [[nodiscard]] int league_rank() const { return rank; }
  [[nodiscard]] static int team_rank() { return 0; }
  [[nodiscard]] static int team_size() { return 1; }
  static void team_barrier() {}
  template <class T>
  [[nodiscard]] T& shared() const {
    return memory;
  }
};

struct cut {
  int run, runs, teams;
};

/// Adds small integers, whose sums are exact in any order.
template <class T, class Tile, class Bounds>
std::vector<int> add(const std::vector<std::int64_t>& indices, std::size_t rows, std::size_t width,
                     const cut& shape, bool is_bad = false) {
  const std::size_t n = indices.size();
  std::vector<T> table, values;
  for (std::size_t i = 0; i < rows * width; ++i)
    table.push_back(ferry::convert<T>(static_cast<float>(i % 3)));
  for (std::size_t i = 0; i < n * width; ++i)
    values.push_back(ferry::convert<T>(static_cast<float>((i * 7 + i / 5) % 3)));
  detail::index_report findings;
  unsigned int raised = 0;
  if (is_bad) findings.out_of_range = 1;
  using source_type = kernels::index_rows<std::int64_t, Bounds>;
  const source_type source{indices.data(), static_cast<std::int64_t>(rows), {&findings, &raised}};
  const auto columns = static_cast<std::int64_t>(width), positions = static_cast<std::int64_t>(n);
  const kernels::add_atomically<backend, T, kernels::unscaled> operation(table.data(), columns, {}, nullptr);
  const auto rows_kernel =
      detail::apply_kernel<ferry::accumulation_t<T>, Tile, ferry::duplicates::sum_any_order>(
          source, positions, static_cast<const T*>(values.data()), columns, columns, operation);
  using kernel_type = kernels::position_tiles<std::remove_const_t<decltype(rows_kernel)>>;
  const kernel_type kernel{rows_kernel, positions, shape.run * shape.runs, shape.run, shape.teams};
  typename kernel_type::batch_part memory;
  for (int team = shape.teams; team-- > 0;)
    kernel(one_thread<typename kernel_type::batch_part>{memory, team});
  std::vector<int> result;
  for (const T& number : table) result.push_back(static_cast<int>(ferry::convert<float>(number)));
  return result;
}

/// `resolve` says which row an index names, or -1.
template <class Resolve>
std::vector<int> expected(const std::vector<std::int64_t>& indices, std::size_t rows, std::size_t width,
                          const Resolve& resolve) {
  std::vector<int> table;
  for (std::size_t i = 0; i < rows * width; ++i) table.push_back(static_cast<int>(i % 3));
  for (std::size_t p = 0; p < indices.size(); ++p)
    if (const std::int64_t row = resolve(indices[p]); row >= 0)
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t i = p * width + c;
        table[static_cast<std::size_t>(row) * width + c] += static_cast<int>((i * 7 + i / 5) % 3);
      }
  return table;
}

std::vector<std::int64_t> batch(std::size_t n, std::size_t rows, std::size_t hot) {
  auto random = generator(n * 31 + hot);
  std::vector<std::int64_t> indices;
  for (std::size_t p = 0; p < n; ++p)
    indices.push_back(static_cast<std::int64_t>(random() % (random() % 3 == 0 ? rows : hot)));
  return indices;
}

template <class T, class Tile>
void check_added(std::size_t n, std::size_t rows, std::size_t hot, std::size_t width, const cut& shape) {
  CAPTURE(n, rows, hot, width, shape.run, shape.runs, shape.teams);
  const auto indices = batch(n, rows, hot);
  const auto sums = expected(indices, rows, width, [](std::int64_t index) { return index; });
  CHECK((add<T, Tile, ferry::bounds::check>(indices, rows, width, shape) == sums));
}

TEST_CASE("neighbouring positions are summed before they are added", "[any_order]") {
  using packed = kernels::packed_tile;
  using single = kernels::single_tile;
  for (const cut& shape : {cut{4, 1, 1}, cut{4, 16, 3}, cut{16, 8, 2}, cut{16, 16, 5}, cut{8, 32, 1},
                           cut{1, 256, 1}, cut{1, 100, 2}, cut{1, 5, 3}})
    for (const std::size_t n : {1u, 3u, 4u, 63u, 64u, 65u, 256u, 257u, 1000u}) {
      check_added<float, packed>(n, 300, 300, 8, shape);
      check_added<float, packed>(n, 300, 2, 4, shape);
      check_added<float, single>(n, 20, 1, 3, shape);
      check_added<double, packed>(n, 20, 5, 4, shape);
      check_added<std::int32_t, packed>(n, 20, 5, 4, shape);
      check_added<ferry::half_t, kernels::wide_packed_tile>(n, 200, 150, 8, shape);
      check_added<ferry::bhalf_t, single>(n, 300, 200, 1, shape);
    }
}

TEST_CASE("neighbouring positions with bad indices add nothing, skipped ones nothing of their own",
          "[any_order]") {
  using packed = kernels::packed_tile;
  const std::size_t rows = 40, width = 4;
  auto indices = batch(500, rows, 6);
  for (const std::size_t p : {0u, 77u, 78u, 300u, 499u}) indices[p] = p == 77 ? -1 : 40;
  const auto untouched = expected({}, rows, width, [](std::int64_t) { return std::int64_t{-1}; });
  for (const cut& shape : {cut{4, 8, 3}, cut{1, 128, 3}}) {
    CHECK((add<float, packed, ferry::bounds::check>(indices, rows, width, shape, true) == untouched));
    CHECK((add<float, packed, ferry::bounds::skip>(indices, rows, width, shape) ==
           expected(indices, rows, width,
                    [](std::int64_t index) { return index < 0 || index >= 40 ? -1 : index; })));
    CHECK((add<float, packed, ferry::bounds::clamp>(indices, rows, width, shape) ==
           expected(indices, rows, width, [](std::int64_t index) {
             return index < 0 ? 0 : index >= 40 ? 39 : index;
           })));
  }
}

}  // namespace ferry_test::position_tiles_host_test
