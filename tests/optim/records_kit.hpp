// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/step_kit.hpp"

#include <cstddef>
#include <cstring>
#include <vector>

/// Looking into records.
namespace ferry_test {

/// The elements of one part of every record, row by row.
template <class Records, class T, class Space>
std::vector<T> part_of(const Records& records, const ferry::detail::array_ref<T, Space>& part) {
  const auto bytes = take(records.bytes());
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part.data) - records.bytes().data());
  const auto width = static_cast<std::size_t>(part.width());
  std::vector<T> result(records.rows() * width);
  for (std::size_t row = 0; row < records.rows(); ++row)
    std::memcpy(result.data() + row * width, bytes.data() + row * records.row_bytes() + offset,
                width * sizeof(T));
  return result;
}

/// Puts values there.
template <class Records, class T, class Space>
void put_part(Records& records, const ferry::detail::array_ref<T, Space>& part,
              const std::vector<T>& values) {
  auto bytes = take(records.bytes());
  const auto offset =
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(part.data) - records.bytes().data());
  const auto width = static_cast<std::size_t>(part.width());
  REQUIRE(values.size() == records.rows() * width);
  for (std::size_t row = 0; row < records.rows(); ++row)
    std::memcpy(bytes.data() + row * records.row_bytes() + offset, values.data() + row * width,
                width * sizeof(T));
  put(records.bytes(), bytes);
}

}  // namespace ferry_test
