// SPDX-License-Identifier: Apache-2.0
// A load takes no policies.
// expected-error: after the label, a load takes nothing but ferry::io::convert_dtype
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  const auto table = ferry::io::load_npy<float>("w.npy", "weights", ferry::io::convert_dtype{});
#else
  const auto table = ferry::io::load_npy<float>("w.npy", "weights", ferry::path::direct{});
#endif
}
