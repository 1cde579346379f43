// SPDX-License-Identifier: Apache-2.0
#include "prebuilt.hpp"

namespace ferry::detail {

FERRY_INSTANTIATE_PLAN(std::int32_t, device_space)
FERRY_INSTANTIATE_PLAN(std::int64_t, device_space)
FERRY_INSTANTIATE_PLAN(std::int32_t, pageable_space)
FERRY_INSTANTIATE_PLAN(std::int64_t, pageable_space)

}  // namespace ferry::detail
