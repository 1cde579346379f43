// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

template <Element T, MemorySpace Space, class Extents>
class tensor_slice;

namespace detail {

/// Element (i, j, ...) for host code. Does not compile for memory that host code may not dereference.
template <MemorySpace Space, class T, class Extents, class... Indices>
T& host_element(T* data, [[maybe_unused]] const shape<Extents>& extents, Indices... indices) {
  static_assert(
      Space::is_host_accessible,
      "ferry: host code can't rely on reaching elements in device_space; bring them to the host with ferry::copy, or read them in a kernel through tensor::view().");
  static_assert((std::is_convertible_v<Indices, std::size_t> && ...),
                "ferry: an element is named by integers, one for each extent.");
  assert((extents.holds(indices...)) && "ferry: one index for each extent, each inside of it");
  return data[extents.offset(indices...)];
}

template <class T, class Space, class Extents>
using slice_of = tensor_slice<T, Space, typename extents_of_rows<Extents>::type>;

/// Refuses a slice of a temporary.
template <class Number>
consteval void refuse_brief_slice() {
  static_assert(
      !std::integral<Number>,
      "ferry: a slice does not own memory, so it can't be one of a temporary tensor; keep the tensor in a variable.");
}

/// A row number as long long. Numbers above the largest become the largest.
template <std::integral Number>
constexpr long long row_number(Number number) {
  constexpr auto largest = std::numeric_limits<long long>::max();
  return std::cmp_greater(number, largest) ? largest : static_cast<long long>(number);
}

/// Errors of slices of an array with `rows` rows.
/// @{
[[noreturn]] void refuse_rows_between(const array_label& label, const std::string& shape,
                                      std::string_view space, long long begin, long long end, long long rows);
[[noreturn]] void refuse_first_rows(const array_label& label, const std::string& shape,
                                    std::string_view space, long long count, long long rows);
/// @}

/// Rows [begin, end) of an array, see tensor::rows_between.
template <class Space, class T, class Extents, std::integral Begin, std::integral End>
slice_of<T, Space, Extents> rows_between(const array_label& label, T* data, const shape<Extents>& extents,
                                         const std::shared_ptr<access_tracker>& accesses, Begin begin,
                                         End end) {
  const auto first = row_number(begin), limit = row_number(end);
  if (first > limit || limit > static_cast<long long>(extents.rows()) || first < 0)
    refuse_rows_between(label, extents.to_string(), Space::name, first, limit,
                        static_cast<long long>(extents.rows()));
  using sliced = typename extents_of_rows<Extents>::type;
  return {label, data + static_cast<std::size_t>(first) * extents.width(),
          extents.template with_rows<sliced>(static_cast<std::size_t>(limit - first)), accesses};
}

/// The first `count` rows, see tensor::first.
template <class Space, class T, class Extents, std::integral Count>
slice_of<T, Space, Extents> first_rows(const array_label& label, T* data, const shape<Extents>& extents,
                                       const std::shared_ptr<access_tracker>& accesses, Count count) {
  const auto rows = row_number(count);
  if (rows < 0 || rows > static_cast<long long>(extents.rows()))
    refuse_first_rows(label, extents.to_string(), Space::name, rows, static_cast<long long>(extents.rows()));
  return rows_between<Space>(label, data, extents, accesses, 0, rows);
}

/// All elements as an array of rank 1, see tensor::flat.
template <class Space, class T, class Extents>
tensor_slice<T, Space, extents<dyn>> flat_elements(const array_label& label, T* data,
                                                   const shape<Extents>& extents_of_array,
                                                   const std::shared_ptr<access_tracker>& accesses) {
  const std::size_t count[] = {extents_of_array.size()};
  return {label, data, shape<extents<dyn>>::make(count, std::string(label), sizeof(T)), accesses};
}

}  // namespace detail

