// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// mdspans as arguments of verbs, and tensors as mdspans: std::mdspan if the standard library has it,
/// else that of Kokkos. Opt-in: include it next to ferry.hpp.

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/kokkos.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <version>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__cpp_lib_mdspan)
#include <mdspan>
#endif

namespace ferry {

namespace detail {

/// An mdspan of any implementation whose elements are plain memory at fixed strides: its accessor neither
/// converts nor proxies.
template <class T>
concept MdspanLike = requires(const T& span) {
  typename T::extents_type;
  typename T::layout_type;
  typename T::accessor_type;
  typename T::mapping_type;
  static_cast<typename T::element_type*>(span.data_handle());
  { span.stride(0) } -> std::convertible_to<std::int64_t>;
  { T::rank() } -> std::convertible_to<std::size_t>;
  { T::static_extent(0) } -> std::convertible_to<std::size_t>;
  requires T::is_always_strided();
}
&&std::same_as<typename T::reference, typename T::element_type&>;

/// ferry's space of an mdspan: that of its accessor where it says so, as Kokkos' accessors do.
template <class Span>
consteval auto mdspan_space() {
  if constexpr (requires { typename Span::accessor_type::memory_space; }) {
    using accessor_space = typename Span::accessor_type::memory_space;
    if constexpr (MemorySpace<accessor_space>)
      return accessor_space{};
    else
      return space_of<accessor_space>();
  } else {
    return pageable_space{};
  }
}

template <class Span>
consteval bool has_mdspan_rows() {
  if constexpr (Span::rank() <= 1) return true;
#if defined(__cpp_lib_mdspan)
  if constexpr (std::is_same_v<typename Span::layout_type, std::layout_left>) return false;
#endif
#if defined(MDSPAN_IMPL_STANDARD_NAMESPACE)
  if constexpr (std::is_same_v<typename Span::layout_type, MDSPAN_IMPL_STANDARD_NAMESPACE::layout_left>)
    return false;
#endif
  return true;
}

template <class Span>
consteval std::size_t mdspan_width() {
  std::size_t product = 1;
  for (std::size_t i = 1; i < Span::rank(); ++i) {
    if (Span::static_extent(i) == dyn) return dyn;
    product *= Span::static_extent(i);
  }
  return product;
}

#if defined(__cpp_lib_mdspan)
namespace mdspans = std;
#elif defined(MDSPAN_IMPL_STANDARD_NAMESPACE)
namespace mdspans = MDSPAN_IMPL_STANDARD_NAMESPACE;
#endif

}  // namespace detail

/// An mdspan: std::mdspan, that of Kokkos, or another implementation's. Its elements lie in the space that
/// its accessor names (`memory_space`), else in pageable memory; for other memory give
/// ferry::tensor_view<T, Space>(pointer, rows, width). Verbs on rows take layouts with dense rows,
/// ferry::copy all strided ones.
template <detail::MdspanLike Span>
struct array_traits<Span> {
  static_assert(Span::rank() <= max_rank, "ferry: an array has at most 8 extents.");
  /// See ferry::array_traits.
  /// @{
  using value_type = typename Span::element_type;
  using memory_space = decltype(detail::mdspan_space<Span>());
  static constexpr std::size_t static_width = detail::mdspan_width<Span>();
  static detail::array_ref<value_type, memory_space> ref(const Span& array) {
    // Kokkos' handles count their uses.
    return detail::strided_ref<value_type, memory_space, Span::rank()>(
        static_cast<value_type*>(array.data_handle()), array, "mdspan");
  }
  /// @}
};

/// False for layout_left. Other layouts are looked at when a verb is called.
template <detail::MdspanLike Span>
inline constexpr bool is_row_major_v<Span> = detail::has_mdspan_rows<Span>();

#if defined(__cpp_lib_mdspan) || defined(MDSPAN_IMPL_STANDARD_NAMESPACE)

namespace detail {

template <class Extents, std::size_t Rank>
struct mdspan_extents {
  using type = mdspans::dextents<std::size_t, Rank>;
};
template <std::size_t... Sizes, std::size_t Rank>
  requires(Rank == sizeof...(Sizes))
struct mdspan_extents<extents<Sizes...>, Rank> {
  using type = mdspans::extents<std::size_t, Sizes...>;
};

}  // namespace detail

/// A tensor, slice or view in host memory as an mdspan in layout_right; the memory must outlive it. Extents
/// that the type fixes are fixed in the mdspan, too.
///
///   Rank  rank of the mdspan; default the static rank of the array, or 2 (rows x width) for a dynamic rank
///
/// Waits for nothing. Throws invalid_argument if Rank is neither the rank of the array nor 2, and if
/// rank 2 is requested of an array of rank 1.
template <std::size_t Rank = 0, class Array>
  requires requires { typename std::remove_cvref_t<Array>::extents_type; }
[[nodiscard]] auto to_mdspan(Array&& array) {
  using plain = std::remove_cvref_t<Array>;
  static_assert(
      plain::memory_space::is_host_accessible,
      "ferry: an mdspan with the default accessor is for host code, which can't rely on reaching device_space; use tensor::view() or ferry::to_kokkos in kernels.");
  constexpr std::size_t rank = Rank == 0 ? detail::rank_or<typename plain::extents_type, 2> : Rank;
  using extents_type = typename detail::mdspan_extents<typename plain::extents_type, rank>::type;
  if (rank != array.rank() && (rank != 2 || array.rank() <= 1))
    throw invalid_argument(detail::joined("ferry::to_mdspan: an mdspan of rank ", rank,
                                          " was requested for '", array.label(), "' of rank ", array.rank(),
                                          "; write ferry::to_mdspan<", array.rank(), ">(array)"));
  std::array<std::size_t, rank> sizes{};
  for (std::size_t i = 0; i < rank; ++i)
    sizes[i] = rank == array.rank() ? array.extent(i) : (i == 0 ? array.rows() : array.width());
  return detail::mdspans::mdspan<std::remove_pointer_t<decltype(array.data())>, extents_type>(
      array.data(), extents_type(sizes));
}

#endif

}  // namespace ferry
