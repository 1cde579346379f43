// SPDX-License-Identifier: Apache-2.0
// What to_dlpack makes is one of two structs, and nothing else is one.
// expected-error: to_dlpack makes a DLManagedTensorVersioned, or, with that as template argument, a DLManagedTensor
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <utility>

void refused() {
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
  auto* const out = ferry::to_dlpack<DLManagedTensor>(std::move(table));
#else
  auto* const out = ferry::to_dlpack<DLTensor>(std::move(table));
#endif
  out->deleter(out);
}
