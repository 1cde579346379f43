// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "block_cache.hpp"

#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ferry::detail {

/// Memory of ended tensors in one space, for later tensors of the same size: on a device an allocation costs
/// more than a gather, and each free waits for all work of the device. A block is handed out after the verbs
/// that used its last tensor have ended; it keeps their events, and nobody waits for them. Idle blocks return
/// to the system by ferry::trim, when memory or the budget of the space is short, and above the limit that
/// the backend sets. Thread-safe.
template <MemorySpace Space>
class tensor_pool {
 public:
  /// Most idle blocks of an account.
  static constexpr std::size_t max_blocks = 256;
  /// A tensor above this part of the limit is a table, which is made once.
  static constexpr std::size_t largest_part = 4;

  tensor_pool() = default;
  tensor_pool(const tensor_pool&) = delete;
  tensor_pool& operator=(const tensor_pool&) = delete;
  /// Waits for the work that uses idle blocks. Tensors that live longer free their memory themselves.
  ~tensor_pool() {
    for (const auto& [account, shelf] : shelves_)
      if (shelf != nullptr) shelf->close();
  }

  /// Memory for a tensor on `device`; -1 means Kokkos' device. Throws as the constructor of an allocation.
  [[nodiscard]] std::shared_ptr<allocation<Space>> allocate(std::string label, std::size_t bytes,
                                                            int device) {
    device = device_of_tensor(label, device);
    const std::string account = account_of<Space>(device);
    const std::shared_ptr<block_shelf> shelf = shelf_of(account, device);
    const bool pooled = bytes != 0 && bytes <= shelf->max_bytes() / largest_part;
    if (pooled && is_within_budget(account))
      if (auto block = shelf->take(bytes, bytes, nullptr, ~std::size_t{0}, device)) {
        shelf->forget();
        auto& memory = static_cast<block_of<Space>&>(*block).memory;
        memory.relabel(std::move(label));
        memory.report_progress();
        return std::make_shared<allocation<Space>>(std::move(memory));
      }
    auto fresh = std::make_shared<allocation<Space>>(std::move(label), bytes, device);
    if (pooled) fresh->set_pool(shelf, device);
    return fresh;
  }

  /// Takes the memory of a tensor that ends, with the uses of the tensor. Memory that others own too, or that
  /// has no pool, is left to its last owner to free.
  static void end(std::shared_ptr<allocation<Space>> memory, access_tracker& uses) noexcept {
    if (memory.use_count() != 1) return;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last use of an owner that has ended
    if (memory->pool() == nullptr || uses.has_untracked_uses()) return;
    std::unique_ptr<block_of<Space>> block;
    try {
      const std::shared_ptr<block_shelf> shelf = memory->pool();
      block = std::make_unique<block_of<Space>>(std::move(*memory));
      block->device = block->memory.pool_device();
      block->append(uses);
      block->memory.relabel(idle_label());
      shelf->expect();
      shelf->put(std::move(block));
    } catch (...) {  // no memory for the entry: the block is freed after its uses
      uses.wait_ignoring_errors();
    }
  }

  /// Changes the bytes that may lie idle in the space, in device_space those of one device. The result is the
  /// limit before.
  std::size_t limit(int device, std::size_t bytes) {
    device = device_of_tensor("limit", device);
    const auto shelf = shelf_of(account_of<Space>(device), device);
    const std::size_t before = shelf->max_bytes();
    shelf->limit(max_blocks, bytes);
    return before;
  }

  [[nodiscard]] static std::string idle_label() { return "pool::" + std::string(Space::name); }

 private:
  /// A job in a container or a batch system has less memory than its machine.
  static std::size_t limit_of([[maybe_unused]] int device) {
    if constexpr (requires { device_backend<Space>::idle_limit(Space{}, device); }) {
      if (without("tensor_pool")) return 0;
      const std::size_t most = device_backend<Space>::idle_limit(Space{}, device);
      const std::int64_t available = Space::is_host_accessible ? available_bytes() : -1;
      return available < 0 ? most : std::min(most, static_cast<std::size_t>(available) / 16);
    } else {
      return 0;
    }
  }

  static int device_of_tensor(const std::string& label, int device) {
    static_cast<void>(device_of_memory<Space>("ferry::" + label, device));  // throws if there is none such
    if constexpr (has_devices<Space>())
      if (device < 0) device = device_backend<Space>::default_device();
    return device;
  }

  std::shared_ptr<block_shelf> shelf_of(const std::string& account, int device) {
    const std::lock_guard lock(guard_);
    std::shared_ptr<block_shelf>& known = shelves_[account];
    if (known != nullptr) return known;
    auto shelf = std::make_shared<block_shelf>();
    shelf->limit(max_blocks, limit_of(device));
    add_idle_memory(account, shelf);
    return known = std::move(shelf);
  }

  std::mutex guard_;
  std::map<std::string, std::shared_ptr<block_shelf>> shelves_;  ///< by account
};

}  // namespace ferry::detail
