// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/block_cache.hpp>
#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/node_pool.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/memory/detail/share.hpp>
#include <ferry/memory/detail/until_finalize.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/event_pool.hpp>
#include <ferry/runtime/detail/report_pool.hpp>
#include <ferry/runtime/detail/side_stream_pool.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/detail/unheard_findings.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace ferry::detail {

/// Resources that graphs released, kept until a verb drops them: graphs release them in threads that must not
/// call the device's runtime. Thread-safe.
class graph_resources {
 public:
  /// After the engine is destroyed, nothing may be freed here: the device may be gone, and the process is
  /// about to end.
  void put(std::shared_ptr<void>* dropped) noexcept {
    try {
      const std::lock_guard lock(guard_);
      if (open_) {
        content_.push_back(std::move(*dropped));
        delete dropped;
        filled_.store(true, std::memory_order_relaxed);
      }
    } catch (...) {  // no memory for the list: leaked, because this thread must not free it
    }
  }
  [[nodiscard]] dynamic_array<std::shared_ptr<void>> empty() noexcept {
    dynamic_array<std::shared_ptr<void>> taken;
    const std::lock_guard lock(guard_);
    filled_.store(false, std::memory_order_relaxed);
    taken.swap(content_);
    return taken;
  }
  /// Whether empty() would return something. Without the lock, so what comes at the same time may be missed.
  [[nodiscard]] bool is_filled() const noexcept { return filled_.load(std::memory_order_relaxed); }
  [[nodiscard]] dynamic_array<std::shared_ptr<void>> close() noexcept {
    {
      const std::lock_guard lock(guard_);
      open_ = false;
    }
    return empty();
  }

 private:
  std::mutex guard_;
  dynamic_array<std::shared_ptr<void>> content_;
  std::atomic<bool> filled_{false};
  bool open_ = true;
};

/// Holds an execution space instance for objects that may outlive Kokkos; instances may not. Thread-safe.
class kept_instance {
 public:
  virtual ~kept_instance() = default;
  virtual void drop() noexcept = 0;
};

template <class Backend>
class engine_set;

/// The resources that the verbs of one backend share on one device: scratch memory, events, reports, and
/// detached work. Made by the first verb there, destroyed by Kokkos::finalize. Thread-safe.
template <class Backend>
class engine final : public detail::ticket_state_keeper {
 public:
  /// That of a device, of an instance's device, or of the device that Kokkos uses.
  /// @{
  static std::shared_ptr<engine> get(int device) {
    auto set = detail::until_finalize<detail::engine_set<Backend>>();
    engine& found = set->of(device);
    return {std::move(set), &found};
  }
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get(const Exec& exec) {
    return get(Backend::device_of(exec));
  }
  static std::shared_ptr<engine> get() { return get(Backend::default_device()); }
  /// @}

  [[gnu::cold]] explicit engine(int device) : device_number_(device) { Backend::enter_device(device); }
  [[gnu::cold]] ~engine() override {
    for (const auto& each : detached_)
      for (auto* work = each.first; work != nullptr; work = work->next) wait_out(*work);
    drop_all([](detail::ticket_state&) { return true; });
    const auto dropped = drop_box_->close();
    for (const auto& each : instances_)
      if (const auto alive = each.lock()) alive->drop();
  }

  [[nodiscard]] int device() const { return device_number_; }

  /// Scratch memory for work of any instance of the device, or of the host.
  [[nodiscard]] std::shared_ptr<void> device_scratch(std::size_t bytes) { return device_.take(bytes); }
  /// Scratch memory for kernels of instance `who` only, see block_cache::take.
  template <class OrderAfter>
  [[nodiscard]] std::shared_ptr<void> device_scratch(std::size_t bytes, instance_id who,
                                                     OrderAfter&& order_after) {
    return device_.take(bytes, who, order_after);
  }
  [[nodiscard]] std::shared_ptr<void> pinned_scratch(std::size_t bytes) { return pinned_.take(bytes); }
  [[nodiscard]] typename report_pool<Backend>::lease report() { return reports_.take(); }
  [[nodiscard]] detail::ticket_state_handle take_ticket_state() { return ticket_state_pool::take(states_); }
  /// Memory for the small objects of verbs.
  [[nodiscard]] const std::shared_ptr<detail::node_pool>& nodes() const { return nodes_; }

  [[nodiscard]] side_stream_pool& side_streams() { return side_streams_; }
  [[nodiscard]] const std::shared_ptr<detail::graph_resources>& dropped() const { return drop_box_; }

