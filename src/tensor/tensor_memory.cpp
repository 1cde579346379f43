// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/detail/tensor_memory.hpp>

#include "../../backends/enabled.hpp"

namespace ferry::detail {

template class tensor_memory<device_space>;
template class tensor_memory<pinned_space>;
template class tensor_memory<mapped_space>;
template class tensor_memory<pageable_space>;

}  // namespace ferry::detail
