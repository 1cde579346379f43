// SPDX-License-Identifier: Apache-2.0
// A file can't hold pointers.
// expected-errors: 1 a file takes elements whose bytes are their value
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>

#include <vector>

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::io::save_npy("w.npy", std::vector<float>(3));
#else
  ferry::io::save_npy("w.npy", std::vector<float*>(3));
#endif
}
