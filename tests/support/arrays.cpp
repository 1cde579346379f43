// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"

namespace ferry_test {

template void copy_to_space<ferry::device_space>(void*, const void*, std::size_t);
template void copy_to_space<ferry::pinned_space>(void*, const void*, std::size_t);
template void copy_to_space<ferry::mapped_space>(void*, const void*, std::size_t);
template void copy_to_space<ferry::pageable_space>(void*, const void*, std::size_t);
template void copy_to_host<ferry::device_space>(void*, const void*, std::size_t);
template void copy_to_host<ferry::pinned_space>(void*, const void*, std::size_t);
template void copy_to_host<ferry::mapped_space>(void*, const void*, std::size_t);
template void copy_to_host<ferry::pageable_space>(void*, const void*, std::size_t);

}  // namespace ferry_test
