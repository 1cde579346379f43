// SPDX-License-Identifier: Apache-2.0
// The old struct has no flag for it.
// expected-error: a DLManagedTensor can't say that its array is read-only
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <memory>

void refused() {
  using table [[maybe_unused]] = ferry::tensor<float, ferry::pageable_space>;
#ifdef FERRY_XFAIL_FIXED
  auto* const out = ferry::to_dlpack<DLManagedTensor>(std::make_shared<table>("table", 10, 4));
#else
  auto* const out = ferry::to_dlpack<DLManagedTensor>(std::make_shared<const table>("table", 10, 4));
#endif
  out->deleter(out);
}
