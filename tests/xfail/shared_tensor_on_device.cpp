// SPDX-License-Identifier: Apache-2.0
// Processes share host memory.
// expected-error: processes share host memory, so a shared_tensor is in pageable_space, or in pinned_space
#include <ferry/distributed.hpp>

#ifdef FERRY_XFAIL_FIXED
using where = ferry::pinned_space;
#else
using where = ferry::device_space;
#endif

ferry::shared_tensor<float, where> refused(const ferry::communicator& comm) {
  return ferry::shared_tensor<float, where>("table", comm, 10, 4);
}
