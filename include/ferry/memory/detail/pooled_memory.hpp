// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The memory of tensors, from the pool of its space while Kokkos runs. The library has those of ferry's
/// spaces.
template <MemorySpace Space>
struct pooled_memory {
  /// Throws as the constructor of an allocation.
  [[nodiscard]] static std::shared_ptr<allocation<Space>> allocate(std::string label, std::size_t bytes,
                                                                   int device);
  /// The tensor of the memory ends. The pool keeps the memory until the `uses` have ended, at least.
  static void end(std::shared_ptr<allocation<Space>> memory, const access_tracker& uses) noexcept;
  /// Changes the bytes that may lie idle on a device, for tests. The result is the limit before.
  static std::size_t limit(int device, std::size_t bytes);
};
extern template struct pooled_memory<device_space>;
extern template struct pooled_memory<pinned_space>;
extern template struct pooled_memory<mapped_space>;

/// Not ordinary memory, and not spaces of users.
template <MemorySpace Space>
inline constexpr bool has_tensor_pool =
    std::is_same_v<Space, device_space> || std::is_same_v<Space, pinned_space> ||
    std::is_same_v<Space, mapped_space>;

}  // namespace ferry::detail
