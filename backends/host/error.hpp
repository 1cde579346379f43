// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>

#include <cstddef>
#include <string>

namespace ferry::host {

template <class...>
[[noreturn, gnu::cold]] void throw_bad_alloc(const char* space, const std::string& label, std::size_t bytes,
                                             const std::string& why) {
  throw bad_alloc(
      ferry::detail::joined({"ferry: no ", bytes, " bytes in ", space, " for '", label, "': ", why}));
}

}  // namespace ferry::host
