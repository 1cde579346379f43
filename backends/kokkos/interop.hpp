// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "detail/address_book.hpp"
#include "error.hpp"

#include <ferry/memory/detail/backend.hpp>

namespace ferry::kokkos {

/// Facts about memory for other libraries. `Spaces` has the codes of DLPack, see backends/enabled.hpp.
template <class Spaces>
struct interop_functions {
  /// Memory that ferry did not allocate is the host's for all that Kokkos tells.
  static memory_place place_of(const void* data) {
    if constexpr (Spaces::device_is_host) return {memory_kind::host, 0};
    return {address_book::get().find(data).value_or(memory_kind::host), 0};
  }
  static constexpr dlpack_codes dlpack_devices() { return Spaces::dlpack; }
  template <class Exec>
  static void* native_queue(const Exec&) {
    if constexpr (!Spaces::device_is_host) refuse("ferry", facility::queue);
    return nullptr;
  }
};

}  // namespace ferry::kokkos
