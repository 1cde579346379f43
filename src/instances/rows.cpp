// SPDX-License-Identifier: Apache-2.0
#include "prebuilt.hpp"

namespace ferry::detail {

FERRY_FOR_INDICES(FERRY_INSTANTIATE_ROWS, device_space)
FERRY_FOR_INDICES(FERRY_INSTANTIATE_ROWS, pinned_space)
FERRY_FOR_INDICES(FERRY_INSTANTIATE_ROWS, mapped_space)

}  // namespace ferry::detail
