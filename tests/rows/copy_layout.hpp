// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/arrays.hpp"
#include "support/random.hpp"

#include <ferry/ferry.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

/// Arrays of every rank whose elements lie anywhere in a tensor's memory, for copies and their oracle.
namespace ferry_test {

/// Where the elements of an array lie, in elements of its memory.
struct layout {
  std::size_t rank = 0;
  std::array<std::int64_t, ferry::max_rank> extents{};
  std::array<std::int64_t, ferry::max_rank> strides{};
  std::int64_t first = 0;  ///< of element (0, 0, ...)
  std::int64_t size = 0;   ///< of the memory

  /// Places of all elements, in row-major order of the indices.
  [[nodiscard]] std::vector<std::size_t> places() const {
    std::vector<std::size_t> made;
    std::array<std::int64_t, ferry::max_rank> index{};
    std::int64_t count = 1;
    for (std::size_t d = 0; d < rank; ++d) count *= extents[d];
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t at = first;
      for (std::size_t d = 0; d < rank; ++d) at += index[d] * strides[d];
      made.push_back(static_cast<std::size_t>(at));
      for (std::size_t d = rank; d-- > 0;) {
        if (++index[d] < extents[d]) break;
        index[d] = 0;
      }
    }
    return made;
  }
  [[nodiscard]] std::string text() const {
    std::string made = "extents";
    for (std::size_t d = 0; d < rank; ++d) made += " " + std::to_string(extents[d]);
    made += " strides";
    for (std::size_t d = 0; d < rank; ++d) made += " " + std::to_string(strides[d]);
    return made + " from " + std::to_string(first);
  }
};

/// Random extents of about `size` elements.
inline layout random_extents(std::mt19937_64& random, std::size_t rank, std::int64_t size) {
  layout made;
  made.rank = rank;
  std::int64_t left = size;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool last = d + 1 == rank;
    const std::int64_t most =
        last ? left : std::min<std::int64_t>(left, random() % 3 == 0 ? 2 : left / 2 + 1);
    made.extents[d] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    left = std::max<std::int64_t>(1, left / made.extents[d]);
  }
  std::shuffle(made.extents.begin(), made.extents.begin() + static_cast<std::ptrdiff_t>(rank), random);
  return made;
}

/// How the dimensions of an array lie in memory.
enum class arrangement { row_major, column_major, rows_apart, shuffled, spread, reversed };

inline layout arrange(std::mt19937_64& random, layout of, arrangement how) {
  std::array<std::size_t, ferry::max_rank> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(of.rank);
  if (how != arrangement::column_major) std::reverse(order.begin(), end);
  if (how == arrangement::shuffled || how == arrangement::spread || how == arrangement::reversed)
    std::shuffle(order.begin(), end, random);
  std::int64_t stride = how == arrangement::spread ? 2 : 1;
  of.first = static_cast<std::int64_t>(random() % 5);
  bool innermost = true;
  for (auto d = order.begin(); d != end; ++d) {
    of.strides[*d] = stride;
    stride *= of.extents[*d];
    const bool apart = how == arrangement::spread || how == arrangement::reversed ||
                       (how == arrangement::rows_apart && innermost);
    if (apart) stride += static_cast<std::int64_t>(random() % 7);
    innermost = false;
  }
  of.size = of.first + stride + 3;
  if (how == arrangement::reversed)
    for (std::size_t d = 0; d < of.rank; ++d)
      if (random() % 2 == 0) {
        of.first += (of.extents[d] - 1) * of.strides[d];
        of.strides[d] = -of.strides[d];
      }
  return of;
}

inline constexpr arrangement arrangements[] = {arrangement::row_major,  arrangement::column_major,
                                               arrangement::rows_apart, arrangement::shuffled,
                                               arrangement::spread,     arrangement::reversed};

/// The array of this layout in the memory of a tensor.
template <class T, class Space>
ferry::detail::array_ref<T, Space> array_in(ferry::tensor<T, Space>& memory, const layout& where) {
  ferry::detail::array_ref<T, Space> made;
  made.data = memory.data() + where.first;
  made.rank = where.rank;
  made.extents = where.extents;
  made.strides = where.strides;
  made.label = memory.label();
  made.accesses = memory.accesses();
  return made;
}

}  // namespace ferry_test
