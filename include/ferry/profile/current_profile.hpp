// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/memory/detail/until_finalize.hpp>
#include <ferry/profile/detail/candidate_paths.hpp>
#include <ferry/profile/detail/cost_model.hpp>
#include <ferry/profile/detail/profile_file.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ferry {

namespace detail {

template <class Exec>
machine_identity identity_of(const Exec& exec) {
  using backend = execution_backend<Exec>;
  const typename backend::device_guard on(exec);
  machine_identity made;
  auto id = backend::device_identity();
  made.device = std::move(id.device);
  made.driver = std::move(id.driver);
  if constexpr (is_host_exec<Exec>)
    made.threads = std::to_string(exec.concurrency());
  else
    made.threads = std::to_string(Kokkos::DefaultHostExecutionSpace().concurrency());
  return made;
}

/// The origin of the defaults, as the start of a sentence that says why they are in use.
template <class Exec>
std::string origin_of_defaults(const Exec& exec) {
  constexpr const char* machine = "defaults (readings of one H200 on PCIe 5 x16 with 16 cores, ";
  if constexpr (is_host_exec<Exec>)
    return machine + ("taken for " + std::to_string(exec.concurrency())) +
           " host threads; not of this machine)";
  else
    return std::string(machine) + "not of this machine)";
}

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

/// The profile of the file, or the defaults with the reason. An unusable cache file is ignored. A file that
/// FERRY_PROFILE names must be a profile.
template <class Exec>
known_profile load_profile(const Exec& exec) {
  known_profile made{default_profile(exec), origin_of_defaults(exec) + ": "};
  const std::string path = profile_path(execution_backend<Exec>::name);
  const bool named = named_profile() != nullptr;
  if (path.empty()) {
    made.origin += "neither FERRY_PROFILE nor XDG_CACHE_HOME nor HOME is set";
    return made;
  }
  std::string why;
  bool missing = false;
  const std::string text = read_text(path, why, missing);
  if (missing) {
    made.origin += "there is no " + path + ", which ferry::calibrate would write";
    return made;
  }
  bool unusable = true;
  if (why.empty()) why = from_text(text, identity_of(exec), made.profile, unusable);
  if (why.empty()) {
    made.origin = "read from " + path;
    return made;
  }
  if (named && unusable) throw io_error("ferry: the profile " + path + " (FERRY_PROFILE) " + why);
  made.origin += path + " " + why;
  return made;
}

/// The profiles that the verbs of one backend use, one for each device. The first call that needs one loads
/// it; Kokkos::finalize ends them.
template <class Exec>
class profile_holder {
 public:
  static std::shared_ptr<const known_profile> get(const Exec& exec) {
    require_kokkos("ferry: the profile of the machine");  // has the number of threads
    const auto home = until_finalize<residence>();
    const std::lock_guard lock(home->guard);
    auto& known = home->of(execution_backend<Exec>::device_of(exec));
    if (known == nullptr) known = std::make_shared<const known_profile>(load_profile(exec));
    return known;
  }
  static void set(const Exec& exec, known_profile known) {
    const auto home = until_finalize<residence>();
    auto made = std::make_shared<const known_profile>(std::move(known));
    const std::lock_guard lock(home->guard);
    home->of(execution_backend<Exec>::device_of(exec)) = std::move(made);
  }
  /// Forgets the profiles; the next use reads the file again.
  static void forget() {
    const auto home = until_finalize<residence>();
    const std::lock_guard lock(home->guard);
    home->known.clear();
  }

 private:
  struct of_device {
    int device;
    std::shared_ptr<const known_profile> profile;
  };
  struct residence {
    std::mutex guard;
    dynamic_array<of_device> known;

    std::shared_ptr<const known_profile>& of(int device) {
      for (of_device& each : known)
        if (each.device == device) return each.profile;
      known.push_back({device, nullptr});
      return known.back().profile;
    }
  };
};

template <class...>
void require_usable(const machine_profile& profile) {
  for (const auto& field : profile_fields)
    if (!is_usable(field, profile.*field.member))
      throw invalid_argument("ferry::use_profile: " + std::string(field.name) + " is " +
                             number_text(profile.*field.member));
}

/// The choice of path::automatic. A single candidate is taken without the profile.
template <class Exec>
path_kind choose_route(const Exec& exec, const move_facts& facts, path_set candidates) {
  if (candidates.size() == 1)
    for (const path_kind only : every_path_kind)
      if (candidates.contains(only)) return only;
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
/// naming the number, for one that is not finite, is negative, or is zero where it divides. Thread-safe.
template <class Exec>
void use_profile(const Exec& exec, const machine_profile& profile) {
  detail::require_usable(profile);
  detail::profile_holder<Exec>::set(exec, {profile, "set by ferry::use_profile"});
}

}  // namespace ferry
