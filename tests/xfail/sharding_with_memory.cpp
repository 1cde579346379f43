// SPDX-License-Identifier: Apache-2.0
// The bytes of a vector are an address, which is another one on each rank.
// expected-error: One that holds memory has a std::uint64_t digest\(\) instead, and no in_kernels
#include <ferry/distributed.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace xfail_sharding_with_memory {

struct listed {
  std::vector<int> ranks_of_rows;

  static constexpr std::string_view name = "listed";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const { return row; }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
#ifdef FERRY_XFAIL_FIXED
  [[nodiscard]] std::uint64_t digest() const { return ranks_of_rows.size(); }
#endif
};

}  // namespace xfail_sharding_with_memory

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_with_memory::listed> table("t", world,
                                                                                                   9, 4);
  static_cast<void>(table.rows());
}
