// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/copy.hpp>

#include <ferry/error.hpp>

#include <cstddef>
#include <string>

namespace ferry::detail {

bool require_copy(const untyped_array& source, const untyped_array& sink, bool fits) {
  const array_shape& from = source.shape;
  const array_shape& to = sink.shape;
  bool same = from.rank == to.rank;
  for (std::size_t i = 0; same && i < from.rank; ++i) same = from.extents[i] == to.extents[i];
  if (!same && !(fits && from.size() == to.size()))
    throw invalid_argument("ferry::copy: the extents of " + source.note().describe() + " and " +
                           sink.note().describe() + " differ");
  if (from.is_contiguous() && to.is_contiguous() && overlap(source, sink))
    throw invalid_argument("ferry::copy: " + source.note().describe() + " and " + sink.note().describe() +
                           " overlap in memory");
  if (to.size() == 0) return same;  // dense arrays of rows without elements have strides of 0
  for (std::size_t i = 0; i < to.rank; ++i)
    if (to.extents[i] > 1 && to.strides[i] == 0)
      throw invalid_argument("ferry::copy: elements of " + sink.note().describe() + " share memory: stride " +
                             std::to_string(i) + " is 0");
  return same;
}

}  // namespace ferry::detail
