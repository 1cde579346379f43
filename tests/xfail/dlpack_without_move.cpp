// SPDX-License-Identifier: Apache-2.0
// Whose is the memory afterwards?
// expected-error: to_dlpack takes the tensor over; write std::move\(tensor\)
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <utility>

void refused() {
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  auto* const out = ferry::to_dlpack(std::move(table));
#else
  auto* const out = ferry::to_dlpack(table);
#endif
  out->deleter(out);
}
