// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "identity.hpp"

#include <ferry/runtime/detail/device_facts.hpp>

namespace ferry::host {

/// Not part of the backend's struct: programs that describe a machine include this header themselves.
struct survey_functions {
  /// The host is the only device. Its memory and nodes are facts about the machine.
  static detail::device_survey survey(int) {
    detail::device_survey survey;
    detail::device_facts facts;
    facts.name = identity_functions::device_identity().device;
    facts.maps_host_memory = facts.takes_registered_memory = facts.concurrent_managed_access = true;
    facts.pageable_access = facts.pageable_by_host_tables = facts.host_atomics = true;
    survey.devices.push_back(std::move(facts));
    return survey;
  }
};

}  // namespace ferry::host

namespace ferry {
using backend_survey = host::survey_functions;
}
