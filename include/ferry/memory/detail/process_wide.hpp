#pragma once

#include <ferry/error.hpp>
#include <ferry/version.hpp>

#include <map>
#include <mutex>
#include <string>
#include <typeinfo>

namespace ferry::detail {

/// What a process has once, by name; see process_wide.
struct process_objects {
  std::mutex guard;
  std::map<std::string, void*> made;
};

/// One for all libraries of a process, also for those that are compiled with -fvisibility=hidden. This and process_objects
/// are what libraries with different versions of ferry share, so neither may change.
FERRY_SHARED inline process_objects& objects_of_process() {
  // Never destroyed: objects with static storage may allocate after any other static has gone.
  static process_objects& one = *new process_objects;
  return one;
}

/// The one T of the process, made at its first use and never destroyed. Libraries with another version of ferry have
/// their own. Thread-safe. Keep the reference: this looks for the name.
template <class T>
T& process_wide() {
  std::string name = typeid(T).name();
  for (const int part : {FERRY_VERSION_MAJOR, FERRY_VERSION_MINOR, FERRY_VERSION_PATCH})
    name.append(1, '.').append(std::to_string(part));
  process_objects& all = objects_of_process();
  const std::lock_guard lock(all.guard);
  void*& found = all.made[name];
  if (found == nullptr) found = new T;
  return *static_cast<T*>(found);
}

}  // namespace ferry::detail
