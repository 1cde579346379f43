// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/device_account.hpp>

#include <ferry/error.hpp>

namespace ferry::detail {

void refuse_device(const std::string& label, int device, int count) {
  throw invalid_argument(joined("ferry: memory for '", label, "' was requested on device ", device, ", but ",
                                count == 1 ? "the only device is " : "the devices are 0 to ", count - 1));
}

}  // namespace ferry::detail
