// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ferry::detail {

/// A program with ranks that lacks ferry::distributed fails to link, as error.hpp has it of ferry::ferry.
extern const char
    the_library_is_not_linked_so_link_the_target_ferry_distributed_or_compile_src_ferry_distributed_cpp;
[[gnu::used, gnu::retain]] const char* const distributed_library =
    &the_library_is_not_linked_so_link_the_target_ferry_distributed_or_compile_src_ferry_distributed_cpp;

}  // namespace ferry::detail
