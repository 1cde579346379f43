// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

template <class T, std::size_t Rank>
struct pointers {
  using type = typename pointers<T, Rank - 1>::type*;
};
template <class T>
struct pointers<T, 0> {
  using type = T;
};

template <MemorySpace Space>
using kokkos_space_t =
    std::conditional_t<std::is_same_v<Space, device_space>, Kokkos::DefaultExecutionSpace::memory_space,
                       std::conditional_t<std::is_same_v<Space, pinned_space>, Kokkos::SharedHostPinnedSpace,
                                          std::conditional_t<std::is_same_v<Space, mapped_space>,
                                                             Kokkos::SharedSpace, Kokkos::HostSpace>>>;

/// A tensor, a slice or a view.
template <class Array>
concept IsDenseArray = requires(Array& array) {
  typename Array::extents_type;
  typename Array::memory_space;
  array.data();
};

}  // namespace detail

/// An unmanaged LayoutRight Kokkos::View over the memory of a tensor, slice or tensor_view; the memory must
/// outlive it.
///
///   Rank   rank of the view; default the static rank of the array, or 2 for a dynamic rank
///   array  a tensor, a slice or a view; a const tensor gives a view of const elements
///
/// A view of rank 2 of an array of higher rank is rows x width. Waits for nothing. Throws invalid_argument
/// if Rank is neither the rank of the array nor 2, and if rank 2 is requested of an array of rank 1,
/// which stays one.
template <std::size_t Rank = 0, class Array>
  requires detail::IsDenseArray<std::remove_cvref_t<Array>>
[[nodiscard]] auto to_kokkos(Array&& array) {
  using array_type = std::remove_cvref_t<Array>;
  constexpr std::size_t rank = Rank == 0 ? detail::rank_or<typename array_type::extents_type, 2> : Rank;
  using elements = typename detail::pointers<std::remove_pointer_t<decltype(array.data())>, rank>::type;
  using view_type =
      Kokkos::View<elements, Kokkos::LayoutRight, detail::kokkos_space_t<typename array_type::memory_space>,
                   Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if (rank != array.rank() && (rank != 2 || array.rank() <= 1))
    throw invalid_argument(
        detail::joined("ferry::to_kokkos: a view of rank ", rank, " was requested for '", array.label(),
                       "' of rank ", array.rank(), "; write ferry::to_kokkos<", array.rank(),
                       ">(array), or fix the rank in the type of the tensor by ferry::extents"));
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) {
    if (rank == array.rank()) return view_type(array.data(), array.extent(Axis)...);
    return view_type(array.data(), (Axis == 0 ? array.rows() : array.width())...);
  }
  (std::make_index_sequence<rank>{});
}

}  // namespace ferry
