// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>

#include <memory>
#include <string>

namespace ferry::host {

/// Never constructed: see event_functions::record.
class no_event final : public detail::event {
 public:
  void wait() override {}
  [[nodiscard]] bool ready() override { return true; }
};

struct event_functions {
  using native_event = no_event;

  /// Fences the instance. Its kernels have then ended, so there is no event to keep.
  template <HostExecutionSpace Exec>
  static detail::event_handle record(const Exec& exec, detail::event_pool<no_event>&) {
    static const std::string label = "ferry::record";  // short: verbs end without taking memory
    exec.fence(label);
    return nullptr;
  }
  template <HostExecutionSpace Exec>
  static std::shared_ptr<no_event> take_event(const Exec&, detail::event_pool<no_event>&) {
    return nullptr;
  }
  template <HostExecutionSpace Exec>
  static void wait_for(const Exec&, detail::event& before) {
    before.wait();
  }
  template <HostExecutionSpace Exec>
  static void fence(const Exec& exec, const std::string& label) {
    exec.fence(label);
  }
  template <HostExecutionSpace Exec>
  static constexpr detail::stream_handle stream_of(const Exec&) {
    return nullptr;
  }
  /// All host instances run in the order of the calling threads, so they share an id.
  template <HostExecutionSpace Exec>
  static constexpr detail::instance_id id_of(const Exec&) {
    return 0;
  }
};

}  // namespace ferry::host
