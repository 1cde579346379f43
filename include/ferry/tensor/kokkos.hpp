#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
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

template <class Extents>
consteval std::size_t default_rank() {
  if constexpr (Extents::has_static_rank)
    return Extents::rank;
  else
    return 2;
}

template <MemorySpace Space>
using kokkos_space_t =
    std::conditional_t<std::is_same_v<Space, device_space>, Kokkos::DefaultExecutionSpace::memory_space,
                       std::conditional_t<std::is_same_v<Space, pinned_space>, Kokkos::SharedHostPinnedSpace,
                                          std::conditional_t<std::is_same_v<Space, mapped_space>,
                                                             Kokkos::SharedSpace, Kokkos::HostSpace>>>;

template <class T, class Space, std::size_t Rank, class Shaped>
auto unmanaged_view(T* data, const Shaped& array) {
  using view_type = Kokkos::View<typename pointers<T, Rank>::type, Kokkos::LayoutRight, kokkos_space_t<Space>,
                                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if (Rank != array.rank() && Rank != 2)
    throw invalid_argument("ferry::to_kokkos: a view of rank " + std::to_string(Rank) + " was asked for '" +
                           std::string(array.label()) + "' of rank " + std::to_string(array.rank()));
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) {
    if (Rank == array.rank()) return view_type(data, array.extent(Axis)...);
    return view_type(data, (Axis == 0 ? array.rows() : array.width())...);
  }
  (std::make_index_sequence<Rank>{});
}

}  // namespace detail

/// Unmanaged LayoutRight Kokkos::View over the memory of a tensor or a slice, of the tensor's rank where its type fixes it.
/// For a tensor of dynamic rank: of rank 2, rows x width, or of the asked rank: to_kokkos<1>(indices). Throws
/// invalid_argument where the asked rank is not the tensor's.
template <std::size_t Rank = 0, class T, class Space, class Extents>
[[nodiscard]] auto to_kokkos(tensor<T, Space, Extents>& array) {
  return detail::unmanaged_view<T, Space, (Rank == 0 ? detail::default_rank<Extents>() : Rank)>(array.data(),
                                                                                                array);
}

template <std::size_t Rank = 0, class T, class Space, class Extents>
[[nodiscard]] auto to_kokkos(const tensor<T, Space, Extents>& array) {
  return detail::unmanaged_view<const T, Space, (Rank == 0 ? detail::default_rank<Extents>() : Rank)>(
      array.data(), array);
}

template <std::size_t Rank = 0, class T, class Space, class Extents>
[[nodiscard]] auto to_kokkos(const tensor_slice<T, Space, Extents>& array) {
  return detail::unmanaged_view<T, Space, (Rank == 0 ? detail::default_rank<Extents>() : Rank)>(array.data(),
                                                                                                array);
}

}  // namespace ferry
