// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/copy.hpp>

#include <ferry/error.hpp>

#include <cstddef>
#include <string>

namespace ferry::detail {

bool require_copy(const untyped_array& source, const untyped_array& sink, bool fits) {
  const array_shape& input = source.shape;
  const array_shape& output = sink.shape;
  bool same = input.rank == output.rank;
  for (std::size_t i = 0; same && i < input.rank; ++i) same = input.extents[i] == output.extents[i];
  if (!same && !(fits && input.size() == output.size()))
    throw invalid_argument("ferry::copy: the extents of " + source.note().describe() + " and " +
                           sink.note().describe() + " differ");
  if (input.is_contiguous() && output.is_contiguous() && overlap(source, sink))
    throw invalid_argument("ferry::copy: " + source.note().describe() + " and " + sink.note().describe() +
                           " overlap in memory");
  if (output.size() == 0) return same;  // dense arrays of rows without elements have strides of 0
  for (std::size_t i = 0; i < output.rank; ++i)
    if (output.extents[i] > 1 && output.strides[i] == 0)
      throw invalid_argument("ferry::copy: elements of " + sink.note().describe() + " share memory: stride " +
                             std::to_string(i) + " is 0");
  return same;
}

}  // namespace ferry::detail
