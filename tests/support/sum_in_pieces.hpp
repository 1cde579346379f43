// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ferry_test {

/// The sum of list[begin, end), one after the other.
template <class Number>
Number sum_in_order(const std::vector<Number>& list, std::size_t begin, std::size_t end) {
  Number sum = list[begin];
  for (std::size_t k = begin + 1; k < end; ++k) sum += list[k];
  return sum;
}
/// The sum of a row's values, in the order that docs/semantics.md defines.
template <class Number>
Number sum_in_pieces(const std::vector<Number>& list) {
  const std::size_t n = list.size();
  if (n < 64) return sum_in_order(list, 0, n);
  const std::size_t size = std::max<std::size_t>(32, n / 256);
  std::vector<Number> sums;
  for (std::size_t begin = 0; begin + size <= n; begin += size)
    sums.push_back(sum_in_order(list, begin, n - begin < 2 * size ? n : begin + size));
  return sum_in_order(sums, 0, sums.size());
}

}  // namespace ferry_test
