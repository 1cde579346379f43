// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/process_identity.hpp>
#include <ferry/memory/detail/until_finalize.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Something with threads, instances and memory that may not outlive Kokkos.
class closable {
 public:
  closable() = default;
  closable(const closable&) = delete;
  closable& operator=(const closable&) = delete;
  virtual ~closable() = default;
  virtual void close() noexcept = 0;

  /// False in a child process, which has none of the threads.
  [[nodiscard]] bool in_own_process() const { return process_.is_here(); }

 private:
  process_mark process_;
};

/// The prefetchers of a backend. Kokkos::finalize closes those that still live, before the engine of the
/// backend, which they made before they were added. Thread-safe.
template <class Backend>
class living_prefetchers {
 public:
  living_prefetchers() = default;
  living_prefetchers(const living_prefetchers&) = delete;
  living_prefetchers& operator=(const living_prefetchers&) = delete;
  ~living_prefetchers() {
    for (const auto& each : list_)
      if (const auto alive = each.lock()) alive->close();
  }
  void add(const std::shared_ptr<late<closable, Backend>>& made) {
    const std::lock_guard lock(guard_);
    std::erase_if(list_, [](const auto& each) { return each.expired(); });
    list_.push_back(made);
  }

 private:
  std::mutex guard_;
  std::vector<std::weak_ptr<late<closable, Backend>>> list_;
};

/// Owns a prefetcher's inside. In a child process it leaks it: the threads are not there to be joined, and
/// they may have held its locks.
template <class Owned, class Backend>
class closing {
 public:
  explicit closing(std::shared_ptr<Owned> owned) : owned_(std::move(owned)) {
    until_finalize<living_prefetchers<Backend>>()->add(owned_);
  }
  closing(closing&&) noexcept = default;
  closing& operator=(closing&& other) noexcept {
    std::swap(owned_, other.owned_);
    return *this;
  }
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;
  ~closing() {
    if (owned_ == nullptr) return;
    if (owned_->in_own_process())
      owned_->close();
    else
      process_identity::get().abandon(new std::shared_ptr<Owned>(std::move(owned_)));
  }
  [[nodiscard]] Owned* operator->() const { return owned_.get(); }

 private:
  std::shared_ptr<Owned> owned_;
};

}  // namespace ferry::detail
