#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/extents.hpp>

#include <Kokkos_Macros.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace ferry {

/// Non-owning, trivially copyable view of a row-major array; kernels of an execution space that reaches Space
/// may use it. Constness of the elements is T's.
template <Element T, MemorySpace Space, class Extents = dynamic_rank>
class tensor_view {
 public:
  using value_type = T;
  using memory_space = Space;
  using extents_type = Extents;

  tensor_view() = default;
  KOKKOS_FUNCTION constexpr tensor_view(T* data, const shape<Extents>& extents)
      : data_(data), shape_(extents) {}
  /// Of dense rows: the sizes one by one, rows first. Throws invalid_argument for negative ones.
  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1 && std::is_same_v<Extents, dynamic_rank>)
  tensor_view(T* data, Sizes... sizes)
      : data_(data),
        shape_(shape<Extents>::make(detail::checked_extents(label(), sizes...), label(), sizeof(T))) {}
  /// A view of constant elements from one of mutable elements.
  template <class U>
    requires(std::is_same_v<const U, T>)
  KOKKOS_FUNCTION constexpr tensor_view(const tensor_view<U, Space, Extents>& other)
      : data_(other.data()), shape_(other.extents_of()) {}

  template <class... Indices>
    requires(std::is_convertible_v<Indices, std::size_t>&&...)
  KOKKOS_FUNCTION constexpr T& operator()(Indices... indices) const {
    return data_[shape_.offset(indices...)];
  }

  KOKKOS_FUNCTION constexpr T* data() const { return data_; }
  KOKKOS_FUNCTION constexpr std::size_t rows() const { return shape_.rows(); }
  KOKKOS_FUNCTION constexpr std::size_t width() const { return shape_.width(); }
  KOKKOS_FUNCTION constexpr std::size_t extent(std::size_t i) const { return shape_.extent(i); }
  KOKKOS_FUNCTION constexpr std::size_t rank() const { return shape_.rank(); }
  KOKKOS_FUNCTION constexpr std::size_t size() const { return shape_.size(); }
  KOKKOS_FUNCTION constexpr const shape<Extents>& extents_of() const { return shape_; }
  /// A view has no name of its own.
  [[nodiscard]] static constexpr const char* label() { return "view"; }

 private:
  T* data_ = nullptr;
  shape<Extents> shape_;
};

/// tensor_view(pointer, rows, width): of ordinary host memory, as a span is. For other memory name its space:
/// tensor_view<float, mapped_space>(pointer, rows, width).
template <class T, std::integral... Sizes>
  requires(sizeof...(Sizes) >= 1)
tensor_view(T*, Sizes...)
->tensor_view<T, pageable_space>;

}  // namespace ferry
