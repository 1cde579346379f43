// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/version.hpp>

#include <map>
#include <mutex>
#include <string>
#include <typeinfo>

namespace ferry::detail {

/// The objects that exist once in a process, by name; see process_wide.
struct process_objects {
  std::mutex guard;
  std::map<std::string, void*> made;
};

/// One object for all libraries of a process, also for those compiled with -fvisibility=hidden. Libraries
/// with different versions of ferry share it and process_objects, so neither may change.
FERRY_SHARED inline process_objects& objects_of_process() {
  // Never destroyed: objects with static storage may allocate after the destruction of any other.
  static process_objects& one = *new process_objects;
  return one;
}

/// The object of a type's name and this version of ferry.
template <class...>
[[gnu::cold]] void* object_of_process(const char* type, void* (*make)()) {
  const std::string name =
      joined({type, ".", FERRY_VERSION_MAJOR, ".", FERRY_VERSION_MINOR, ".", FERRY_VERSION_PATCH});
  process_objects& all = objects_of_process();
  const std::lock_guard lock(all.guard);
  void*& found = all.made[name];
  if (found == nullptr) found = make();
  return found;
}

/// The only T of the process, made at its first use and never destroyed. Libraries with another version of
/// ferry have another one. Thread-safe. Keep the reference, because each call looks the name up.
template <class T>
T& process_wide() {
  void* (*const make)() = []() -> void* { return new T; };
  return *static_cast<T*>(object_of_process(typeid(T).name(), make));
}

}  // namespace ferry::detail
