// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ferry::cuda {

/// A device's attributes for memory that it shares with the host, with the names of CUDA's attributes.
struct host_memory_facts {
  bool can_map_host_memory = false;
  bool unified_addressing = false;
  bool host_register_supported = false;
  bool can_use_host_pointer_for_registered_mem = false;
};

/// How to get host memory that the host and all devices reach at one address.
enum class page_locking {
  registered,  ///< own pages, then cudaHostRegister: several times faster, and of exactly the requested size
  allocated,   ///< cudaHostAlloc
  impossible,
};

constexpr page_locking page_locking_for(const host_memory_facts& device) {
  if (!device.can_map_host_memory) return page_locking::impossible;
  if (device.host_register_supported && device.can_use_host_pointer_for_registered_mem)
    return page_locking::registered;
  return device.unified_addressing ? page_locking::allocated : page_locking::impossible;
}

/// Why existing memory can't be locked for a device, as the end of a sentence; null if it can.
constexpr const char* why_not_registered(const host_memory_facts& device) {
  if (!device.can_map_host_memory)
    return "the device can't map host memory (cudaDevAttrCanMapHostMemory is 0)";
  if (!device.host_register_supported)
    return "the device takes no memory that exists already (cudaDevAttrHostRegisterSupported is 0)";
  if (!device.can_use_host_pointer_for_registered_mem)
    return "the device would have it at another address than the host (cudaDevAttrCanUseHostPointerForRegisteredMem is 0)";
  return nullptr;
}

/// Drivers refuse to lock 512 GiB and more at a time. So much memory is locked in pieces that end at the
/// multiples of this power of two; an eighth of the limit. Not const, for tests.
inline std::size_t piece_bytes = std::size_t{1} << 36;
inline bool is_in_pieces(std::size_t bytes) { return bytes / 8 >= piece_bytes; }

/// The part of `bytes` bytes from an address on that lies in one piece. Copies don't go beyond it, because
/// the runtime refuses those that span two pieces.
inline std::size_t within_piece(const void* data, std::size_t bytes) {
  return std::min(bytes, piece_bytes - reinterpret_cast<std::uintptr_t>(data) % piece_bytes);
}
inline bool spans_pieces(const void* data, std::size_t bytes) { return within_piece(data, bytes) != bytes; }

/// unlock(address) for each piece.
template <class Unlock>
void unlock_pieces(void* data, std::size_t bytes, const Unlock& unlock) {
  const bool whole = !is_in_pieces(bytes);
  for (auto* begin = static_cast<std::byte*>(data); bytes != 0;) {
    const std::size_t part = whole ? bytes : within_piece(begin, bytes);
    unlock(begin);
    begin += part;
    bytes -= part;
  }
}
/// lock(address, bytes) for each piece. If it fails, the earlier ones are unlocked, and its status is
/// returned.
template <class Lock, class Unlock>
auto lock_pieces(void* data, std::size_t bytes, const Lock& lock, const Unlock& unlock) {
  using status_type = decltype(lock(data, bytes));
  auto* const first = static_cast<std::byte*>(data);
  for (std::size_t locked = 0; locked < bytes;) {
    const std::size_t part = is_in_pieces(bytes) ? within_piece(first + locked, bytes - locked) : bytes;
    if (const auto status = lock(first + locked, part); status != status_type{}) {
      for (std::size_t begin = 0; begin < locked; begin += within_piece(first + begin, locked - begin))
        unlock(first + begin);
      return status;
    }
    locked += part;
  }
  return status_type{};
}

}  // namespace ferry::cuda
