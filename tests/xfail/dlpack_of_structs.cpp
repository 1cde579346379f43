// SPDX-License-Identifier: Apache-2.0
// DLPack has no structs.
// expected-error: DLPack describes numbers, bool and complex numbers only, no structs
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <utility>

struct dlpack_refuses {
  int id;
  float score;
};

void refused() {
#ifdef FERRY_XFAIL_FIXED
  ferry::tensor<float, ferry::pageable_space> table("table", 10, 4);
#else
  ferry::tensor<dlpack_refuses, ferry::pageable_space> table("table", 10, 4);
#endif
  auto* const out = ferry::to_dlpack(std::move(table));
  out->deleter(out);
}
