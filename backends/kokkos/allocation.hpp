// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "detail/address_book.hpp"
#include "error.hpp"

#include "../host/error.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

namespace ferry::kokkos {

/// Memory of Kokkos' spaces. `Spaces` names them, see backends/enabled.hpp.
template <class Spaces>
struct allocation_functions {
  template <class Space>
  static memory_block allocate(Space, std::size_t bytes, const std::string& label, int = -1) {
    const std::size_t room = bytes + alignment;
    if (room < bytes) host::throw_bad_alloc(Space::name.data(), label, bytes, "the size overflows");
    void* raw = nullptr;
    try {
      raw = Kokkos::kokkos_malloc<native<Space>>(label, room);
    } catch (const std::exception& failed) {
      host::throw_bad_alloc(Space::name.data(), label, bytes, failed.what());
    }
    const auto padding = alignment - reinterpret_cast<std::uintptr_t>(raw) % alignment;
    memory_block block{static_cast<std::byte*>(raw) + padding, bytes, static_cast<int>(padding)};
    try {
      if constexpr (!Spaces::device_is_host) address_book::get().add(block.data, bytes, kind_of<Space>());
    } catch (...) {
      Kokkos::kokkos_free<native<Space>>(raw);
      throw;
    }
    return block;
  }
  /// Kokkos frees no memory after Kokkos::finalize: the system does when the process ends.
  template <class Space>
  static void deallocate(Space, const memory_block& block) noexcept {
    if constexpr (!Spaces::device_is_host) address_book::get().remove(block.data);
    if (Kokkos::is_initialized() && !Kokkos::is_finalized())
      Kokkos::kokkos_free<native<Space>>(static_cast<std::byte*>(block.data) - block.provenance);
  }

  static void lock_pages(void*, std::size_t) {
    if constexpr (!Spaces::device_is_host) refuse("ferry::adopt", facility::page_locking);
  }
  static void unlock_pages(void*, std::size_t) noexcept {}

  template <class Space>
  static std::string describe(Space, const memory_block&) {
    return detail::joined("memory of Kokkos' space ", native<Space>::name());
  }

  /// How host and device reach the memory of a space.
  template <class Space>
  static constexpr memory_kind kind_of() {
    if constexpr (std::is_same_v<Space, device_space>)
      return memory_kind::device;
    else if constexpr (std::is_same_v<native<Space>, Kokkos::HostSpace>)
      return memory_kind::host;
    else
      return std::is_same_v<Space, mapped_space> ? memory_kind::managed : memory_kind::page_locked;
  }

 private:
  /// Kernels read rows in aligned units, and plans their arrays in whole cache lines. The last unit of an
  /// allocation lies within it.
  static constexpr std::size_t alignment = 256;

  template <class Space>
  static consteval auto native_of() {
    if constexpr (std::is_same_v<Space, device_space>)
      return std::type_identity<typename Spaces::device>{};
    else if constexpr (std::is_same_v<Space, pinned_space>)
      return std::type_identity<typename Spaces::pinned>{};
    else if constexpr (std::is_same_v<Space, mapped_space>)
      return std::type_identity<typename Spaces::mapped>{};
    else
      return std::type_identity<Kokkos::HostSpace>{};
  }
  template <class Space>
  using native = typename decltype(native_of<Space>())::type;
};

}  // namespace ferry::kokkos
