// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/tensor/extents.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// The name of an array in error messages. Tensors share theirs. Other names are copied, short ones without
/// heap memory, so describing an array to a verb allocates nothing.
class array_label {
 public:
  /// Characters that are copied without heap memory.
  static constexpr std::size_t max_copied = 31;

  array_label() = default;
  array_label(std::shared_ptr<const std::string> shared) noexcept : shared_(std::move(shared)) {}
  array_label(std::string_view text);
  array_label(const std::string& text) : array_label(std::string_view(text)) {}
  array_label(const char* text) : array_label(std::string_view(text)) {}

  [[nodiscard]] std::string_view view() const noexcept {
    return shared_ != nullptr ? std::string_view(*shared_) : std::string_view(short_.data(), length_);
  }
  [[nodiscard]] bool empty() const noexcept { return view().empty(); }
  operator std::string() const { return std::string(view()); }

  friend std::string operator+(std::string_view text, const array_label& label) {
    return std::string(text).append(label.view());
  }
  friend std::string operator+(const array_label& label, std::string_view text) {
    return std::string(label.view()).append(text);
  }
  friend bool operator==(const array_label& label, std::string_view text) { return label.view() == text; }

 private:
  std::shared_ptr<const std::string> shared_;
  std::array<char, max_copied> short_{};
  unsigned char length_ = 0;
};

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

/// Extents, strides, label and record of use of a strided N-d array, whatever its elements and their memory.
struct array_shape {
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> extents{};
  std::array<std::int64_t, max_rank> strides{};  ///< in elements
  array_label label;
  std::shared_ptr<access_tracker> accesses;

  array_shape() noexcept;
  array_shape(const array_shape& source);
  array_shape(array_shape&& source) noexcept;
  array_shape& operator=(const array_shape& source);
  array_shape& operator=(array_shape&& source) noexcept;
  ~array_shape();

  [[nodiscard]] std::int64_t rows() const { return rank == 0 ? 0 : extents[0]; }
  [[nodiscard]] std::int64_t width() const {
    std::int64_t product = rank == 0 ? 0 : 1;
    for (std::size_t i = 1; i < rank; ++i) product *= extents[i];
    return product;
  }
  [[nodiscard]] std::int64_t size() const { return rows() * width(); }
  /// Distance of two rows, in elements.
  [[nodiscard]] std::int64_t row_stride() const { return rank <= 1 && rows() <= 1 ? width() : strides[0]; }

  /// True if the elements of each row are adjacent, in row-major order.
  [[nodiscard]] bool has_dense_rows() const;
  [[nodiscard]] bool is_contiguous() const;

  /// The device that has the array's memory; -1 for host memory, and if it is not known.
  [[nodiscard]] int device() const { return accesses == nullptr ? -1 : accesses->device(); }

  /// Sets the strides of a row-major array with these extents.
  void make_dense();
  /// Sets everything to that of a row-major array.
  void describe_dense(std::size_t dimensions, const std::size_t* sizes);
};

/// A host-side description of a strided N-d array. Verbs convert tensors, views and containers to it, so a
/// verb is compiled once per element type and memory space.
template <class T, MemorySpace Space>
struct array_ref : array_shape {
  using value_type = T;
  using memory_space = Space;

  T* data = nullptr;

  [[nodiscard]] array_note note() const { return {label, Space::name, rank, extents}; }
  [[nodiscard]] std::string shape_text() const { return note().shape_text(); }
  [[nodiscard]] std::string describe() const { return note().describe(); }
};

/// The array with const elements.
template <class T, class Space>
array_ref<const T, Space> read_only(const array_ref<T, Space>& array) {
  return {array, array.data};
}

/// An array without its types, for compiled functions. Refers to the description.
struct untyped_array {
  const array_shape& shape;
  const void* data;
  std::size_t element_bytes;
  std::string_view space;
  bool on_host;  ///< host code reaches the elements

  template <class T, class Space>
  untyped_array(const array_ref<T, Space>& array)
      : shape(array),
        data(array.data),
        element_bytes(sizeof(T)),
        space(Space::name),
        on_host(Space::is_host_accessible) {}

  [[nodiscard]] array_note note() const { return {shape.label, space, shape.rank, shape.extents}; }
};

}  // namespace ferry::detail
