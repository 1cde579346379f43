// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// An object that holds an execution space instance and may outlive Kokkos, which no instance may.
class kept_instance {
 public:
  virtual ~kept_instance() = default;
  virtual void drop() noexcept = 0;
};

/// The resources that the verbs of one execution space share on one device: scratch memory, events, reports,
/// and detached work. Made by the first verb there, destroyed by Kokkos::finalize. Thread-safe.
///
/// The library has one for each execution space of its Kokkos. Functions that take `const void*` get the
/// address of an instance of that space; the templates pass it.
class engine : public ticket_state_keeper {
 public:
  /// That of a device, -1 for the one that Kokkos uses, which the library defines, or of an instance's
  /// device.
  /// @{
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get_on(int device = -1);
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get(const Exec& exec) {
    return get_on<Exec>(execution_backend<Exec>::device_of(exec));
  }
  /// @}
  /// Releases the engines of an execution space, as Kokkos::finalize does.
  template <ExecutionSpace Exec>
  static void release();

  [[nodiscard]] int device() const { return device_number_; }

  /// Scratch memory for work of any instance of the device, or of the host. Callers that capture a graph say
  /// so here and below: what is allocated must not become part of it.
  [[nodiscard]] virtual std::shared_ptr<void> device_scratch(std::size_t bytes, bool capturing = false) = 0;
  /// Scratch memory for kernels of instance `who` only, see block_cache::take.
  [[nodiscard]] virtual std::shared_ptr<void> device_scratch(std::size_t bytes, instance_id who,
                                                             function_ref<void(event&)> order_after) = 0;
  [[nodiscard]] virtual std::shared_ptr<void> pinned_scratch(std::size_t bytes, bool capturing = false) = 0;
  [[nodiscard]] virtual std::shared_ptr<report_writer> report(bool capturing = false) = 0;
  /// States of ended work return first: the pool of a steady loop then holds as many as are in flight.
  [[nodiscard]] ticket_state_handle take_ticket_state(bool capturing) {
    if (!capturing) reap();
    return detail::take_ticket_state(states_);
  }

  /// Another instance on the device, for work that must not wait for the kernels of the user's instance.
  /// While the lease lives, nobody else uses it. The engine ends it: a lease that lives longer may only be
  /// dropped.
  template <ExecutionSpace Exec>
  [[nodiscard]] std::shared_ptr<Exec> side_stream(const Exec& exec) {
    return std::static_pointer_cast<Exec>(side_stream_of(&exec));
  }

  /// Resources that graphs released, kept until a verb drops them: graphs release them in threads that must
  /// not call the device's runtime. Those that come after the engine are never freed: the device may be gone.
  using dropped_resources = free_list<std::shared_ptr<void>*>;
  [[nodiscard]] const std::shared_ptr<dropped_resources>& dropped() const { return dropped_; }

  /// The end of the work enqueued on `exec` so far; null if it has ended.
  template <ExecutionSpace Exec>
  [[nodiscard]] event_handle record(const Exec& exec) {
    return record_on(&exec);
  }
  /// An event to record later without failure; null on backends without events.
  template <ExecutionSpace Exec>
  [[nodiscard]] auto event_to_record(const Exec& exec) {
    return std::static_pointer_cast<typename execution_backend<Exec>::native_event>(take_event(&exec));
  }

  /// Functions of the backend, see docs/backends.md.
  /// @{
  [[nodiscard]] virtual bool is_host() const = 0;
  [[nodiscard]] virtual event_handle record_on(const void* exec) = 0;
  [[nodiscard]] virtual std::shared_ptr<event> take_event(const void* exec) = 0;
  virtual void record_at(const void* exec, event& point) = 0;
  virtual void wait_for(const void* exec, event& before) = 0;
  virtual void fence(const void* exec, const std::string& label) = 0;
  virtual void give_to_graph(const void* exec, const char* verb, ticket_state& state) = 0;
  /// Like `exec`; null: any on the device.
  [[nodiscard]] virtual std::shared_ptr<void> side_stream_of(const void* exec) = 0;
  /// Makes the error from what a verb's kernels found, once its work has ended; null for none.
  using error_maker = std::exception_ptr (*)(ticket_state&);
  [[nodiscard]] virtual error_maker find_error() const = 0;
  /// @}

