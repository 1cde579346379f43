// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>

namespace ferry::detail {

const char the_library_is_not_linked_so_link_the_target_ferry_or_compile_src_ferry_cpp = 1;
const char FERRY_SAME_CONTAINERS = 1;
const char FERRY_SAME_STRINGS = 1;

}  // namespace ferry::detail
