// SPDX-License-Identifier: Apache-2.0
// A slice does not keep its tensor alive.
// expected-error: to_dlpack takes a ferry::tensor, a ferry::read_only_tensor or a std::shared_ptr to one
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <utility>

void refused() {
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  auto* const out = ferry::to_dlpack(std::move(table));
#else
  auto* const out = ferry::to_dlpack(table.first(3));
#endif
  out->deleter(out);
}
