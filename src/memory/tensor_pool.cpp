// SPDX-License-Identifier: Apache-2.0
#include "tensor_pool.hpp"

#include "../../backends/enabled.hpp"

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <utility>

namespace ferry::detail {

template <MemorySpace Space>
std::shared_ptr<allocation<Space>> pooled_memory<Space>::allocate(std::string label, std::size_t bytes,
                                                                  int device) {
  // A child has no device, and its parent's threads may have had the locks. Without Kokkos the allocation
  // throws.
  if (process_identity::get().has_lost_kokkos() || !Kokkos::is_initialized())
    return std::make_shared<allocation<Space>>(std::move(label), bytes, device);
  return until_finalize<tensor_pool<Space>>()->allocate(std::move(label), bytes, device);
}

template <MemorySpace Space>
void pooled_memory<Space>::end(std::shared_ptr<allocation<Space>> memory, access_tracker& uses) noexcept {
  if (!process_identity::get().has_lost_kokkos()) tensor_pool<Space>::end(std::move(memory), uses);
}

template <MemorySpace Space>
std::size_t pooled_memory<Space>::limit(int device, std::size_t bytes) {
  return until_finalize<tensor_pool<Space>>()->limit(device, bytes);
}

template struct pooled_memory<device_space>;
template struct pooled_memory<pinned_space>;
template struct pooled_memory<mapped_space>;

template class allocation<device_space>;
template class allocation<pinned_space>;
template class allocation<mapped_space>;
template class allocation<pageable_space>;

}  // namespace ferry::detail
