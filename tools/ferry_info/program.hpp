// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report.hpp"

#include <cstdint>
#include <string>

namespace ferry_info {

/// Names, versions and the profile in use; Kokkos is initialised.
void describe_program(report& facts);

/// Allocates and copies blocks of at most `bytes` bytes by ferry's verbs.
measured_rates measure(std::int64_t bytes);

/// ferry::calibrate for the default execution space; returns profile_origin.
std::string calibrate(double seconds);

}  // namespace ferry_info
