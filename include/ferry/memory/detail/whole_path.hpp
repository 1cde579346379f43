// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace ferry::detail {

/// Throws invalid_argument for a path with a NUL inside. The system would take the part before it, which
/// names another file. Every function of the library that takes a path asks here.
FERRY_LAZY void require_whole_path(std::string_view verb, std::string_view path);

#ifdef FERRY_RUNTIME_BODIES

FERRY_LAZY void require_whole_path(std::string_view verb, std::string_view path) {
  const std::size_t first = path.find('\0');
  if (first == std::string_view::npos) return;
  std::string readable;
  for (const char letter : path) readable += letter == '\0' ? std::string("\\0") : std::string(1, letter);
  throw invalid_argument(joined(
      {verb, ": ", readable, ": byte ", first, " of the path is a NUL, where the system would cut it"}));
}

#endif

}  // namespace ferry::detail
