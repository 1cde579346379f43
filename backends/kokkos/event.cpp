// SPDX-License-Identifier: Apache-2.0
#include "event.hpp"

#include "../enabled.hpp"
#include "launch.hpp"

#include <ferry/memory/detail/process_wide.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ferry::kokkos {

/// The events of the process, and the words that kernels write. Never destroyed, because events may outlive
/// Kokkos; at Kokkos::finalize all of them have ended.
struct events_of_process {
  /// A word that a kernel in flight will write once more.
  struct late_word {
    volatile std::uint32_t* word;
    std::uint32_t number;
  };
  static constexpr std::size_t batch = 1024;

  std::mutex guard;
  std::vector<instance_event*> events;
  std::vector<volatile std::uint32_t*> idle;
  std::vector<late_word> late;
  std::vector<void*> blocks;

  static events_of_process& get() {
    static events_of_process& registry = detail::process_wide<events_of_process>();
    return registry;
  }

  /// With the lock.
  volatile std::uint32_t* take() {
    std::erase_if(late, [this](const late_word& entry) {
      if (*entry.word != entry.number) return false;
      idle.push_back(entry.word);
      return true;
    });
    if (idle.empty()) {
      using space = spaces_of_kokkos::pinned;
      auto* const words = static_cast<std::uint32_t*>(
          Kokkos::kokkos_malloc<space>("ferry::events", batch * sizeof(std::uint32_t)));
      blocks.push_back(words);
      for (std::size_t i = 0; i < batch; ++i) {
        words[i] = 0;
        idle.push_back(words + i);
      }
    }
    volatile std::uint32_t* const word = idle.back();
    idle.pop_back();
    *word = 0;
    return word;
  }
  void end_all() noexcept {
    const std::lock_guard lock(guard);
    for (instance_event* event : events) {
      if (event->exec_) event->exec_->fence("ferry::finalize");
      event->exec_.reset();
      event->word_ = nullptr;
      event->number_ = 0;
    }
    for (void* block : blocks) Kokkos::kokkos_free<spaces_of_kokkos::pinned>(block);
    blocks.clear();
    idle.clear();
    late.clear();
  }
};

namespace {

struct end_of_events {
  ~end_of_events() { events_of_process::get().end_all(); }
};

struct write_number {
  volatile std::uint32_t* word;
  std::uint32_t number;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *word = number; }
};

}  // namespace

instance_event::instance_event() {
  static_cast<void>(detail::until_finalize<end_of_events>());
  auto& registry = events_of_process::get();
  const std::lock_guard lock(registry.guard);
  registry.events.push_back(this);
}

instance_event::~instance_event() {
  auto& registry = events_of_process::get();
  const std::lock_guard lock(registry.guard);
  std::erase(registry.events, this);
  if (word_ != nullptr) registry.late.push_back({word_, number_});
}

void instance_event::renew() {
  if (word_ != nullptr && ready()) return;
  auto& registry = events_of_process::get();
  const std::lock_guard lock(registry.guard);
  if (word_ != nullptr) registry.late.push_back({word_, number_});
  word_ = registry.take();
  number_ = 0;
}

void instance_event::record(const exec_space& exec) {
  const std::uint32_t next = number_ + 1 == 0 ? 1 : number_ + 1;
  static const std::string label = "ferry::record";
  launch_functions::launch_range(exec, label, 1, write_number{word_, next});
  const std::lock_guard lock(guard_);
  exec_ = exec;
  number_ = next;
}

void instance_event::wait() {
  if (ready()) return;
  std::optional<exec_space> exec;
  {
    const std::lock_guard lock(guard_);
    exec = exec_;  // none: another thread has waited
  }
  static const std::string label = "ferry::wait";
  if (exec) exec->fence(label);
  static_cast<void>(ready());
}

/// An instance that has ended its work is the user's to end, before its queue.
bool instance_event::ready() {
  if (number_ == 0) return true;
  if (*word_ != number_) return false;
  const std::lock_guard lock(guard_);
  exec_.reset();
  return true;
}

}  // namespace ferry::kokkos
