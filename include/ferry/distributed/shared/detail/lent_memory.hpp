// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/shared/detail/memory_lease.hpp>
#include <ferry/distributed/shared/detail/shared_record.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/device_account.hpp>
#include <ferry/memory/detail/idle_memory.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <Kokkos_Core.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The allocations of a space that other processes may use. Where the owner of one lets it go while somebody
/// uses it, it is kept here, and freed when nobody does: looked for at each share, trim and shortage of
/// memory, and at Kokkos::finalize. What is used even then is left to the end of the process, as a device
/// must not free what another process reads. Thread-safe. Never destroyed, because tensors may end late.
template <MemorySpace Space>
class lent_memory {
 public:
  using backend = device_backend<Space>;

  static lent_memory& get() {
    static lent_memory& one = process_wide<lent_memory>();
    return one;
  }

  /// Lets other processes use an allocation; the same loan each time. Throws device_error, bad_alloc.
  memory_loan lend(allocation<Space>& memory) {
    collect(~std::size_t{0});
    const std::lock_guard lock(guard_);
    begin();
    for (const auto& each : entries_)
      if (each != nullptr && each->data == memory.data() && each->kept.data() == nullptr) return each->loan;
    add_pool(memory.device());
    const auto free = std::find(entries_.begin(), entries_.end(), nullptr);
    const auto place = static_cast<std::size_t>(free - entries_.begin());
    if (free == entries_.end()) entries_.emplace_back();
    auto made = std::make_unique<entry>();
    made->data = memory.data();
    made->home = memory.device();
    made->loan.exported = backend::export_memory(memory.data(), memory.device());
    made->loan.device = backend::uuid_of(memory.device());
    made->loan.bytes = memory.bytes();
    made->loan.lease = file_->begin(static_cast<std::int64_t>(place));
    memory.keep_by(&keep, made.get());
    entries_[place] = std::move(made);
    return entries_[place]->loan;
  }

  /// The memory of a lease of this process, which the caller holds, and its device; null where it is another
  /// one's.
  [[nodiscard]] void* find(const lease_name& lease, int& device) {
    const std::lock_guard lock(guard_);
    if (owner_ != ::getpid() || lease.process != owner_) return nullptr;
    for (const auto& each : entries_)
      if (each != nullptr && each->loan.lease.file == lease.file && each->loan.lease.number == lease.number) {
        device = each->home;
        return each->data;
      }
    return nullptr;
  }

  /// Frees kept allocations that nobody uses, up to about `enough` bytes. -1 means all devices.
  std::size_t collect(std::size_t enough, int device = -1) {
    std::vector<std::unique_ptr<entry>> ended;  // destroyed after the lock is released
    std::size_t freed = 0;
    const std::lock_guard lock(guard_);
    if (owner_ != ::getpid()) return 0;
    ended.reserve(entries_.size());
    for (auto& each : entries_) {
      if (freed >= enough || !is_kept(each.get(), device) || !file_->end(each->loan.lease.place)) continue;
      freed += each->kept.bytes();
      ended.push_back(std::move(each));
    }
    return freed;
  }

 private:
  struct entry {
    memory_loan loan;
    void* data = nullptr;
    int home = 0;            ///< its device
    allocation<Space> kept;  ///< once its owner has let it go
  };

  /// The kept allocations of a device that nobody uses, as a pool of idle memory.
  class idle_loans final : public idle_memory {
   public:
    explicit idle_loans(int device) : device_(device) {}
    [[nodiscard]] int device() const noexcept { return device_; }
    [[nodiscard]] std::size_t idle_bytes() const override { return get().unused_bytes(device_); }
    std::size_t trim(std::size_t enough, in_flight) override { return get().collect(enough, device_); }
    void close() noexcept override {}

   private:
    int device_;
  };

  static bool is_kept(const entry* of, int device) noexcept {
    return of != nullptr && of->kept.data() != nullptr && (device == -1 || of->kept.device() == device);
  }

  [[nodiscard]] std::size_t unused_bytes(int device) {
    const std::lock_guard lock(guard_);
    std::size_t bytes = 0;
    if (owner_ != ::getpid()) return 0;
    for (const auto& each : entries_)
      if (is_kept(each.get(), device) && !file_->is_held(each->loan.lease.place)) bytes += each->kept.bytes();
    return bytes;
  }

  /// allocation::keeper. A child of fork() has copies of its parent's allocations, and must not end their
  /// leases.
  static bool keep(void* of, allocation<Space>& from) noexcept {
    lent_memory& home = get();
    const std::lock_guard lock(home.guard_);
    auto* const one = static_cast<entry*>(of);
    if (one->loan.lease.process != ::getpid()) return false;
    const auto place = static_cast<std::size_t>(one->loan.lease.place);
    if (home.file_->end(one->loan.lease.place)) {
      home.entries_[place].reset();
      return false;
    }
    one->kept = std::move(from);
    return true;
  }

  /// In a child of fork() everything begins anew.
  void begin() {
    if (!hooked_ && Kokkos::is_initialized()) {
      call_at_finalize([] { get().collect(~std::size_t{0}); });
      hooked_ = true;
    }
    if (owner_ == ::getpid()) return;
    for (auto& each : entries_) static_cast<void>(each.release());  // the parent's
    entries_.clear();
    file_.emplace();
    owner_ = ::getpid();
  }
  void add_pool(int device) {
    for (const auto& each : pools_)
      if (each->device() == device) return;
    auto made = std::make_shared<idle_loans>(device);
    add_idle_memory(account_of<Space>(device), made);
    pools_.push_back(std::move(made));
  }

  std::mutex guard_;
  pid_t owner_ = -1;
  bool hooked_ = false;
  std::optional<lease_file> file_;
  std::vector<std::unique_ptr<entry>> entries_;  ///< by place
  std::vector<std::shared_ptr<idle_loans>> pools_;
};

}  // namespace ferry::detail
