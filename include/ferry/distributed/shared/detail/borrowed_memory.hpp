// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/shared/detail/lent_memory.hpp>
#include <ferry/distributed/shared/detail/memory_lease.hpp>
#include <ferry/distributed/shared/detail/shared_record.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The allocations of other processes that this one uses. A device opens each once, however many tensors lie
/// in it. Thread-safe. Never destroyed, because tensors may end late.
template <MemorySpace Space>
class borrowed_memory {
 public:
  using backend = device_backend<Space>;

  static borrowed_memory& get() {
    static borrowed_memory& one = process_wide<borrowed_memory>();
    return one;
  }

  /// The first byte of an allocation, for work of a device, while the pointer lives. Throws invalid_argument
  /// where the memory or its process has ended, and device_error; the caller names the tensor.
  std::shared_ptr<std::byte> open(const memory_loan& of, int device) {
    const auto user = std::make_shared<use>();
    const std::lock_guard lock(guard_);
    entry* found = nullptr;
    for (entry& each : entries_)
      if (each.is(of, device)) found = &each;
    if (found == nullptr) {
      found = &entries_.emplace_back();
      try {
        begin(*found, of, device);
      } catch (...) {
        entries_.pop_back();
        throw;
      }
    }
    ++found->count;
    user->of = found;
    return {user, found->data};
  }

  /// The loan of the allocation that has an address; false where it is none of these.
  bool find(const void* address, memory_loan& loan, std::size_t& offset) {
    const std::lock_guard lock(guard_);
    for (const entry& each : entries_) {
      const auto from = reinterpret_cast<std::uintptr_t>(each.data);
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      if (at < from || at - from >= each.loan.bytes) continue;
      loan = each.loan;
      offset = at - from;
      return true;
    }
    return false;
  }

 private:
  struct entry {
    memory_loan loan;
    int device = -1;
    process_mark user;
    std::shared_ptr<held_leases> leases;
    std::byte* data = nullptr;
    void* opened = nullptr;  ///< null for memory of this process
    std::size_t count = 0;

    [[nodiscard]] bool is(const memory_loan& of, int on) const {
      return loan.lease.file == of.lease.file && loan.lease.number == of.lease.number && device == on &&
             user.is_here();
    }
  };

  struct use {
    use() = default;
    use(const use&) = delete;
    use& operator=(const use&) = delete;
    ~use() {
      if (of != nullptr) get().close(of);
    }
    entry* of = nullptr;
  };

  void begin(entry& made, const memory_loan& of, int device) {
    made.leases = leases_of(of.lease);
    made.leases->hold(of.lease);
    try {
      int home = device;
      made.data = static_cast<std::byte*>(lent_memory<Space>::get().find(of.lease, home));
      if (home != device && !backend::devices_reach(device, home))
        throw device_error("device " + std::to_string(device) + " does not reach the memory of device " +
                           std::to_string(home));
      if (made.data == nullptr) {
        made.opened = backend::import_memory(of.exported.token, of.device, device);
        made.data = static_cast<std::byte*>(made.opened) + of.exported.offset;
      }
    } catch (...) {
      made.leases->drop(of.lease);
      throw;
    }
    made.loan = of;
    made.device = device;
    made.user = process_mark();
  }
  std::shared_ptr<held_leases> leases_of(const lease_name& of) {
    std::erase_if(leases_, [](const auto& each) { return each.expired(); });
    for (const auto& each : leases_)
      if (auto alive = each.lock(); alive != nullptr && alive->serves(of)) return alive;
    auto made = std::make_shared<held_leases>(of);
    leases_.push_back(made);
    return made;
  }

  /// The lease ends after the memory is closed. A child of fork() can't close what its parent has opened.
  void close(entry* of) noexcept {
    const std::lock_guard lock(guard_);
    if (--of->count != 0) return;
    if (of->opened != nullptr && of->user.is_here()) backend::end_import(of->opened, of->device);
    of->leases->drop(of->loan.lease);
    for (auto at = entries_.begin(); at != entries_.end(); ++at)
      if (&*at == of) {
        entries_.erase(at);
        return;
      }
  }

  std::mutex guard_;
  std::list<entry> entries_;
  std::vector<std::weak_ptr<held_leases>> leases_;
};

}  // namespace ferry::detail
