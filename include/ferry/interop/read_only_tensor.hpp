// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace ferry {

/// A tensor whose elements nobody may write through ferry: memory of another library that says it is
/// read-only. Owning and move-only as a tensor. Verbs take it where they read.
template <Element T, MemorySpace Space, class Extents = dynamic_rank>
class read_only_tensor {
 public:
  using value_type = const T;    ///< elements
  using memory_space = Space;    ///< where they lie
  using extents_type = Extents;  ///< ferry::extents or dynamic_rank

  /// An empty handle: no memory, no label.
  read_only_tensor() = default;
  /// Takes a tensor.
  explicit read_only_tensor(tensor<T, Space, Extents>&& array) noexcept : array_(std::move(array)) {}

  /// Element (i, j, ...) for host code, see tensor::operator().
  template <class... Indices>
  const T& operator()(Indices... indices) const {
    return array_(indices...);
  }
  /// See tensor::first.
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> first(Rows rows) const& {
    return array_.first(rows);
  }
  /// See tensor::rows_between.
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> rows_between(Begin begin, End end) const& {
    return array_.rows_between(begin, end);
  }
  /// Does not compile for a temporary.
  /// @{
  template <std::integral Rows>
  void first(Rows) && {
    detail::refuse_brief_slice<Rows>();
  }
  template <std::integral Begin, std::integral End>
  void rows_between(Begin, End) && {
    detail::refuse_brief_slice<Begin>();
  }
  /// @}
  /// The first element, in memory of Space; null for an empty handle.
  [[nodiscard]] const T* data() const noexcept { return array_.data(); }
  /// The first extent.
  [[nodiscard]] std::size_t rows() const noexcept { return array_.rows(); }
  /// Elements of a row: the product of the extents after the first.
  [[nodiscard]] std::size_t width() const noexcept { return array_.width(); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return array_.extent(i); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return array_.rank(); }
  /// Number of elements, rows() * width().
  [[nodiscard]] std::size_t size() const noexcept { return array_.size(); }
  /// Its name in messages.
  [[nodiscard]] const std::string& label() const noexcept { return array_.label(); }
  /// A view for kernels; the tensor must outlive their work.
  [[nodiscard]] tensor_view<const T, Space, Extents> view() const noexcept { return array_.view(); }
  /// Reads in flight, which verbs record; null for an empty handle.
  [[nodiscard]] const std::shared_ptr<detail::access_tracker>& accesses() const noexcept {
    return array_.accesses();
  }
  /// The tensor, for functions that take a const one.
  [[nodiscard]] const tensor<T, Space, Extents>& as_tensor() const noexcept { return array_; }

 private:
  tensor<T, Space, Extents> array_;
};

template <class T, class Space, class Extents>
inline constexpr bool detail::owns_elements<read_only_tensor<T, Space, Extents>> = true;

/// A read-only tensor, with its reads in flight.
template <class T, class Space, class Extents>
struct array_traits<read_only_tensor<T, Space, Extents>> {
  /// See ferry::array_traits.
  /// @{
  using value_type = const T;
  using memory_space = Space;
  static constexpr std::size_t static_width = detail::static_width<Extents>;
  static detail::array_ref<const T, Space> ref(const read_only_tensor<T, Space, Extents>& array) {
    return array_traits<tensor<T, Space, Extents>>::ref(array.as_tensor());
  }
  /// @}
};

}  // namespace ferry
