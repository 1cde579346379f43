// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/extents.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>

namespace ferry {

/// Non-owning, trivially copyable view of a row-major array, for kernels of execution spaces that reach
/// Space. The elements are const if T is. It does not know of reads and writes in flight.
template <Element T, MemorySpace Space, class Extents = dynamic_rank>
class tensor_view {
 public:
  using value_type = T;          ///< elements, const if the view is read-only
  using memory_space = Space;    ///< where they lie
  using extents_type = Extents;  ///< ferry::extents or dynamic_rank

  /// An empty view: no extents, null data.
  tensor_view() = default;
  /// A view of dense rows with these extents. The label, if there is one, must live as long as the data.
  KOKKOS_FUNCTION constexpr tensor_view(T* data, const shape<Extents>& extents,
                                        const std::string* label = nullptr)
      : data_(data), shape_(extents), label_(label) {}
  /// A view of dense rows; the sizes are the extents, rows first; if the type fixes some of them, all or only
  /// the others. Throws invalid_argument for a negative one, and for one that contradicts the type.
  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1)
  tensor_view(T* data, Sizes... sizes)
      : data_(data),
        shape_(shape<Extents>::make(detail::checked_extents(unnamed, sizes...), unnamed, sizeof(T))) {}
  /// A read-only view from a writable one.
  template <class U>
    requires(std::is_same_v<const U, T>)
  KOKKOS_FUNCTION constexpr tensor_view(const tensor_view<U, Space, Extents>& source)
      : data_(source.data()), shape_(source.extents_of()), label_(source.lasting_label()) {}

  /// Element (i, j, ...), one index per extent. Not checked.
  template <class... Indices>
    requires(std::is_convertible_v<Indices, std::size_t>&&...)
  KOKKOS_FUNCTION constexpr T& operator()(Indices... indices) const {
    return data_[shape_.offset(indices...)];
  }

  /// The first element, in memory of Space.
  KOKKOS_FUNCTION constexpr T* data() const { return data_; }
  /// The first extent.
  KOKKOS_FUNCTION constexpr std::size_t rows() const { return shape_.rows(); }
  /// Elements of a row: the product of the extents after the first.
  KOKKOS_FUNCTION constexpr std::size_t width() const { return shape_.width(); }
  /// Extent i, 1 for i >= rank().
  KOKKOS_FUNCTION constexpr std::size_t extent(std::size_t i) const { return shape_.extent(i); }
  /// Number of extents.
  KOKKOS_FUNCTION constexpr std::size_t rank() const { return shape_.rank(); }
  /// Number of elements, rows() * width().
  KOKKOS_FUNCTION constexpr std::size_t size() const { return shape_.size(); }
  /// Rank and extents.
  KOKKOS_FUNCTION constexpr const shape<Extents>& extents_of() const { return shape_; }
  /// For host code: the label of the tensor, if the view is of a whole tensor that allocated its memory;
  /// else "view". Like data() it lives as long as that tensor.
  [[nodiscard]] const std::string& label() const {
    static const std::string none = unnamed;
    return label_ == nullptr ? none : *label_;
  }
  /// That label; null for "view".
  KOKKOS_FUNCTION constexpr const std::string* lasting_label() const { return label_; }

 private:
  static constexpr const char* unnamed = "view";

  T* data_ = nullptr;
  shape<Extents> shape_;
  const std::string* label_ = nullptr;
};

/// tensor_view(pointer, rows, width) is a view of ordinary host memory. For other memory name the space:
/// tensor_view<float, mapped_space>(pointer, rows, width).
template <class T, std::integral... Sizes>
  requires(sizeof...(Sizes) >= 1)
tensor_view(T*, Sizes...)
->tensor_view<T, pageable_space>;

}  // namespace ferry
