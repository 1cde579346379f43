// SPDX-License-Identifier: Apache-2.0
// Kernels find the owners of rows, so they call the functions of the sharding.
// expected-error: path::peer finds the owners of rows in kernels
#include <ferry/distributed.hpp>

#include <string_view>
#include <vector>

namespace xfail_sharding {

struct all_on_first {
  static constexpr std::string_view name = "all_on_first";
  static constexpr bool replicates = false;
#ifdef FERRY_XFAIL_FIXED
  static constexpr bool in_kernels = true;
#endif
  void check(int) const {}
  [[nodiscard]] KOKKOS_FUNCTION int owner(std::int64_t, std::int64_t, int) const { return 0; }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t local_row(std::int64_t row, std::int64_t, int) const {
    return row;
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int) const { return rank == 0 ? rows : 0; }
  [[nodiscard]] ferry::kernels::global_rows global_rows(int, std::int64_t, int) const { return {}; }
};

}  // namespace xfail_sharding

void refused(const Kokkos::DefaultExecutionSpace& exec,
             const ferry::sharded_table<float, ferry::mapped_space, xfail_sharding::all_on_first>& table) {
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  const std::vector<int> indices{1, 2, 3};
  ferry::gather(exec, table, indices, batch, ferry::path::peer{}).wait();
}
