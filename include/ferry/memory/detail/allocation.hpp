// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/allocation_progress.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::detail {

class access_tracker;
class block_shelf;

/// Owning, move-only block of exactly the requested bytes in one memory space. Counted in memory_statistics,
/// reported to allocation_progress and to Kokkos Tools. Throws budget_exceeded, and bad_alloc if the
/// memory is not available even after the pools freed their idle blocks. Both name the space, the label, the
/// size and the bytes held.
template <MemorySpace Space>
class allocation {
 public:
  /// Takes the memory over from an owner that lets it go, or returns false.
  using keeper = bool (*)(void* owner, allocation& memory) noexcept;

  allocation() = default;

  /// On `device`, or on the host near it; -1 means Kokkos' device. Throws invalid_argument for a device that
  /// there is none of. Delegates, so the destructor runs if the rest throws.
  [[gnu::cold]] allocation(std::string label, std::size_t bytes, int device = -1);

  allocation(allocation&& source) noexcept = default;
  allocation& operator=(allocation&& source) noexcept;
  ~allocation() { release(); }

  /// Null and 0 for one without memory, or whose memory was moved.
  /// @{
  [[nodiscard]] void* data() const noexcept { return charge_ ? block_.data : nullptr; }
  [[nodiscard]] std::size_t bytes() const noexcept { return charge_ ? block_.bytes : 0; }
  /// @}
  /// The device that has the memory; -1 for host memory.
  [[nodiscard]] int device() const noexcept { return device_; }

  /// Other processes may use the memory from here on: before it is freed, `keep` is asked. The caller locks.
  void keep_with(keeper keep, void* owner) noexcept {
    keep_ = keep;
    keeper_owner_ = owner;
    pool_ = nullptr;
  }

  /// The pool that takes the memory when its tensor ends, null for none, and the device that it is for: host
  /// memory is near one.
  /// @{
  void set_pool(std::shared_ptr<block_shelf> pool, int device) noexcept {
    pool_ = std::move(pool);
    pool_device_ = device;
  }
  [[nodiscard]] int pool_device() const noexcept { return pool_device_; }
  [[nodiscard]] const std::shared_ptr<block_shelf>& pool() const noexcept { return pool_; }
  /// @}

  /// Passes the memory to another owner: accounts and tools have it under that label from here on. If it
  /// throws, nothing has changed.
  void relabel(std::string label);
  /// Reports to observers that the memory is there.
  void report_progress() const { allocation_progress::report({Space::name, label_, bytes(), bytes()}); }

  /// How the memory was obtained: the calls, and the fallback if one was taken.
  [[nodiscard]] std::string describe() const;

 private:
  [[gnu::cold]] memory_block obtain(std::size_t bytes, int device);
  [[gnu::cold]] void release() noexcept;

  std::string label_;
  detail::memory_charge charge_;
  memory_block block_;
  int device_ = -1;
  keeper keep_ = nullptr;
  void* keeper_owner_ = nullptr;
  std::shared_ptr<block_shelf> pool_;
  int pool_device_ = -1;
  process_mark process_;
};

template <MemorySpace Space>
allocation<Space>::allocation(std::string label, std::size_t bytes, int device) : allocation() {
  static_assert(
      requires { sizeof(device_backend<Space>); },
      "ferry: no backend provides memory here; include <ferry/ferry.hpp>.");
  label_ = "ferry::" + std::move(label);
  device_ = detail::device_of_memory<Space>(label_, device);
  if (bytes == 0) return;
  charge_ = detail::memory_charge(detail::account_of<Space>(device_), label_, bytes);
  block_ = obtain(bytes, lies_on_device<Space>() ? device_ : device);
  detail::report_allocation(Space::name, label_, block_.data, block_.bytes);
  charge_.confirm();
  report_progress();
}

template <MemorySpace Space>
allocation<Space>& allocation<Space>::operator=(allocation&& source) noexcept {
  if (this != &source) {
    std::destroy_at(this);
    std::construct_at(this, std::move(source));
  }
  return *this;
}

template <MemorySpace Space>
void allocation<Space>::relabel(std::string label) {
  label.insert(0, "ferry::");
  charge_.move_to(label);
  detail::report_deallocation(Space::name, label_, block_.data, block_.bytes);
  detail::report_allocation(Space::name, label, block_.data, block_.bytes);
  label_ = std::move(label);
}

template <MemorySpace Space>
std::string allocation<Space>::describe() const {
  return joined(Space::name, ": ", device_backend<Space>::describe(Space{}, block_));
}

template <MemorySpace Space>
memory_block allocation<Space>::obtain(std::size_t bytes, int device) {
  for (;;) {
    const std::size_t freed_before = charge_.freed_bytes();
    try {
      if constexpr (requires { device_backend<Space>::allocate(Space{}, bytes, label_, device); })
        return device_backend<Space>::allocate(Space{}, bytes, label_, device);
      else
        return device_backend<Space>::allocate(Space{}, bytes, label_);
    } catch (const bad_alloc& failure) {
      if (!charge_.make_room(freed_before)) throw bad_alloc(joined(failure.what(), "; ", charge_.holdings()));
    }
  }
}

template <MemorySpace Space>
void allocation<Space>::release() noexcept {
  if (data() == nullptr) return;
  if (process_identity::get().has_lost_kokkos() && !process_.is_here()) {
    // A thread of the parent may have had the accounts' locks at the fork, and the device is the parent's.
    process_identity::get().abandon(new (std::nothrow) allocation(std::move(*this)));
    return;
  }
  if (keep_ != nullptr && std::exchange(keep_, nullptr)(keeper_owner_, *this)) return;
  detail::report_deallocation(Space::name, label_, block_.data, block_.bytes);
  // Others may get the addresses at once, and the budget only after the memory is free.
  device_backend<Space>::deallocate(Space{}, block_);
  charge_ = {};
  block_ = {};
}

// The library holds those of ferry's spaces; a space of a user's compiles its own.
extern template class allocation<device_space>;
extern template class allocation<pinned_space>;
extern template class allocation<mapped_space>;
extern template class allocation<pageable_space>;

/// The memory of tensors, from the pool of its space while Kokkos runs. The library has those of ferry's
/// spaces.
template <MemorySpace Space>
struct pooled_memory {
  /// Throws as the constructor of an allocation.
  [[nodiscard]] static std::shared_ptr<allocation<Space>> allocate(std::string label, std::size_t bytes,
                                                                   int device);
  /// The tensor of the memory ends. The pool keeps the memory until the `uses` have ended, at least.
  static void end(std::shared_ptr<allocation<Space>> memory, access_tracker& uses) noexcept;
  /// Changes the bytes that may lie idle on a device, for tests. The result is the limit before.
  static std::size_t limit(int device, std::size_t bytes);
};
extern template struct pooled_memory<device_space>;
extern template struct pooled_memory<pinned_space>;
extern template struct pooled_memory<mapped_space>;

/// Not ordinary memory, and not spaces of users.
template <MemorySpace Space>
inline constexpr bool has_tensor_pool =
    std::is_same_v<Space, device_space> || std::is_same_v<Space, pinned_space> ||
    std::is_same_v<Space, mapped_space>;

}  // namespace ferry::detail
