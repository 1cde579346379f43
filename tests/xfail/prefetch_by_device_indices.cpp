// SPDX-License-Identifier: Apache-2.0
// The host reads the indices of a prefetch.
// expected-error: prefetch reads the indices on the host
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <cstdint>

void refused() {
  const auto table = ferry::io::map_npy<float>("w.npy");
#ifdef FERRY_XFAIL_FIXED
  const ferry::tensor<std::int64_t, ferry::pinned_space> indices("indices", 4);
#else
  const ferry::tensor<std::int64_t, ferry::device_space> indices("indices", 4);
#endif
  table.prefetch(indices);
}
