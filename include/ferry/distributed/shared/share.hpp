// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/shared_handle.hpp>
#include <ferry/error.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <typeinfo>

namespace ferry {

/// A handle by which other processes of the machine open a tensor in device memory, see open_shared. Several
/// may open it, one after the other or at once, and may pass the handle on.
///
///   const ferry::shared_handle handle = ferry::share(weights);
///   ::write(pipe, &handle, sizeof handle);
///
/// The memory lives as long as this tensor or any tensor that was opened by the handle, also if a process
/// was killed. A tensor that ends before the others leaves its memory to a list of this process; it counts in
/// memory_statistics until it is freed, by a later share or trim, if memory is short, or by
/// Kokkos::finalize. The process itself must outlive the others' use.
///
/// Waits for the writes in flight that verbs recorded, so who opens the handle reads what they wrote. Nothing
/// orders later accesses of different processes: wait for the tickets, then call a barrier. A tensor made by
/// open_shared can be shared again; that gives a handle of the first process' memory.
///
/// Does not compile for host memory: see shared_tensor. Throws invalid_argument on host backends, whose
/// device_space is host memory, and for adopted memory; device_error if the device can't share.
template <Element T, MemorySpace Space, class Extents>
[[nodiscard]] shared_handle share(const tensor<T, Space, Extents>& memory) {
  detail::require_shared_space<Space>();
  std::array<std::size_t, max_rank> sizes{};
  for (std::size_t i = 0; i < memory.rank(); ++i) sizes[i] = memory.extent(i);
  detail::shared_record record(typeid(T), sizeof(T), Space::name, memory.label(),
                               std::span<const std::size_t>(sizes.data(), memory.rank()));
  if constexpr (!detail::shares_memory<Space>()) {
    detail::refuse_host_memory("ferry::share", record);
  } else {
    if (memory.accesses() != nullptr) memory.accesses()->wait_for_writes();
    if (memory.size() == 0) return shared_handle(record);
    std::size_t offset = 0;
    if (memory.memory() != nullptr)
      record.segment = detail::lend(*memory.memory());
    else if (!detail::segments_of<Space>().find(memory.data(), record.segment, offset))
      throw invalid_argument(
          detail::joined("ferry::share: ", record.describe(),
                         " is memory of other code, whose end ferry does not see; copy it into a tensor"));
    record.offset = offset;
    return shared_handle(record);
  }
}

}  // namespace ferry
