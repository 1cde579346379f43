// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/current_profile.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>

#include <Kokkos_Core.hpp>

#include <map>
#include <mutex>
#include <utility>

namespace ferry::detail {

template <ExecutionSpace Exec>
machine_identity identity_of(const Exec& exec) {
  using backend = execution_backend<Exec>;
  const typename backend::device_guard guard(exec);
  machine_identity identity;
  auto id = backend::device_identity();
  identity.device = std::move(id.device);
  identity.driver = std::move(id.driver);
  if constexpr (is_host_exec<Exec>)
    identity.threads = std::to_string(exec.concurrency());
  else
    identity.threads = std::to_string(Kokkos::DefaultHostExecutionSpace().concurrency());
  return identity;
}

template <ExecutionSpace Exec>
std::string origin_of_defaults(const Exec& exec) {
  constexpr const char* machine = "defaults (readings of one H200 on PCIe 5 x16 with 16 cores, ";
  if constexpr (is_host_exec<Exec>)
    return machine + ("taken for " + std::to_string(exec.concurrency())) +
           " host threads; not of this machine)";
  else
    return std::string(machine) + "not of this machine)";
}

/// The profile of the file, or the defaults with the reason. An unusable cache file is ignored. A file that
/// FERRY_PROFILE names must be a profile.
template <ExecutionSpace Exec>
known_profile load_profile(const Exec& exec) {
  known_profile result{default_profile(exec), origin_of_defaults(exec) + ": "};
  const std::string path = profile_path(execution_backend<Exec>::name);
  const bool named = named_profile() != nullptr;
  if (path.empty()) {
    result.origin += "neither FERRY_PROFILE nor XDG_CACHE_HOME nor HOME is set";
    return result;
  }
  std::string why;
  bool missing = false;
  const std::string text = read_text(path, why, missing);
  if (missing) {
    result.origin += "there is no " + path + ", which ferry::calibrate would write";
    return result;
  }
  bool unusable = true;
  if (why.empty()) why = from_text(text, identity_of(exec), result.profile, unusable);
  if (why.empty()) {
    result.origin = "read from " + path;
    return result;
  }
  if (named && unusable) throw io_error("ferry: the profile " + path + " (FERRY_PROFILE) " + why);
  result.origin += path + " " + why;
  return result;
}

/// The profiles of an execution space by device.
template <class Exec>
struct process_profiles {
  std::mutex guard;
  std::map<int, std::shared_ptr<const known_profile>> known;
};

template <ExecutionSpace Exec>
std::shared_ptr<const known_profile> profile_holder<Exec>::get(const Exec& exec) {
  require_kokkos("ferry: the profile of the machine");  // has the number of threads
  const auto home = until_finalize<process_profiles<Exec>>();
  const std::lock_guard lock(home->guard);
  auto& known = home->known[execution_backend<Exec>::device_of(exec)];
  if (known == nullptr) known = std::make_shared<const known_profile>(load_profile(exec));
  return known;
}

template <ExecutionSpace Exec>
void profile_holder<Exec>::set(const Exec& exec, known_profile known) {
  const auto home = until_finalize<process_profiles<Exec>>();
  auto entry = std::make_shared<const known_profile>(std::move(known));
  const std::lock_guard lock(home->guard);
  home->known[execution_backend<Exec>::device_of(exec)] = std::move(entry);
}

template <ExecutionSpace Exec>
void profile_holder<Exec>::forget() {
  const auto home = until_finalize<process_profiles<Exec>>();
  const std::lock_guard lock(home->guard);
  home->known.clear();
}

void require_usable(const machine_profile& profile) {
  for (const auto& field : profile_fields)
    if (!is_usable(field, profile.*field.member))
      throw invalid_argument("ferry::use_profile: " + std::string(field.name) + " is " +
                             number_text(profile.*field.member));
}

#define FERRY_PROFILES_OF(EXEC)                         \
  template machine_identity identity_of(const EXEC&);   \
  template std::string origin_of_defaults(const EXEC&); \
  template class profile_holder<EXEC>;
FERRY_FOR_EXECUTION_SPACES(FERRY_PROFILES_OF)
#undef FERRY_PROFILES_OF

}  // namespace ferry::detail
