// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <cstddef>
#include <string>

namespace ferry::host {

[[noreturn]] void throw_bad_alloc(const char* space, const std::string& label, std::size_t bytes,
                                  const std::string& why);

}  // namespace ferry::host
