// SPDX-License-Identifier: Apache-2.0
// expected-error: a sharding has a static constexpr std::string_view name and a static constexpr bool replicates
#include <ferry/distributed.hpp>

#include <cstdint>
#include <string_view>

namespace xfail_sharding_without_name {

struct first_rank {
#ifdef FERRY_XFAIL_FIXED
  static constexpr std::string_view name = "first_rank";
#endif
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t, int) const { return row; }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::shard_rows global_rows(int, std::int64_t, int) const { return {}; }
};

}  // namespace xfail_sharding_without_name

void refused(const ferry::communicator& world) {
  const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding_without_name::first_rank> table(
      "t", world, 9, 4);
  static_cast<void>(table.rows());
}
