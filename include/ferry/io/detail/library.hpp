// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::detail {

/// A program with files or loaders that lacks ferry::io fails to link, as error.hpp has it of ferry::ferry.
extern const char the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;
[[gnu::used, gnu::retain]] const char* const io_library =
    &the_library_is_not_linked_so_link_the_target_ferry_io_or_compile_src_ferry_io_cpp;

}  // namespace ferry::detail
