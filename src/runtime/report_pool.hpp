// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A pool of clean index reports for the verbs. A raised report is cleaned when its lease returns.
template <class Backend>
class report_pool {
  /// More reports than a device's queue holds kernels (about a thousand), so a host that runs ahead of the
  /// device makes the pool grow once at most.
  static constexpr std::size_t at_once = 1024;
  struct batch {
    allocation<typename Backend::scratch_space> findings;
    allocation<pinned_space> raised;
    report_writer slots[at_once];
    std::unique_ptr<batch> before;
  };
  struct state {
    free_list<report_writer*> idle;
    std::mutex guard;
    std::unique_ptr<batch> last;  ///< of the batches
  };

 public:
  using lease = std::shared_ptr<report_writer>;

  /// For kernels of `device`; -1 means Kokkos' device.
  explicit report_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>(),
                       int device = -1)
      : nodes_(std::move(nodes)), device_(device) {}

  [[nodiscard]] lease take() {
    report_writer* slot = state_->idle.take();
    for (; slot == nullptr; slot = state_->idle.take()) grow();
    // Made without the lock: if there is no memory for the lease, the slot returns at once. The lease
    // shares the memory, so it may outlive the pool.
    const auto give_back = [owner = state_](report_writer* lent) noexcept {
      try {
        clean(*lent);
        owner->idle.put(std::move(lent));
      } catch (...) {
        // The device failed; those who waited were told. This report is not used again.
      }
    };
    return {slot, give_back, detail::node_allocator<report_writer>(nodes_)};
  }

  /// True if errors were found. Valid once the kernels that write the report have ended.
  static bool is_raised(const report_writer& report) {
    return *static_cast<const volatile unsigned int*>(report.raised) != 0u;
  }

  /// The report. Without errors it needs no access to the device.
  static index_report read(const report_writer& report) {
    index_report findings;
    if (is_raised(report)) Backend::read(&findings, report.findings, sizeof findings);
    return findings;
  }

  /// Resets a report for later kernels.
  static void clean(const report_writer& report) { clean(report, sizeof(index_report)); }
  /// Resets what was found, and not the counts that kernels reset themselves: a graph may run them again.
  static void clean_findings(const report_writer& report) { clean(report, offsetof(index_report, lock)); }

 private:
  static void clean(const report_writer& report, std::size_t bytes) {
    if (!is_raised(report)) return;
    const index_report nothing{};
    Backend::write(report.findings, &nothing, bytes);
    *static_cast<volatile unsigned int*>(report.raised) = 0u;
  }

  /// Adds a batch of reports. All or nothing. Allocates without the lock, because a user's allocation
  /// observer may call verbs.
  [[gnu::cold]] void grow() {
    std::unique_ptr<batch> fresh(new batch);
    fresh->findings = {"reports", at_once * sizeof(index_report), device_};
    fresh->raised = {"reports::raised", at_once * sizeof(unsigned int)};
    {
      const std::vector<index_report> clean(at_once);
      Backend::write(fresh->findings.data(), clean.data(), at_once * sizeof(index_report));
    }
    auto* flags = static_cast<unsigned int*>(fresh->raised.data());
    for (std::size_t i = 0; i < at_once; ++i) {
      flags[i] = 0u;
      fresh->slots[i] = {static_cast<index_report*>(fresh->findings.data()) + i, flags + i};
    }
    state_->idle.expect(at_once);
    report_writer* const slots = fresh->slots;
    {
      const std::lock_guard lock(state_->guard);
      fresh->before = std::move(state_->last);
      state_->last = std::move(fresh);
    }
    for (std::size_t i = 0; i < at_once; ++i) state_->idle.put(slots + i);
  }

  std::shared_ptr<detail::node_pool> nodes_;
  int device_;
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace ferry::detail
