// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/fill_array.hpp>

#include <ferry/error.hpp>

#include <cstddef>
#include <string>

namespace ferry::detail {

void require_same_extents(const file& source, const stored_array& stored, const array_note& array) {
  bool same = stored.rank == array.rank;
  for (std::size_t i = 0; same && i < stored.rank; ++i)
    same = stored.extents[i] == static_cast<std::size_t>(array.extents[i]);
  if (same) return;
  std::string shape = "[";
  for (const std::size_t extent : stored.sizes())
    shape += (shape.size() == 1 ? "" : " x ") + std::to_string(extent);
  throw invalid_argument("ferry::io::" + source.verb() + ": " + source.path() + ": " +
                         (stored.name.empty() ? "its array is " : stored.name + " is ") + shape + "], and " +
                         array.describe() + " has other extents");
}

}  // namespace ferry::detail
