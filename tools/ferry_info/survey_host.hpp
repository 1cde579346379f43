// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../backends/host/identity.hpp"
#include "device_facts.hpp"

namespace ferry::host {

/// The facts about devices that ferry-info prints.
struct survey_functions {
  /// The host is the only device. Its memory and nodes are facts about the machine.
  static ferry_info::device_survey survey(int) {
    ferry_info::device_survey survey;
    ferry_info::device_facts facts;
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
