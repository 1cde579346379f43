#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/event.hpp>

#include <string>

namespace ferry::host {

struct event_functions {
  /// A host execution space's kernels have ended when its instance's fence returns, so there is no event to
  /// keep.
  template <HostExecutionSpace Exec>
  static event_handle record(const Exec& exec) {
    exec.fence("ferry::record::host");
    return nullptr;
  }
  template <HostExecutionSpace Exec>
  static void wait_for(const Exec&, event& before) {
    before.wait();
  }
  template <HostExecutionSpace Exec>
  static void fence(const Exec& exec, const std::string& label) {
    exec.fence(label);
  }
};

}  // namespace ferry::host
