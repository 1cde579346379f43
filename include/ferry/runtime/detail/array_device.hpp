// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <string_view>

namespace ferry::detail {

[[noreturn]] void refuse_array_device(std::string_view verb, const array_note& array, int device,
                                      int instance);

/// Throws invalid_argument if the array is known to lie on another device than the instance.
template <class Exec, class T, class Space>
void require_array_device(std::string_view verb, const Exec& exec, const array_ref<T, Space>& array) {
  if constexpr (!is_host_exec<Exec> && !Space::is_host_accessible) {
    const int device = array.device();
    if (device >= 0 && device != execution_backend<Exec>::device_of(exec)) [[unlikely]]
      refuse_array_device(verb, array.note(), device, execution_backend<Exec>::device_of(exec));
  }
}

/// Throws invalid_argument if a device made the plan that is not the instance's.
void require_plan_device(std::string_view verb, int device, const plan_storage& plan);
template <class Exec>
void require_plan_device(std::string_view verb, const Exec& exec, const plan_storage& plan) {
  if constexpr (!is_host_exec<Exec>)
    require_plan_device(verb, execution_backend<Exec>::device_of(exec), plan);
}

}  // namespace ferry::detail
