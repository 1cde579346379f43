// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/detail/array_ref.hpp>

#include <ferry/error.hpp>

namespace ferry::detail {

array_shape::array_shape() noexcept = default;
array_shape::array_shape(const array_shape& source) = default;
array_shape::array_shape(array_shape&& source) noexcept = default;
array_shape& array_shape::operator=(const array_shape& source) = default;
array_shape& array_shape::operator=(array_shape&& source) noexcept = default;
array_shape::~array_shape() = default;

bool array_shape::has_dense_rows() const {
  std::int64_t expected = 1;
  for (std::size_t i = rank; i-- > 1;) {
    if (extents[i] != 1 && strides[i] != expected) return false;
    expected *= extents[i];
  }
  return true;
}

bool array_shape::is_contiguous() const {
  return has_dense_rows() && (rows() <= 1 || strides[0] == width() || size() == 0);
}

void array_shape::make_dense() {
  std::int64_t stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i];
  }
}

void array_shape::describe_dense(std::size_t dimensions, const std::size_t* sizes) {
  rank = dimensions;
  for (std::size_t i = 0; i < rank; ++i) extents[i] = static_cast<std::int64_t>(sizes[i]);
  make_dense();
}

void array_shape::describe_dense(std::size_t dimensions, const std::size_t* sizes,
                                 const std::shared_ptr<const std::string>& name,
                                 const std::shared_ptr<access_tracker>& tracker) {
  describe_dense(dimensions, sizes);
  label = name;
  accesses = tracker;
}

std::string array_note::shape_text() const {
  std::string text(1, '[');
  for (std::size_t i = 0; i < rank; ++i) {
    text_piece(i == 0 ? "" : " x ").append_to(text);
    text_piece(extents[i]).append_to(text);
  }
  text.push_back(']');
  return text;
}

std::string array_note::describe() const {
  if (label.empty() && space.empty()) return joined("a table of ", extents[0], " rows");
  return joined("'", label.view(), "' ", shape_text(), " in ", space);
}

}  // namespace ferry::detail
