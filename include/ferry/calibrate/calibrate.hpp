// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/calibrate/detail/calibration.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/profile/current_profile.hpp>
#include <ferry/profile/machine_profile.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace ferry {

/// Limits of ferry::calibrate.
struct calibration_options {
  double max_seconds = 4.0;  ///< after this time no reading is begun; missing readings keep their defaults
  /// Most bytes of host memory; of device memory it is half as much. A quarter of the free memory is never
  /// exceeded. More bytes are needed to measure a reach of small pages above 4 GiB.
  std::size_t max_bytes = std::size_t{1} << 32;
  bool save = true;  ///< true to write the file that current_profile reads
};

namespace detail {

inline std::size_t quarter_of_free_memory() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && bytes > 0 ? static_cast<std::size_t>(pages) / 4 * static_cast<std::size_t>(bytes) : 0;
}

}  // namespace detail

/// Measures the machine and the device of `exec` by calling the verbs. The result becomes current_profile of
/// that device and is written to the file that later programs read. Devices of one name share the file.
///
/// Blocks for max_seconds or slightly longer. Nothing else should use the device, the link or the cores in
/// that time. Readings that time or memory did not allow keep their defaults; the bits of `measured` say
/// which were taken.
///
/// Throws invalid_argument if max_seconds is negative or not a number, and io_error if FERRY_PROFILE
/// names a file that can't be written; the readings are then in use. Where it names something other than a
/// regular file (a device, a pipe, a folder, a symbolic link), io_error is thrown before the measurement and
/// the file is left alone. A cache file that can't be written is not an error, see profile_origin.
template <class Exec>
machine_profile calibrate(const Exec& exec, const calibration_options& options = {}) {
  detail::require_execution_space<Exec>();
  using holder = detail::profile_holder<Exec>;
  const std::string path = options.save ? detail::profile_path(execution_backend<Exec>::name) : std::string();
  if (!path.empty() && detail::profile_variable() != nullptr) detail::require_replaceable(path);
  if (!(options.max_seconds >= 0))
    throw invalid_argument(
        detail::joined("ferry::calibrate: max_seconds is ", options.max_seconds, ", must be >= 0"));
  const std::size_t bytes = std::min(options.max_bytes, detail::quarter_of_free_memory());
  detail::known_profile result;
  result.profile = default_profile(exec);
  try {
    result.profile = detail::calibration<Exec>(exec, result.profile, options.max_seconds, bytes).run();
  } catch (const bad_alloc&) {  // no memory for a batch
  }
  result.origin = result.profile.measured != 0u
                      ? "measured by this program"
                      : detail::joined(detail::origin_of_defaults(exec),
                                       ": ferry::calibrate had no time or memory for a reading");
  if (!path.empty()) {
    try {
      detail::write_text(path, detail::to_text(result.profile, detail::identity_of(exec)));
      result.origin += detail::joined(", saved to ", path);
    } catch (const io_error& failure) {
      if (detail::profile_variable() != nullptr) {
        holder::set(exec, std::move(result));
        throw;
      }
      result.origin.append(", not saved: ").append(failure.what());
    }
  }
  const machine_profile profile = result.profile;
  holder::set(exec, std::move(result));
  return profile;
}

}  // namespace ferry
