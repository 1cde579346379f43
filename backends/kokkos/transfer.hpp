// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../host/transfer.hpp"

#include <ferry/concepts/execution_space.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <cstddef>
#include <cstring>

namespace ferry::kokkos {

/// Kokkos::deep_copy of bytes on an instance, compiled for each execution space of the backend.
template <ExecutionSpace Exec>
void copy_bytes(const Exec& exec, void* target, const void* source, std::size_t bytes);
/// A copy on an instance of the backend's, which the calling thread waits for: one without an instance would
/// fence all work of the process.
void copy_now(void* target, const void* source, std::size_t bytes);

struct transfer_functions {
  template <ExecutionSpace Exec>
  static void copy_async(const Exec& exec, const char*, void* target, const void* source, std::size_t bytes) {
    copy_bytes(exec, target, source, bytes);
  }
  template <ExecutionSpace Exec>
  static void copy_from_device_async(const Exec& exec, const char*, void* target, const void* source, int,
                                     std::size_t bytes) {
    copy_bytes(exec, target, source, bytes);
  }
  template <ExecutionSpace Exec>
  static void copy_batch_async(const Exec& exec, const char*, void* const* target, const void* const* source,
                               const std::size_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) copy_bytes(exec, target[i], source[i], bytes[i]);
  }
  template <ExecutionSpace Exec>
  static void copy_pitched_async(const Exec& exec, const char* label, const pitched_block& block) {
    if constexpr (HostExecutionSpace<Exec>)
      host::transfer_functions::copy_pitched_async(exec, label, block);
    else
      copy_bytes(exec, block.target, block.source, block.row_bytes);  // the only row, see below
  }
  /// A device's views of equal distances have no copy to another space: kernels and slots move such rows.
  template <ExecutionSpace Exec>
  static std::size_t pitched_transfers(const Exec&, const pitched_block& block) {
    return HostExecutionSpace<Exec> || block.rows * block.slices == 1 ? 1 : 0;
  }
  static void copy_past_caches(void* target, const void* source, std::size_t bytes) {
    host::copy_past_caches(target, source, bytes);
  }
  static void read(void* host, const void* device, std::size_t bytes) {
    if (bytes != 0) copy_now(host, device, bytes);  // for zero bytes the pointers may be null
  }
  static void write(void* device, const void* host, std::size_t bytes) {
    if (bytes != 0) copy_now(device, host, bytes);
  }
};

}  // namespace ferry::kokkos
