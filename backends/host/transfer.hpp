#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry::host {

/// Copies one block of bytes per iteration.
struct copy_block {
  static constexpr std::size_t bytes = std::size_t{1} << 18;

  char* to;
  const char* from;
  std::size_t size;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::size_t begin = static_cast<std::size_t>(i) * bytes;
    std::memcpy(to + begin, from + begin, size - begin < bytes ? size - begin : bytes);
  }
};

struct transfer_functions {
  template <HostExecutionSpace Exec>
  static void copy_async(const Exec& exec, const char* label, void* to, const void* from, std::size_t bytes) {
    if (bytes <= copy_block::bytes) {
      std::memcpy(to, from, bytes);
      return;
    }
    const auto blocks = static_cast<std::int64_t>((bytes + copy_block::bytes - 1) / copy_block::bytes);
    using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(label, detail::host_range<range>(exec, blocks),
                         copy_block{static_cast<char*>(to), static_cast<const char*>(from), bytes});
  }
  template <HostExecutionSpace Exec>
  static void copy_batch_async(const Exec& exec, const char* label, void* const* to, const void* const* from,
                               const std::size_t* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) copy_async(exec, label, to[i], from[i], bytes[i]);
  }
  static void read(void* host, const void* device, std::size_t bytes) {
    if (bytes != 0) std::memcpy(host, device, bytes);  // for zero bytes the pointers may be null
  }
  static void write(void* device, const void* host, std::size_t bytes) {
    if (bytes != 0) std::memcpy(device, host, bytes);
  }
};

}  // namespace ferry::host
