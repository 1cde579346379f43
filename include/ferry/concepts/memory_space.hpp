// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string_view>

namespace ferry {

/// The location of the bytes of a tensor and the way a device reaches them: an empty type with these members.
///
///   ferry_memory_space  the type itself
///   name                its name in error messages and descriptions
///   is_host_accessible  whether host code may dereference it on every backend
///   is_device_mapped    whether device kernels may dereference it on every backend
template <class T>
concept MemorySpace = requires {
  typename T::ferry_memory_space;
  { T::name } -> std::convertible_to<std::string_view>;
  { T::is_host_accessible } -> std::convertible_to<bool>;
  { T::is_device_mapped } -> std::convertible_to<bool>;
}
&&std::same_as<typename T::ferry_memory_space, T>;

}  // namespace ferry
