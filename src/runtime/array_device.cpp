// SPDX-License-Identifier: Apache-2.0
#include <ferry/error.hpp>
#include <ferry/runtime/detail/array_device.hpp>

#include <string>

namespace ferry::detail {

void refuse_array_device(std::string_view verb, const array_note& array, int device, int instance) {
  throw invalid_argument(joined(
      "ferry::", verb, ": ", array.describe(), " lies on device ", device, ", but the instance is of device ",
      instance, "; give the verb an instance of that device, or copy the array with ferry::copy"));
}

void require_plan_device(std::string_view verb, int device, const plan_storage& plan) {
  if (plan.device == device || plan.on_host) return;
  throw invalid_argument(std::string("ferry::").append(verb) + ": the plan was made on device " +
                         std::to_string(plan.device) + ", but the instance is of device " +
                         std::to_string(device) + "; make a plan with the instance");
}

}  // namespace ferry::detail
