// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <string>
#include <string_view>

namespace ferry::detail {

template <class...>
[[noreturn]] void refuse_array_device(std::string_view verb, const array_note& array, int device,
                                      int instance) {
  throw invalid_argument(
      joined({"ferry::", verb, ": ", array.describe(), " lies on device ", device,
              ", but the instance is of device ", instance,
              "; give the verb an instance of that device, or copy the array with ferry::copy"}));
}

/// Throws invalid_argument where the array is known to lie on another device than the instance.
template <class Exec, class T, class Space>
void require_array_device(std::string_view verb, const Exec& exec, const array_ref<T, Space>& array) {
  if constexpr (!is_host_exec<Exec> && !Space::is_host_accessible) {
    const int device = array.device();
    if (device >= 0 && device != execution_backend<Exec>::device_of(exec)) [[unlikely]]
      refuse_array_device(verb, array.note(), device, execution_backend<Exec>::device_of(exec));
  }
}

/// Throws invalid_argument where another device made the plan.
template <class Exec>
void require_plan_device(std::string_view verb, const Exec& exec, const plan_storage& plan) {
  if constexpr (!is_host_exec<Exec>) {
    const int device = execution_backend<Exec>::device_of(exec);
    if (plan.device == device || plan.on_host) return;
    throw invalid_argument(std::string("ferry::").append(verb) + ": the plan was made on device " +
                           std::to_string(plan.device) + ", but the instance is of device " +
                           std::to_string(device) + "; make a plan with the instance");
  }
}

}  // namespace ferry::detail
