// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/allocation.hpp>

#include "../../backends/enabled.hpp"

namespace ferry::detail {

template class allocation<device_space>;
template class allocation<pinned_space>;
template class allocation<mapped_space>;
template class allocation<pageable_space>;

}  // namespace ferry::detail