/// Consecutive rows of a tensor, from tensor::first and tensor::rows_between. Verbs take it where they take
/// the tensor. Copyable and non-owning: the memory of the tensor must outlive it; the tensor object may be
/// moved. The elements are const if T is.
///
/// A slice has the label of the tensor and shares its record of reads and writes in flight. Verbs on slices
/// of one tensor are therefore ordered like verbs on the whole tensor, also if the slices have no row in
/// common.
template <Element T, MemorySpace Space, class Extents = dynamic_rank>
class tensor_slice {
 public:
  using value_type = T;          ///< elements, const if the slice is read-only
  using memory_space = Space;    ///< where they lie
  using extents_type = Extents;  ///< ferry::extents or dynamic_rank

  /// An empty slice: no extents, null data.
  tensor_slice() = default;
  /// For tensor::first and tensor::rows_between.
  tensor_slice(detail::array_label label, T* data, const shape<Extents>& extents,
               std::shared_ptr<detail::access_tracker> accesses)
      : label_(std::move(label)), shape_(extents), data_(data), accesses_(std::move(accesses)) {}
  /// A read-only slice from a writable one.
  template <class U>
    requires(std::is_same_v<const U, T>)
  tensor_slice(const tensor_slice<U, Space, Extents>& source)
      : tensor_slice(source.label(), source.data(), source.extents_of(), source.accesses()) {}

  /// Element (i, j, ...) for host code, see tensor::operator().
  template <class... Indices>
  T& operator()(Indices... indices) const {
    return detail::host_element<Space>(data_, shape_, indices...);
  }

  /// See tensor::first.
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<T, Space, Extents> first(Rows rows) const {
    return detail::first_rows<Space>(label_, data_, shape_, accesses_, rows);
  }
  /// See tensor::rows_between.
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<T, Space, Extents> rows_between(Begin begin, End end) const {
    return detail::rows_between<Space>(label_, data_, shape_, accesses_, begin, end);
  }

  /// See tensor::flat.
  [[nodiscard]] tensor_slice<T, Space, extents<dyn>> flat() const {
    return detail::flat_elements<Space>(label_, data_, shape_, accesses_);
  }

  /// The first element of the slice, in memory of Space.
  [[nodiscard]] T* data() const noexcept { return data_; }
  /// Rows of the slice.
  [[nodiscard]] std::size_t rows() const noexcept { return shape_.rows(); }
  /// Elements of a row: the product of the extents after the first.
  [[nodiscard]] std::size_t width() const noexcept { return shape_.width(); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return shape_.extent(i); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.rank(); }
  /// Number of elements, rows() * width().
  [[nodiscard]] std::size_t size() const noexcept { return shape_.size(); }
  /// Rank and extents.
  [[nodiscard]] const shape<Extents>& extents_of() const noexcept { return shape_; }
  /// The label of the tensor.
  [[nodiscard]] const detail::array_label& label() const noexcept { return label_; }
  /// A view for kernels.
  [[nodiscard]] tensor_view<T, Space, Extents> view() const noexcept { return {data_, shape_}; }
  /// Reads and writes in flight, of the whole tensor.
  [[nodiscard]] const std::shared_ptr<detail::access_tracker>& accesses() const noexcept { return accesses_; }

 private:
  detail::array_label label_;
  shape<Extents> shape_;
  T* data_ = nullptr;
  std::shared_ptr<detail::access_tracker> accesses_;
};

template <class Array>
struct array_traits;

/// A slice, with the reads and writes in flight of its tensor.
template <class T, class Space, class Extents>
struct array_traits<tensor_slice<T, Space, Extents>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = T;
  using memory_space = Space;
  static constexpr std::size_t static_width = detail::static_width<Extents>;
  static detail::array_ref<T, Space> ref(const tensor_slice<T, Space, Extents>& array) {
    detail::array_ref<T, Space> ref{{}, array.data()};
    ref.describe_dense(array.rank(), array.extents_of().sizes().data());
    ref.label = array.label();
    ref.accesses = array.accesses();
    return ref;
  }
  /// @}
};

}  // namespace ferry
