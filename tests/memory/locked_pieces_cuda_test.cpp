// SPDX-License-Identifier: Apache-2.0
#include "../../backends/cuda/detail/page_locking.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Page-locked tables of many pieces: verbs and copies, also across the ends of pieces.
namespace ferry_test::locked_pieces_cuda_test {

/// Before anything is allocated: the pieces of all memory of this program.
const std::size_t pieces = ferry::cuda::piece_bytes = std::size_t{1} << 20;

template <class Table>
void check_table(Table& table) {
  REQUIRE(ferry::cuda::spans_pieces(table.data(), 2 * pieces));
  const exec_space exec;
  const std::size_t rows = table.rows(), width = table.width();
  std::vector<float> numbers(rows * width);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1048573);
  ferry::tensor<float, ferry::device_space> near("near", rows, width), back("back", rows, width);
  put(near, numbers);
  ferry::copy(exec, near, table).wait();
  CHECK(std::vector<float>(table.data(), table.data() + table.size()) == numbers);
  ferry::copy(exec, table, back).wait();
  CHECK(take(back) == numbers);
  // A part of each row, by a transfer of rows that lie apart.
  ferry::tensor<float, ferry::device_space> part("part", rows, width / 2);
  using strided =
      Kokkos::View<float**, Kokkos::LayoutStride, ferry::detail::kokkos_space_t<ferry::pinned_space>,
                   Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const strided columns(table.data() + 1, Kokkos::LayoutStride(rows, width, width / 2, 1));
  ferry::copy(exec, columns, part).wait();
  const auto parts = take(part);
  for (std::size_t r = 0; r < rows; r += 97) CHECK(parts[r * (width / 2)] == numbers[r * width + 1]);
  std::mt19937_64 random(9);
  std::vector<std::int32_t> indices(5000);
  for (auto& index : indices) index = static_cast<std::int32_t>(random() % rows);
  ferry::tensor<float, ferry::device_space> out("out", indices.size(), width);
  const auto check = [&](auto path) {
    ferry::gather(exec, table, indices, out, path).wait();
    const auto gathered = take(out);
    for (std::size_t p = 0; p < indices.size(); ++p)
      REQUIRE(gathered[p * width] == numbers[static_cast<std::size_t>(indices[p]) * width]);
  };
  check(ferry::path::direct{});
  check(ferry::path::staged{});
  // Long runs of neighbours, which transfers move.
  for (std::size_t p = 0; p < indices.size(); ++p) indices[p] = static_cast<std::int32_t>(p + 3);
  check(ferry::path::staged{});
  check(ferry::path::cooperative{});
}

TEST_CASE("a page-locked table of many pieces serves every path", "[page_lock]") {
  ferry::tensor<float, ferry::pinned_space> table("table", 20000, 300);
  check_table(table);
}

TEST_CASE("adopted memory is locked in pieces, and unlocked again", "[page_lock][adopt]") {
  std::vector<float> memory(20000 * 300 + 4096);
  const std::span<float> all(memory.data() + 1024, 20000 * 300);
  for (int round = 0; round < 2; ++round) {
    auto table = ferry::adopt<ferry::pinned_space>("adopted", all, 20000, 300);
    check_table(table);
  }
}

}  // namespace ferry_test::locked_pieces_cuda_test
