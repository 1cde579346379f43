// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/extend.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// The numbers of a list in host memory, after the work that writes it.
template <class T, class Space>
std::vector<std::int64_t> row_numbers(const array_ref<T, Space>& list) {
  static_assert(IndexElement<std::remove_const_t<T>> && Space::is_host_accessible,
                "ferry: the changed rows must be int32, uint32, int64 or uint64 in host memory.");
  if (list.accesses != nullptr) list.accesses->wait_for_writes();
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < list.size(); ++i)
    numbers.push_back(static_cast<std::int64_t>(list.data[i * (list.rank == 1 ? list.strides[0] : 1)]));
  return numbers;
}

}  // namespace ferry::detail
