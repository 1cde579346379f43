// SPDX-License-Identifier: Apache-2.0
#include "transfer.hpp"

#include "../enabled.hpp"
#include "detail/address_book.hpp"
#include "detail/side_instances.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstring>
#include <string>

namespace ferry::kokkos {

namespace {

template <class Space>
using bytes_in = Kokkos::View<char*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
template <class Space>
using const_bytes_in = Kokkos::View<const char*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class Target, class Source, class Exec>
void copy_between(const Exec& exec, void* target, const void* source, std::size_t bytes) {
  Kokkos::deep_copy(exec, bytes_in<Target>(static_cast<char*>(target), bytes),
                    const_bytes_in<Source>(static_cast<const char*>(source), bytes));
}

}  // namespace

/// Memory that the backend did not allocate counts as the device's: the runtimes below Kokkos look an address
/// up by themselves.
template <ExecutionSpace Exec>
void copy_bytes(const Exec& exec, void* target, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if constexpr (HostExecutionSpace<Exec>) {
    copy_between<Kokkos::HostSpace, Kokkos::HostSpace>(exec, target, source, bytes);
  } else {
    using device = typename Exec::memory_space;
    const bool to_host = address_book::get().find(target) == memory_kind::host,
               from_host = address_book::get().find(source) == memory_kind::host;
    if (to_host && from_host)
      copy_between<Kokkos::HostSpace, Kokkos::HostSpace>(exec, target, source, bytes);
    else if (to_host)
      copy_between<Kokkos::HostSpace, device>(exec, target, source, bytes);
    else if (from_host)
      copy_between<device, Kokkos::HostSpace>(exec, target, source, bytes);
    else
      copy_between<device, device>(exec, target, source, bytes);
  }
}

void copy_now(void* target, const void* source, std::size_t bytes) {
  if constexpr (spaces_of_kokkos::device_is_host) {
    std::memcpy(target, source, bytes);
  } else {
    const side_instance instance;
    copy_bytes(instance.get(), target, source, bytes);
    static const std::string label = "ferry::copy_now";
    instance.get().fence(label);
  }
}

#define FERRY_COPY_BYTES(EXEC) template void copy_bytes(const EXEC&, void*, const void*, std::size_t);
FERRY_FOR_SPACES_OF_DEVICE(FERRY_COPY_BYTES)
#undef FERRY_COPY_BYTES

}  // namespace ferry::kokkos
