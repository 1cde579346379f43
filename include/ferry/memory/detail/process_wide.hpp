// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

namespace ferry::detail {

/// The object of a type's name and this version of ferry, the same for all libraries of a process: those that
/// are compiled with -fvisibility=hidden, and those that were opened with RTLD_LOCAL. `make` makes the first
/// one. Its library must stay in the process, because others use the object.
[[gnu::cold]] void* object_of_process(const char* type, void* (*make)());

/// The only T of the process, made at its first use and never destroyed. Libraries with another version of
/// ferry have another one. Thread-safe. Keep the reference, because each call looks the name up.
template <class T>
T& process_wide() {
  void* (*const make)() = []() -> void* { return new T; };
  return *static_cast<T*>(object_of_process(typeid(T).name(), make));
}

/// A pointer for each thread, where the first library that asks keeps it.
template <class T>
struct thread_pointer {
  T*& (*of_this_thread)() = []() -> T*& {
    thread_local T* pointer = nullptr;
    return pointer;
  };
};

/// The calling thread's pointer to a T, one for all libraries of the process; null at first.
template <class T>
T*& thread_wide() {
  static T*& (*const of_this_thread)() = process_wide<thread_pointer<T>>().of_this_thread;
  return of_this_thread();
}

}  // namespace ferry::detail
