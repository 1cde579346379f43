// SPDX-License-Identifier: Apache-2.0
// A load into an array with a policy of verbs.
// expected-error: after the array, a load takes nothing but ferry::io::convert_dtype
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

void refused(ferry::tensor<float, ferry::mapped_space>& table) {
#ifdef FERRY_XFAIL_FIXED
  ferry::io::load_npy("w.npy", table, ferry::io::convert_dtype{});
#else
  ferry::io::load_npy("w.npy", table, ferry::path::direct{});
#endif
}
