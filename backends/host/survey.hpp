// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "identity.hpp"

#include <ferry/runtime/detail/device_facts.hpp>

namespace ferry::host {

/// Not part of the backend's struct: programs that describe a machine include this header themselves.
struct survey_functions {
  /// The host is the only device. Its memory and nodes are facts about the machine.
  static detail::device_survey survey(int) {
    detail::device_survey made;
    detail::device_facts one;
    one.name = identity_functions::device_identity().device;
    one.maps_host_memory = one.takes_registered_memory = one.concurrent_managed_access = true;
    one.pageable_access = one.pageable_by_host_tables = one.host_atomics = true;
    made.devices.push_back(std::move(one));
    return made;
  }
};

}  // namespace ferry::host

namespace ferry {
using backend_survey = host::survey_functions;
}
