// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/backend.hpp>

namespace ferry::host {

/// Facts about memory for other libraries.
struct interop_functions {
  static memory_place place_of(const void*) { return {memory_kind::host, 0}; }
  /// The codes of DLPack for this backend's memory.
  static constexpr dlpack_codes dlpack_devices() { return {1, 1, 1}; }
  /// Host instances have no queue.
  template <class Exec>
  static void* native_queue(const Exec&) {
    return nullptr;
  }
};

}  // namespace ferry::host
