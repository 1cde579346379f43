// SPDX-License-Identifier: Apache-2.0
// Kernels of all shardings have one type for the numbers of rows.
// expected-error: global_rows\(rank, rows, ranks\) of a sharding returns a ferry::shard_rows
#include <ferry/distributed.hpp>

#include <cstdint>
#include <string_view>

namespace xfail_sharding_of_a_lambda {

struct reversed {
  static constexpr std::string_view name = "reversed";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t rows, int) const {
    return rows - 1 - row;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t rows, int) const { return {rows - 1, -1}; }
#else
  [[nodiscard]] auto global_rows(int, std::int64_t rows, int) const {
    return [rows](std::int64_t place) { return rows - 1 - place; };
  }
#endif
};

}  // namespace xfail_sharding_of_a_lambda

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_of_a_lambda::reversed> table(
      "t", world, 9, 4);
  static_cast<void>(table.owner(3));
}
