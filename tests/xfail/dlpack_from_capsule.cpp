// SPDX-License-Identifier: Apache-2.0
// A capsule's pointer has no type.
// expected-error: from_dlpack takes a DLManagedTensorVersioned\* or a DLManagedTensor\*
#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

void refused([[maybe_unused]] void* pointer) {
#ifdef FERRY_XFAIL_FIXED
  static_cast<void>(ferry::from_dlpack<float, ferry::pageable_space>(static_cast<DLManagedTensor*>(pointer)));
#else
  static_cast<void>(ferry::from_dlpack<float, ferry::pageable_space>(pointer));
#endif
}
