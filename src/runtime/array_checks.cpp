// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/array_checks.hpp>

#include <ferry/error.hpp>
#include <ferry/runtime/detail/array_device.hpp>
#include <string>

namespace ferry::detail {

void refuse_rows(const char* verb, const array_note& array, bool empty) {
  if (!empty)
    throw invalid_argument(joined("ferry::", verb, ": the rows of ", array.describe(),
                                  " are strided; use ferry::copy to make a dense array of them"));
  constexpr const char* state = " is an empty handle without extents: it was moved from, or never given any";
  if (array.label.empty())
    throw invalid_argument(joined("ferry::", verb, ": an array in ", array.space, state));
  throw invalid_argument(joined("ferry::", verb, ": '", array.label.view(), "'", state));
}

void require_dense_rows(const char* verb, const untyped_array& array) {
  const bool empty = array.shape.rank == 0 && array.data == nullptr;
  if (empty || !array.shape.has_dense_rows()) refuse_rows(verb, array.note(), empty);
}

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
