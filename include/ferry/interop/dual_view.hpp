// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Kokkos::DualView as an argument of verbs, and tensors as DualViews. Opt-in: include it next to ferry.hpp.

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/kokkos.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_DualView.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

template <class Dual>
void require_synced(const Dual& array) {
  if (array.need_sync_device())
    throw invalid_argument(
        joined("ferry: the host's side of the DualView '", array.view_device().label(),
               "' is newer than the device's, which verbs use; call sync_device() first, or give "
               "the verb view_host()"));
}

}  // namespace detail

/// A DualView: verbs use the device's side. A verb that writes to it marks that side as modified
/// (modify_device), when it is called. The host's side is then brought up to date by sync_host(), which waits
/// for all work of the device. Throws invalid_argument if the host's side is newer. For the host's side
/// give the verb view_host().
template <class Dual>
  requires(Kokkos::is_dual_view_v<Dual>)
struct array_traits<Dual> {
  /// See ferry::array_traits.
  /// @{
  using side = array_traits<typename Dual::t_dev>;
  using value_type = typename side::value_type;
  using memory_space = typename side::memory_space;
  static constexpr std::size_t static_width = side::static_width;
  static detail::array_ref<value_type, memory_space> ref(Dual& array) {
    detail::require_synced(array);
    if constexpr (!std::is_const_v<value_type>) array.modify_device();
    return side::ref(array.view_device());
  }
  static detail::array_ref<const value_type, memory_space> ref(const Dual& array) {
    detail::require_synced(array);
    return detail::read_only(side::ref(array.view_device()));
  }
  /// @}
};

/// As of the view of the device.
template <class Dual>
  requires(Kokkos::is_dual_view_v<Dual>)
inline constexpr bool is_row_major_v<Dual> = is_row_major_v<typename Dual::t_dev>;

/// A tensor in memory that host and device reach as a DualView whose two sides are that memory. Nothing is
/// ever copied: its sync_host() and sync_device() only wait. The tensor must outlive it.
///
///   Rank   as of ferry::to_kokkos
///   array  a tensor in pinned_space or mapped_space
template <std::size_t Rank = 0, class T, class Space, class Extents>
[[nodiscard]] auto to_dual_view(tensor<T, Space, Extents>& array) {
  static_assert(
      Space::is_host_accessible && Space::is_device_mapped,
      "ferry: both sides of the DualView are the memory of the tensor, which must be in pinned_space or mapped_space.");
  const auto side = to_kokkos<Rank>(array);
  using view = typename decltype(side)::non_const_type;
  using dual = Kokkos::DualView<typename view::data_type, Kokkos::LayoutRight,
                                Kokkos::Device<Kokkos::DefaultExecutionSpace, typename view::memory_space>>;
  return [&]<std::size_t... Axis>(std::index_sequence<Axis...>) {
    return dual(typename dual::t_dev(array.data(), side.extent(Axis)...),
                typename dual::t_host(array.data(), side.extent(Axis)...));
  }
  (std::make_index_sequence<view::rank()>{});
}

}  // namespace ferry
