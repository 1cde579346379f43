// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A pool of clean index reports for the verbs. A raised report is cleaned when its lease returns.
template <class Backend>
class report_pool {
  struct state {
    std::mutex guard;
    std::vector<report_writer*> free;  // has room for all reports
    std::vector<std::unique_ptr<report_writer[]>> slots;
    std::vector<std::pair<allocation<typename Backend::scratch_space>, allocation<pinned_space>>> memory;
  };

 public:
  using lease = std::shared_ptr<report_writer>;

  /// For kernels of `device`; -1 means Kokkos' device.
  explicit report_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>(),
                       int device = -1)
      : nodes_(std::move(nodes)), device_(device) {}

  [[nodiscard]] lease take() {
    report_writer* slot = pop();
    for (; slot == nullptr; slot = pop()) grow();
    // Made without the lock: where there is no memory for the lease, the slot returns at once. The lease
    // shares the memory, so it may outlive the pool.
    const auto give_back = [owner = state_](report_writer* lent) noexcept {
      try {
        clean(*lent);
        const std::lock_guard lock(owner->guard);
        owner->free.push_back(lent);
      } catch (...) {
        // The device failed; those who waited were told. This report is not used again.
      }
    };
    return {slot, give_back, detail::node_allocator<report_writer>(nodes_)};
  }

  /// Whether errors were found. Valid once the kernels that write the report have ended.
  static bool is_raised(const report_writer& report) {
    return *static_cast<const volatile unsigned int*>(report.raised) != 0u;
  }

  /// The report. Without errors it needs no access to the device.
  static index_report read(const report_writer& report) {
    index_report found;
    if (is_raised(report)) Backend::read(&found, report.findings, sizeof found);
    return found;
  }

  /// Resets a report for later kernels.
  static void clean(const report_writer& report) {
    if (!is_raised(report)) return;
    const index_report nothing{};
    Backend::write(report.findings, &nothing, sizeof nothing);
    *static_cast<volatile unsigned int*>(report.raised) = 0u;
  }

 private:
  /// A free report, null for none.
  report_writer* pop() {
    const std::lock_guard lock(state_->guard);
    if (state_->free.empty()) return nullptr;
    report_writer* const slot = state_->free.back();
    state_->free.pop_back();
    return slot;
  }

  /// Adds more reports than a device's queue holds kernels (about a thousand), so a host that runs ahead of
  /// the device makes the pool grow once at most. All or nothing. Allocates without the lock, because a
  /// user's allocation observer may call verbs.
  void grow() {
    constexpr std::size_t batch = 1024;
    allocation<typename Backend::scratch_space> findings("reports", batch * sizeof(index_report), device_);
    allocation<pinned_space> raised("reports::raised", batch * sizeof(unsigned int));
    const std::vector<index_report> clean(batch);
    auto slots = std::make_unique<report_writer[]>(batch);
    Backend::write(findings.data(), clean.data(), batch * sizeof(index_report));
    auto* flags = static_cast<unsigned int*>(raised.data());
    std::fill_n(flags, batch, 0u);
    for (std::size_t i = 0; i < batch; ++i)
      slots[i] = {static_cast<index_report*>(findings.data()) + i, flags + i};
    const std::lock_guard lock(state_->guard);
    state_->free.reserve((state_->slots.size() + 1) * batch);
    state_->slots.reserve(state_->slots.size() + 1);
    state_->memory.reserve(state_->memory.size() + 1);
    for (std::size_t i = 0; i < batch; ++i) state_->free.push_back(&slots[i]);
    state_->slots.push_back(std::move(slots));
    state_->memory.emplace_back(std::move(findings), std::move(raised));
  }

  std::shared_ptr<detail::node_pool> nodes_;
  int device_;
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace ferry::detail
