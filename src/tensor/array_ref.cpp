// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/detail/array_ref.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/tensor/detail/tensor_memory.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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

std::string array_note::shape_text() const {
  std::size_t sizes[max_rank];
  std::copy_n(extents.begin(), rank, sizes);
  return text_of_sizes({sizes, rank});
}

std::string array_note::describe() const {
  if (label.empty() && space.empty()) return joined("a table of ", extents[0], " rows");
  return joined("'", label.view(), "' ", shape_text(), " in ", space);
}

array_label::array_label(std::string_view text) {
  if (text.size() > short_.size()) {
    shared_ = std::make_shared<const std::string>(text);
  } else {
    std::copy(text.begin(), text.end(), short_.begin());
    length_ = static_cast<unsigned char>(text.size());
  }
}

void refuse_rows_between(const array_label& label, const std::string& shape, std::string_view space,
                         long long begin, long long end, long long rows) {
  if (begin < 0 || end < 0 || begin > rows || end > rows)
    throw out_of_range(joined("ferry::rows_between: rows ", begin, " to ", end, " do not lie inside of '",
                              label.view(), "' ", shape, " in ", space));
  throw invalid_argument(joined("ferry::rows_between: the first row, ", begin, ", comes after the end, ", end,
                                ", in '", label.view(), "' ", shape, " in ", space));
}

void refuse_first_rows(const array_label& label, const std::string& shape, std::string_view space,
                       long long count, long long rows) {
  throw out_of_range(joined("ferry::first: the number of rows is ", count, ", must be from 0 to the ", rows,
                            " of '", label.view(), "' ", shape, " in ", space));
}

template class tensor_memory<device_space>;
template class tensor_memory<pinned_space>;
template class tensor_memory<mapped_space>;
template class tensor_memory<pageable_space>;

namespace {

/// Throws about the extents of a tensor.
template <class... Pieces>
[[noreturn]] void refuse_extents(const std::string& label, const Pieces&... problem) {
  throw invalid_argument(joined("ferry::tensor '", label, "'", problem...));
}

/// The dynamic extents of a type, or all, are filled in among the fixed ones.
void fill_fixed(std::size_t* sizes, std::span<const std::size_t> fixed,
                std::span<const std::size_t> arguments, const std::string& label) {
  const auto dynamic = static_cast<std::size_t>(std::count(fixed.begin(), fixed.end(), dyn));
  if (arguments.size() != dynamic && arguments.size() != fixed.size())
    refuse_extents(label, ": ", arguments.size(), " extents were given to a type of rank ", fixed.size(),
                   " with ", dynamic, " dynamic extents");
  std::size_t next = 0;
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    sizes[i] = fixed[i] == dyn || arguments.size() == fixed.size() ? arguments[next++] : fixed[i];
    if (fixed[i] != dyn && sizes[i] != fixed[i])
      refuse_extents(label, ": extent ", i, " is ", sizes[i], " but its type fixes it at ", fixed[i]);
  }
}

}  // namespace

std::size_t fill_sizes(std::size_t* sizes, std::span<const std::size_t> fixed,
                       std::span<const std::size_t> arguments, const std::string& label,
                       std::size_t element_bytes) {
  if (!fixed.empty()) {
    fill_fixed(sizes, fixed, arguments, label);
  } else {
    if (arguments.size() > max_rank)
      refuse_extents(label, ": rank ", arguments.size(), " is above the largest, ", max_rank);
    std::copy(arguments.begin(), arguments.end(), sizes);
  }
  const std::size_t rank = fixed.empty() ? arguments.size() : fixed.size();
  std::size_t bytes = element_bytes;
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0) continue;
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) / sizes[i])
      refuse_extents(label, " ", text_of_sizes({sizes, rank}),
                     ": the extents' product does not fit the address space");
    bytes *= sizes[i];
  }
  return rank;
}

std::string text_of_sizes(std::span<const std::size_t> sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : " x ") + std::to_string(sizes[i]);
  return text + "]";
}

void refuse_extent(const std::string& label, long long size) {
  refuse_extents(label, ": extent ", size, " is negative");
}

}  // namespace ferry::detail
