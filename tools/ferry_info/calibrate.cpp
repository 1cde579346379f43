// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <ferry/calibrate.hpp>
#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <string>

namespace ferry_info {

std::string calibrate(double seconds) {
  const Kokkos::DefaultExecutionSpace exec;
  ferry::calibration_options options;
  options.max_seconds = seconds;
  ferry::calibrate(exec, options);
  return ferry::profile_origin(exec);
}

}  // namespace ferry_info
