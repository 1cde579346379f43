// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/profile/detail/path_rule.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/version.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace ferry {

namespace detail {

/// The machine and the versions that a profile is valid for. A file of another machine or version is not
/// used.
struct machine_identity {
  std::string device;
  std::string driver;
  std::string threads;  ///< of the host execution space
  /// Another version may define the numbers otherwise.
  std::string ferry =
      joined(FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH, " rule 1");
};

std::string to_text(const machine_profile& profile, const machine_identity& identity);

/// $FERRY_PROFILE; null if it is unset or empty.
const char* profile_variable();

/// $FERRY_PROFILE, else ${XDG_CACHE_HOME:-$HOME/.cache}/ferry/profile-<backend>.txt; empty if none is
/// set.
std::string profile_path(std::string_view backend);

/// The contents of the file. Sets `why` if it can't be read, and `missing` if it does not exist. A
/// profile has about 2000 bytes.
std::string read_text(const std::string& path, std::string& why, bool& missing);

/// Throws io_error where the path names something that a file must not replace: a device, a pipe, a socket, a
/// folder, or a symbolic link to anything. Accepts a path that does not exist or can't be examined.
void require_replaceable(const std::string& path);

/// Writes the file as a whole, see atomic_file, so that no other program reads an incomplete one. Makes
/// missing folders. Throws io_error, naming the path, and if require_replaceable does.
void write_text(const std::string& path, const std::string& text);

template <ExecutionSpace Exec>
machine_identity identity_of(const Exec& exec);

/// The origin of the defaults, as the start of a sentence that says why they are in use.
template <ExecutionSpace Exec>
std::string origin_of_defaults(const Exec& exec);

}  // namespace detail

/// The profile of an unknown machine: the defaults of machine_profile, for a host execution space scaled by
/// its number of threads.
template <class Exec>
[[nodiscard]] machine_profile default_profile(const Exec& exec) {
  if constexpr (detail::is_host_exec<Exec>)
    return detail::host_defaults(exec.concurrency());
  else
    return {};
}

namespace detail {

struct known_profile {
  machine_profile profile;
  std::string origin;  ///< a sentence's end: "read from ..."
};

/// The profiles that the verbs of one backend use, one for each device. The first call that needs one loads
/// it; Kokkos::finalize ends them.
template <ExecutionSpace Exec>
class profile_holder {
 public:
  static std::shared_ptr<const known_profile> get(const Exec& exec);
  static void set(const Exec& exec, known_profile known);
  /// Forgets the profiles; the next use reads the file again.
  static void forget();
};

void require_usable(const machine_profile& profile);

/// The choice of path::automatic. A single candidate is taken without the profile.
template <class Exec>
path_kind choose_route(const Exec& exec, const move_facts& facts, path_set candidates) {
  if (candidates.size() == 1) return candidates.first();
  return choose_route(profile_holder<Exec>::get(exec)->profile, facts, candidates);
}

}  // namespace detail

/// The profile that path::automatic uses for the machine and the device of `exec`: the one that
/// ferry::calibrate measured in this program, else the one in the profile file, else default_profile(exec).
///
/// The profile file is `$FERRY_PROFILE`, else `${XDG_CACHE_HOME:-$HOME/.cache}/ferry/profile-<backend>.txt`.
/// The first call that needs it reads it, once for each device. A file of another kind of device, driver,
/// number of host threads or version of ferry is not used. Throws io_error where FERRY_PROFILE names a file
/// that can't be read or is not a profile. A missing file is not an error. Thread-safe.
template <class Exec>
[[nodiscard]] machine_profile current_profile(const Exec& exec) {
  return detail::profile_holder<Exec>::get(exec)->profile;
}

/// The origin of current_profile as text; for the defaults, also why the file was not used. Throws io_error
/// as current_profile. Thread-safe.
template <class Exec>
[[nodiscard]] std::string profile_origin(const Exec& exec) {
  return detail::profile_holder<Exec>::get(exec)->origin;
}

/// Replaces the profile for all later verbs of this program on the device of `exec`. Throws invalid_argument,
/// naming the number, for one that is not finite, is negative, or is zero and divides. Thread-safe.
template <class Exec>
void use_profile(const Exec& exec, const machine_profile& profile) {
  detail::require_usable(profile);
  detail::profile_holder<Exec>::set(exec, {profile, "set by ferry::use_profile"});
}

}  // namespace ferry
