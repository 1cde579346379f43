// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ferry::kokkos {

/// A point in the work of an instance: a kernel writes the number of the point into a word that the host
/// reads. A wait is a fence of the instance, so it also covers later work.
class instance_event final : public detail::event {
 public:
  using exec_space = Kokkos::DefaultExecutionSpace;

  instance_event();
  instance_event(const instance_event&) = delete;
  instance_event& operator=(const instance_event&) = delete;
  ~instance_event() override;

  /// Gives the event a word that no kernel in flight writes. Before each record().
  void renew();
  void record(const exec_space& exec);
  void wait() override;
  [[nodiscard]] bool ready() override;
  /// True if the instance is the one whose work has the point.
  [[nodiscard]] bool is_of(const exec_space& exec) {
    const std::lock_guard lock(guard_);
    return exec_.has_value() && *exec_ == exec;
  }

 private:
  friend struct events_of_process;

  std::mutex guard_;
  std::optional<exec_space> exec_;  ///< until the work has ended, so that no other instance gets its id
  volatile std::uint32_t* word_ = nullptr;
  std::uint32_t number_ = 0;  ///< of the point; 0 before the first
};

struct event_functions {
  using native_event = instance_event;

  template <ExecutionSpace Exec>
  static detail::event_handle record(const Exec& exec, detail::event_pool<instance_event>& events) {
    auto point = take_event(exec, events);
    record_at(exec, *point);
    return point;
  }
  template <ExecutionSpace Exec>
  static std::shared_ptr<instance_event> take_event(const Exec&, detail::event_pool<instance_event>& events) {
    auto point = events.take();
    point->renew();
    return point;
  }
  template <ExecutionSpace Exec>
  static void record_at(const Exec& exec, instance_event& point) {
    point.record(exec);
  }
  /// In the calling thread, but for work of the same instance.
  template <ExecutionSpace Exec>
  static void wait_for(const Exec& exec, detail::event& before) {
    if (auto* point = dynamic_cast<instance_event*>(&before); point == nullptr || !point->is_of(exec))
      before.wait();
  }
  template <ExecutionSpace Exec>
  static void fence(const Exec& exec, const std::string& label) {
    exec.fence(label);
  }
  template <ExecutionSpace Exec>
  static constexpr detail::stream_handle stream_of(const Exec&) {
    return nullptr;
  }
  /// Kokkos' number of the instance, which its next instance at that address has, too. Events keep an
  /// instance as long as its work is followed.
  template <ExecutionSpace Exec>
  static detail::instance_id id_of(const Exec& exec) {
    return exec.impl_instance_id();
  }
};

}  // namespace ferry::kokkos
