// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/whole_path.hpp>

namespace ferry::detail {

void require_whole_path(std::string_view verb, std::string_view path) {
  const std::size_t first = path.find('\0');
  if (first == std::string_view::npos) return;
  std::string readable;
  for (const char letter : path) readable += letter == '\0' ? std::string("\\0") : std::string(1, letter);
  throw invalid_argument(
      joined(verb, ": ", readable, ": byte ", first, " of the path is a NUL, where the system would cut it"));
}

}  // namespace ferry::detail
