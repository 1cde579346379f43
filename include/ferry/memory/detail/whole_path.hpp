// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Throws invalid_argument for a path with a NUL inside. The system would take the part before it, which
/// names another file. Every function of the library that takes a path asks here.
void require_whole_path(std::string_view verb, std::string_view path);

}  // namespace ferry::detail
