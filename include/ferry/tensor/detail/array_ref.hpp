// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/tensor/detail/array_label.hpp>
#include <ferry/tensor/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::detail {

/// The facts about an array for an error message. Made without heap memory; text is made for an error only.
struct array_note {
  array_label label;
  std::string_view space;
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> extents{};

  [[gnu::cold]] [[nodiscard]] std::string shape_text() const;
  /// "'weights' [1000 x 128] in mapped_space"
  [[gnu::cold]] [[nodiscard]] std::string describe() const;
};

/// A host-side description of a strided N-d array. Verbs convert tensors, views and containers to it, so a
/// verb is compiled once per element type and memory space.
template <class T, MemorySpace Space>
struct array_ref {
  using value_type = T;
  using memory_space = Space;

  T* data = nullptr;
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> extents{};
  std::array<std::int64_t, max_rank> strides{};  ///< in elements
  array_label label;
  std::shared_ptr<access_tracker> accesses;

  [[nodiscard]] std::int64_t rows() const { return rank == 0 ? 0 : extents[0]; }
  [[nodiscard]] std::int64_t width() const {
    std::int64_t product = rank == 0 ? 0 : 1;
    for (std::size_t i = 1; i < rank; ++i) product *= extents[i];
    return product;
  }
  [[nodiscard]] std::int64_t size() const { return rows() * width(); }
  /// Distance of two rows, in elements.
  [[nodiscard]] std::int64_t row_stride() const { return rank <= 1 && rows() <= 1 ? width() : strides[0]; }

  /// Whether the elements of each row are adjacent, in row-major order.
  [[nodiscard]] bool has_dense_rows() const {
    std::int64_t expected = 1;
    for (std::size_t i = rank; i-- > 1;) {
      if (extents[i] != 1 && strides[i] != expected) return false;
      expected *= extents[i];
    }
    return true;
  }
  [[nodiscard]] bool is_contiguous() const {
    return has_dense_rows() && (rows() <= 1 || strides[0] == width() || size() == 0);
  }

  /// The device that has the array's memory; -1 for host memory, and where it is not known.
  [[nodiscard]] int device() const { return accesses == nullptr ? -1 : accesses->device(); }
  [[nodiscard]] array_note note() const { return {label, Space::name, rank, extents}; }
  [[nodiscard]] std::string shape_text() const { return note().shape_text(); }
  [[nodiscard]] std::string describe() const { return note().describe(); }

  /// Sets the strides of a row-major array with these extents.
  void make_dense() {
    std::int64_t stride = 1;
    for (std::size_t i = rank; i-- > 0;) {
      strides[i] = stride;
      stride *= extents[i];
    }
  }
};

/// The array with const elements.
template <class T, class Space>
array_ref<const T, Space> read_only(const array_ref<T, Space>& array) {
  array_ref<const T, Space> made;
  made.data = array.data;
  made.rank = array.rank;
  made.extents = array.extents;
  made.strides = array.strides;
  made.label = array.label;
  made.accesses = array.accesses;
  return made;
}

}  // namespace ferry::detail