  /// Held from record() until the event is recorded in arrays, so that two threads that share an instance
  /// record their events in order.
  [[nodiscard]] std::unique_lock<std::mutex> lock_order() { return std::unique_lock(order_guard_); }

  /// Drops `instance` when the engine is destroyed, if it still lives.
  void watch(std::weak_ptr<kept_instance> instance);

  void add_finding(instance_id who, const std::exception_ptr& error) noexcept override;
  [[nodiscard]] std::exception_ptr take_finding(instance_id who, stream_handle stream) noexcept override;

  /// Keeps `work` until it has ended. Its end is a point of instance work.who. A captured verb is kept as
  /// long as its graph, whose launches may find something.
  void keep(ticket_state_handle work) noexcept override;

  /// Releases the resources of detached work that has ended; every verb calls it once. Queries at most one
  /// event per instance that has not been reached.
  void reap();

 protected:
  explicit engine(int device) : device_number_(device) {}
  /// Waits for detached work, and drops what the engine keeps. Destructors call it before any pool ends.
  void close() noexcept;

 private:
  /// Detached work of one instance, which ends in the order in which it was enqueued.
  struct detached_tickets {
    instance_id who;
    ticket_state* first = nullptr;
    ticket_state* last = nullptr;
  };
  static constexpr std::size_t many = 8;

  /// The list of an instance; null if there is no memory for it.
  detached_tickets* detached_of(instance_id who) noexcept;
  void hear(ticket_state& ended) noexcept;
  void drop_all(bool (*has_ended)(ticket_state&)) noexcept;
  /// Adds the findings of launches on a stream, which is that of instance `who`, to the others. With a
  /// finding it waits for the work of the stream, because later launches may write the report. `everyone`:
  /// those of all streams, without a wait.
  void hear_captured(instance_id who, stream_handle stream, bool everyone = false) noexcept;

  const int device_number_;
  std::mutex order_guard_;
  std::mutex guard_;
  std::shared_ptr<ticket_state_pool> states_ = std::make_shared<ticket_state_pool>();
  std::shared_ptr<dropped_resources> dropped_ = std::make_shared<dropped_resources>();
  unheard_findings unheard_;
  std::vector<detached_tickets> detached_;
  std::atomic<bool> keeps_work_{false};  ///< true if detached_ has any, read without the lock
  std::mutex captured_guard_;
  ticket_state* captured_ = nullptr;         ///< verbs of graphs without a ticket, linked by `next`
  std::atomic<bool> keeps_captured_{false};  ///< true if there is any, read without the lock
  std::vector<std::weak_ptr<kept_instance>> instances_;
};

/// An instance on a device, for objects that may outlive Kokkos. The engine of the device drops it at
/// Kokkos::finalize. Thread-safe.
template <class Exec>
class device_instance final : public kept_instance {
 public:
  using backend = execution_backend<Exec>;

  [[nodiscard]] static std::shared_ptr<device_instance> on(int device) {
    const auto owner = engine::get_on<Exec>(device);
    auto instance = std::make_shared<device_instance>(backend::template instance_on<Exec>(device));
    owner->watch(instance);
    return instance;
  }
  explicit device_instance(Exec exec) : exec_(std::move(exec)) {}

  device_instance(const device_instance&) = delete;
  device_instance& operator=(const device_instance&) = delete;
  ~device_instance() override { drop(); }

  /// Kokkos leaves the device of an instance that ends current; the guard restores the thread's own.
  void drop() noexcept override {
    std::optional<Exec> last;
    {
      const std::lock_guard lock(guard_);
      last.swap(exec_);
    }
    if (!last) return;
    try {
      const typename backend::device_guard guard(*last);
      last.reset();
    } catch (...) {  // the device failed
    }
  }
  /// Throws invalid_argument after Kokkos::finalize.
  [[nodiscard]] Exec get() const {
    const std::lock_guard lock(guard_);
    if (!exec_) throw invalid_argument("ferry: Kokkos was finalized, which ends the instances of devices");
    return *exec_;
  }

 private:
  mutable std::mutex guard_;
  std::optional<Exec> exec_;
};

/// The findings of kernels of an execution space in a report; valid once they have ended. Without errors it
/// needs no access to the device. The library defines both for each execution space.
/// @{
template <ExecutionSpace Exec>
index_report read_report(const report_writer& report);
/// Resets a report for later kernels.
template <ExecutionSpace Exec>
void clean_report(const report_writer& report);
/// @}

}  // namespace ferry::detail