  /// The end of the work enqueued on `exec` so far; null where it has ended.
  template <class Exec>
  [[nodiscard]] event_handle record(const Exec& exec) {
    return Backend::record(exec, events_);
  }
  /// An event to record later without failure; null on backends without events.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<typename Backend::native_event> event_to_record(const Exec& exec) {
    return Backend::take_event(exec, events_);
  }

  /// Held from record() until the event is noted, so that two threads that share an instance note their
  /// events in order.
  [[nodiscard]] std::unique_lock<std::mutex> lock_order() { return std::unique_lock(order_guard_); }

  /// Drops `instance` when the engine is destroyed, if it still lives.
  [[gnu::cold]] void watch(std::weak_ptr<detail::kept_instance> instance) {
    const std::lock_guard lock(guard_);
    instances_.erase_if([](const auto& gone) { return gone.expired(); });
    instances_.push_back(std::move(instance));
  }

  /// An instance on the device for short work of ferry's own.
  template <class Exec>
  [[nodiscard]] Exec own_instance() {
    const std::lock_guard lock(instance_guard_);
    if (own_ == nullptr) own_ = share<Exec>(Backend::template instance_on<Exec>(device_number_));
    return *static_cast<const Exec*>(own_.get());
  }

  void add_finding(instance_id who, const std::exception_ptr& error) noexcept override {
    unheard_.add(who, error);
  }
  [[nodiscard]] std::exception_ptr take_finding(instance_id who) noexcept override {
    if (keeps_work_.load(std::memory_order_relaxed)) drop_all(&engine::has_ended);
    return unheard_.take(who);
  }

  /// Keeps `work` until it has ended. Its end is a point of instance work.who.
  void keep(detail::ticket_state_handle work) noexcept override {
    {
      const std::lock_guard lock(guard_);
      if (detached_tickets* const of = detached_of(work->who)) {
        detail::ticket_state* const added = work.release();
        added->next = nullptr;
        (of->first == nullptr ? of->first : of->last->next) = added;
        of->last = added;
        keeps_work_.store(true, std::memory_order_relaxed);
        return;
      }
    }
    wait_out(*work);  // no memory to keep it
    hear(*work);
  }

  /// Releases the resources of detached work that has ended; every verb calls it once. Queries at most one
  /// event per instance that has not been reached.
  void reap() {
    if (drop_box_->is_filled()) static_cast<void>(drop_box_->empty());
    if (keeps_work_.load(std::memory_order_relaxed)) drop_all(&engine::has_ended);
  }

 private:
  /// Detached work of one instance, which ends in the order in which it was enqueued.
  struct detached_tickets {
    instance_id who;
    detail::ticket_state* first = nullptr;
    detail::ticket_state* last = nullptr;
  };
  static constexpr std::size_t many = 8;

  /// The list of an instance; null where there is no memory for it.
  detached_tickets* detached_of(instance_id who) noexcept {
    for (auto& each : detached_)
      if (each.who == who) return &each;
    try {
      detached_.push_back({who});
      return &detached_.back();
    } catch (...) {
      return nullptr;
    }
  }

  static bool has_ended(detail::ticket_state& work) noexcept {
    return work.done == nullptr || detail::has_ended(*work.done);
  }
  static void wait_out(detail::ticket_state& work) noexcept {
    try {
      if (work.done != nullptr) work.done->wait();
    } catch (...) {
    }
  }

  void hear(detail::ticket_state& ended) noexcept {
    if (const auto error = ended.finding()) unheard_.add(ended.who, error);
  }

  template <class HasEnded>
  void drop_all(const HasEnded& has_ended) noexcept {
    detail::ticket_state* ended = nullptr;  // destroyed after the lock is released
    {
      const std::lock_guard lock(guard_);
      for (auto& each : detached_)
        while (each.first != nullptr && has_ended(*each.first)) {
          detail::ticket_state* const work = std::exchange(each.first, each.first->next);
          hear(*work);  // with the lock: a wait of another thread must not come between
          work->next = std::exchange(ended, work);
        }
      bool kept = false;
      for (const auto& each : detached_) kept = kept || each.first != nullptr;
      keeps_work_.store(kept, std::memory_order_relaxed);
      if (detached_.size() > many)
        detached_.erase_if([](const detached_tickets& each) { return each.first == nullptr; });
    }
    while (ended != nullptr) detail::ticket_state_return{}(std::exchange(ended, ended->next));
  }

  const int device_number_;
  std::mutex order_guard_;
  std::mutex guard_;
  std::shared_ptr<detail::node_pool> nodes_ = share<detail::node_pool>();
  std::shared_ptr<detail::ticket_state_pool> states_ = share<detail::ticket_state_pool>();
  std::shared_ptr<detail::graph_resources> drop_box_ = share<detail::graph_resources>();
  event_pool<typename Backend::native_event> events_{nodes_};
  block_cache<typename Backend::scratch_space> device_{nodes_, device_number_};
  block_cache<pinned_space> pinned_{nodes_, device_number_};
  report_pool<Backend> reports_{nodes_, device_number_};
  side_stream_pool side_streams_{nodes_};
  unheard_findings unheard_;
  dynamic_array<detached_tickets> detached_;
  std::atomic<bool> keeps_work_{false};  ///< whether detached_ has any, read without the lock
  dynamic_array<std::weak_ptr<detail::kept_instance>> instances_;
  std::mutex instance_guard_;
  std::shared_ptr<void> own_;  // a backend has one execution space with several devices
};

/// The engines of one backend by device. That of the device that Kokkos uses is made first, and found without
/// a lock. Thread-safe.
template <class Backend>
class engine_set {
 public:
  engine_set() : first_((require_kokkos("ferry"), Backend::default_device())) {}
  engine_set(const engine_set&) = delete;
  engine_set& operator=(const engine_set&) = delete;

  engine<Backend>& of(int device) {
    if (device == first_.device()) return first_;
    const std::lock_guard lock(guard_);
    for (const auto& each : others_)
      if (each->device() == device) return *each;
    return *others_.push_back(make_owned<engine<Backend>>(device));
  }

 private:
  engine<Backend> first_;
  std::mutex guard_;
  dynamic_array<owned<engine<Backend>>> others_;
};

}  // namespace ferry::detail
