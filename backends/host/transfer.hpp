// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "detail/vector_instructions.hpp"

#include <ferry/concepts/execution_space.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::host {

/// Copies one block of bytes per iteration.
struct copy_block {
  static constexpr std::size_t bytes = std::size_t{1} << 18;

  char* target;
  const char* source;
  std::size_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::size_t begin = static_cast<std::size_t>(i) * bytes;
    std::memcpy(target + begin, source + begin, size - begin < bytes ? size - begin : bytes);
  }
};

/// Copies by stores that neither read the destination's lines nor keep them in the caches: a third less
/// traffic for memory that is not read soon. Ordinary copies if the processor has no such stores.
inline void copy_past_caches(void* target, const void* source, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t line = 64, unit = 16;
  if (bytes >= 4 * line) {
    auto* next_target = static_cast<char*>(target);
    const auto* next_source = static_cast<const char*>(source);
    const std::size_t before = (line - reinterpret_cast<std::uintptr_t>(next_target) % line) % line;
    std::memcpy(next_target, next_source, before);
    next_target += before;
    next_source += before;
    bytes -= before;
    for (; bytes >= line; next_target += line, next_source += line, bytes -= line) {
      two_words words[line / unit];
      for (std::size_t u = 0; u < line / unit; ++u) std::memcpy(&words[u], next_source + u * unit, unit);
      for (std::size_t u = 0; u < line / unit; ++u) stream(next_target + u * unit, words[u]);
    }
    end_streams();
    target = next_target;
    source = next_source;
  }
#endif
  std::memcpy(target, source, bytes);
}

struct transfer_functions {
  static void copy_past_caches(void* target, const void* source, std::size_t bytes) {
    host::copy_past_caches(target, source, bytes);
  }
  /// In the calling thread: several threads may share an instance.
  template <HostExecutionSpace Exec>
  static void copy_pitched_async(const Exec&, const char*, const pitched_block& block) {
    for (std::size_t s = 0; s < block.slices; ++s)
      for (std::size_t r = 0; r < block.rows; ++r)
        std::memcpy(static_cast<char*>(block.target) + s * block.target_slice + r * block.target_pitch,
                    static_cast<const char*>(block.source) + s * block.source_slice + r * block.source_pitch,
                    block.row_bytes);
  }
  /// The number of transfers that copy_pitched_async needs; 0 if it can't copy the block.
  template <HostExecutionSpace Exec>
  static std::size_t pitched_transfers(const Exec&, const pitched_block&) {
    return 1;
  }
  template <HostExecutionSpace Exec>
  static void copy_async(const Exec& exec, const char* label, void* target, const void* source,
                         std::size_t bytes) {
    if (bytes <= copy_block::bytes) {
      std::memcpy(target, source, bytes);
      return;
    }
    const auto blocks = static_cast<std::int64_t>((bytes + copy_block::bytes - 1) / copy_block::bytes);
    using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(label, detail::host_range<range>(exec, blocks),
                         copy_block{static_cast<char*>(target), static_cast<const char*>(source), bytes});
  }
  template <HostExecutionSpace Exec>
  static void copy_from_device_async(const Exec& exec, const char* label, void* target, const void* source,
                                     int, std::size_t bytes) {
    copy_async(exec, label, target, source, bytes);
  }
  template <HostExecutionSpace Exec>
  static void copy_batch_async(const Exec& exec, const char* label, void* const* target,
                               const void* const* source, const std::size_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) copy_async(exec, label, target[i], source[i], bytes[i]);
  }
  static void read(void* host, const void* device, std::size_t bytes) {
    if (bytes != 0) std::memcpy(host, device, bytes);  // for zero bytes the pointers may be null
  }
  static void write(void* device, const void* host, std::size_t bytes) {
    if (bytes != 0) std::memcpy(device, host, bytes);
  }
};

}  // namespace ferry::host
