// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/library.hpp>

namespace ferry::detail {

const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp = 1;

}  // namespace ferry::detail
