// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

/// Arrays of every rank whose elements lie anywhere in a tensor's memory, for copies and their oracle.
namespace ferry_test {

/// Places of the elements of an array, in elements of its memory.
struct layout {
  std::size_t rank = 0;
  std::array<std::int64_t, ferry::max_rank> extents{};
  std::array<std::int64_t, ferry::max_rank> strides{};
  std::int64_t first = 0;  ///< of element (0, 0, ...)
  std::int64_t size = 0;   ///< of the memory

  /// Places of all elements, in row-major order of the indices.
  [[nodiscard]] std::vector<std::size_t> places() const {
    std::vector<std::size_t> offsets;
    std::array<std::int64_t, ferry::max_rank> index{};
    std::int64_t count = 1;
    for (std::size_t d = 0; d < rank; ++d) count *= extents[d];
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t offset = first;
      for (std::size_t d = 0; d < rank; ++d) offset += index[d] * strides[d];
      offsets.push_back(static_cast<std::size_t>(offset));
      for (std::size_t d = rank; d-- > 0;) {
        if (++index[d] < extents[d]) break;
        index[d] = 0;
      }
    }
    return offsets;
  }
  [[nodiscard]] std::string text() const {
    std::string text = "extents";
    for (std::size_t d = 0; d < rank; ++d) text += " " + std::to_string(extents[d]);
    text += " strides";
    for (std::size_t d = 0; d < rank; ++d) text += " " + std::to_string(strides[d]);
    return text + " from " + std::to_string(first);
  }
};

/// Random extents of about `size` elements.
inline layout random_extents(std::mt19937_64& random, std::size_t rank, std::int64_t size) {
  layout shape;
  shape.rank = rank;
  std::int64_t left = size;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool last = d + 1 == rank;
    const std::int64_t most =
        last ? left : std::min<std::int64_t>(left, random() % 3 == 0 ? 2 : left / 2 + 1);
    shape.extents[d] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
    left = std::max<std::int64_t>(1, left / shape.extents[d]);
  }
  std::shuffle(shape.extents.begin(), shape.extents.begin() + static_cast<std::ptrdiff_t>(rank), random);
  return shape;
}

/// How the dimensions of an array lie in memory.
enum class arrangement { row_major, column_major, rows_apart, shuffled, spread, reversed };

inline layout arrange(std::mt19937_64& random, layout shape, arrangement how) {
  std::array<std::size_t, ferry::max_rank> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(shape.rank);
  if (how != arrangement::column_major) std::reverse(order.begin(), end);
  if (how == arrangement::shuffled || how == arrangement::spread || how == arrangement::reversed)
    std::shuffle(order.begin(), end, random);
  std::int64_t stride = how == arrangement::spread ? 2 : 1;
  shape.first = static_cast<std::int64_t>(random() % 5);
  bool innermost = true;
  for (auto d = order.begin(); d != end; ++d) {
    shape.strides[*d] = stride;
    stride *= shape.extents[*d];
    const bool apart = how == arrangement::spread || how == arrangement::reversed ||
                       (how == arrangement::rows_apart && innermost);
    if (apart) stride += static_cast<std::int64_t>(random() % 7);
    innermost = false;
  }
  shape.size = shape.first + stride + 3;
  if (how == arrangement::reversed)
    for (std::size_t d = 0; d < shape.rank; ++d)
      if (random() % 2 == 0) {
        shape.first += (shape.extents[d] - 1) * shape.strides[d];
        shape.strides[d] = -shape.strides[d];
      }
  return shape;
}

inline constexpr arrangement arrangements[] = {arrangement::row_major,  arrangement::column_major,
                                               arrangement::rows_apart, arrangement::shuffled,
                                               arrangement::spread,     arrangement::reversed};

/// The array of this layout in the memory of a tensor.
template <class T, class Space>
ferry::detail::array_ref<T, Space> array_in(ferry::tensor<T, Space>& memory, const layout& shape) {
  ferry::detail::array_ref<T, Space> array;
  array.data = memory.data() + shape.first;
  array.rank = shape.rank;
  array.extents = shape.extents;
  array.strides = shape.strides;
  array.label = memory.label();
  array.accesses = memory.accesses();
  return array;
}

}  // namespace ferry_test
