// SPDX-License-Identifier: Apache-2.0
// The rows of layout_left are no rows in memory.
// expected-error: verbs that work on rows take row-major arrays only; .* the mdspan layout_right
#include <ferry/ferry.hpp>
#include <ferry/interop/mdspan.hpp>

#include <cstddef>
#include <vector>

void refused([[maybe_unused]] const Kokkos::DefaultHostExecutionSpace& exec) {
  using namespace ferry::detail::mdspans;
  std::vector<float> memory(40);
  const std::vector<int> indices{1, 2};
  ferry::tensor<float, ferry::mapped_space> rows("rows", 2, 4);
#ifdef FERRY_XFAIL_FIXED
  using layout = layout_right;
#else
  using layout = layout_left;
#endif
  const mdspan<float, dextents<std::size_t, 2>, layout> table(memory.data(), 10, 4);
  ferry::gather(exec, table, indices, rows).wait();
}
