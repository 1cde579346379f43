// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/process_wide.hpp>

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/version.hpp>

#include <map>
#include <mutex>
#include <string>

namespace ferry::detail {

/// The objects that exist once in a process, by name; see process_wide.
struct process_objects {
  std::mutex guard;
  std::map<std::string, void*> made;
};

/// One object for all libraries of a process that contain ferry, also for those compiled with
/// -fvisibility=hidden: inline, because the dynamic linker then unites even those of libraries that do not see
/// each other. Libraries with different versions of ferry share it and process_objects, so neither may change.
FERRY_SHARED inline process_objects& objects_of_process() {
  // Never destroyed: objects with static storage may allocate after the destruction of any other.
  static process_objects& one = *new process_objects;
  return one;
}

void* object_of_process(const char* type, void* (*make)()) {
  const std::string name =
      joined({type, ".", FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH});
  process_objects& all = objects_of_process();
  const std::lock_guard lock(all.guard);
  void*& found = all.made[name];
  if (found == nullptr) found = make();
  return found;
}

}  // namespace ferry::detail
