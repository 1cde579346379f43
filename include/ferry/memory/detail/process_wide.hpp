// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <typeinfo>

namespace ferry::detail {

/// The object of a type's name and this version of ferry. Made by make() if there is none.
[[nodiscard]] void* object_of_process(const char* type, void* (*make)());

/// The only T of the process, for all of its libraries, made at its first use and never destroyed. Libraries
/// with another version of ferry have another one. Thread-safe. Keep the reference, because each call looks
/// the name up.
template <class T>
T& process_wide() {
  void* (*const make)() = []() -> void* { return new T; };
  return *static_cast<T*>(object_of_process(typeid(T).name(), make));
}

}  // namespace ferry::detail
