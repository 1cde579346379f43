// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/node_pool.hpp>
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
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A pool of further instances of an execution space, for work that must not wait for the kernels of the
/// user's instance. They are made when needed and destroyed with the pool. A lease does not own its instance,
/// because no instance may outlive Kokkos.
class side_stream_pool {
 public:
  explicit side_stream_pool(std::shared_ptr<detail::node_pool> nodes = std::make_shared<detail::node_pool>())
      : nodes_(std::move(nodes)) {}
  side_stream_pool(const side_stream_pool&) = delete;
  side_stream_pool& operator=(const side_stream_pool&) = delete;
  ~side_stream_pool() { static_cast<void>(idle_->close()); }

  /// An instance of the type and on the device of `exec`, used by nobody else while the lease lives. A pool
  /// serves one type. A lease that outlives the pool may only be dropped.
  template <class Exec>
  [[nodiscard]] std::shared_ptr<Exec> take(const Exec& exec) {
    const int device = execution_backend<Exec>::device_of(exec);
    auto* instance = static_cast<Exec*>(take_idle(device));
    if (instance == nullptr) {
      [[maybe_unused]] const auto lock = execution_backend<Exec>::lock_instances();
      auto fresh = std::make_shared<Exec>(Kokkos::Experimental::partition_space(exec, 1)[0]);
      instance = fresh.get();
      const std::lock_guard lock_all(guard_);
      instances_.reserve(instances_.size() + 1);
      idle_->expect(1);
      instances_.push_back(std::move(fresh));
    }
    const auto give_back = [idle = idle_, device](Exec* dropped) noexcept { idle->put({device, dropped}); };
    return {instance, give_back, detail::node_allocator<Exec>(nodes_)};
  }

 private:
  struct idle_instance {
    int device = -1;
    void* instance = nullptr;
  };
  using list = free_list<idle_instance>;

  void* take_idle(int device) {
    return idle_
        ->take([device](const std::vector<idle_instance>& idle) {
          std::size_t place = idle.size();
          while (place-- != 0)
            if (idle[place].device == device) break;
          return place;
        })
        .instance;
  }

  std::shared_ptr<detail::node_pool> nodes_;
  std::shared_ptr<list> idle_ = std::make_shared<list>();
  std::mutex guard_;
  std::vector<std::shared_ptr<void>> instances_;
};

/// Resources that graphs released, kept until a verb drops them: graphs release them in threads that must not
/// call the device's runtime. Thread-safe.
class graph_resources {
 public:
  /// After the engine is destroyed, nothing may be freed here: the device may be gone, and the process is
  /// about to end.
  void put(std::shared_ptr<void>* dropped) noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<void>> empty() noexcept;
  /// True if empty() would return something. Without the lock, so what comes at the same time may be missed.
  [[nodiscard]] bool is_filled() const noexcept { return filled_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::vector<std::shared_ptr<void>> close() noexcept;

 private:
  std::mutex guard_;
  std::vector<std::shared_ptr<void>> content_;
  std::atomic<bool> filled_{false};
  bool open_ = true;
};

/// Holds an execution space instance for objects that may outlive Kokkos; instances may not. Thread-safe.
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
  /// That of a device, of an instance's device, or of the device that Kokkos uses. The library defines the
  /// first.
  /// @{
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get_on(int device);
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get(const Exec& exec) {
    return get_on<Exec>(execution_backend<Exec>::device_of(exec));
  }
  template <ExecutionSpace Exec>
  static std::shared_ptr<engine> get() {
    return get_on<Exec>(execution_backend<Exec>::default_device());
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
  [[nodiscard]] ticket_state_handle take_ticket_state() { return detail::take_ticket_state(states_); }
  /// Memory for the small objects of verbs.
  [[nodiscard]] const std::shared_ptr<node_pool>& nodes() const { return nodes_; }

  [[nodiscard]] side_stream_pool& side_streams() { return side_streams_; }
  [[nodiscard]] const std::shared_ptr<graph_resources>& dropped() const { return drop_box_; }

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

  /// Functions of the backend, see backends/README.md.
  /// @{
  [[nodiscard]] virtual bool is_host() const = 0;
  [[nodiscard]] virtual event_handle record_on(const void* exec) = 0;
  [[nodiscard]] virtual std::shared_ptr<event> take_event(const void* exec) = 0;
  virtual void record_at(const void* exec, event& point) = 0;
  virtual void wait_for(const void* exec, event& before) = 0;
  virtual void fence(const void* exec, const std::string& label) = 0;
  virtual void give_to_graph(const void* exec, const char* verb, ticket_state& state) = 0;
  [[nodiscard]] virtual std::shared_ptr<void> side_stream(const void* exec) = 0;
  /// Makes the error from what a verb's kernels found, once its work has ended; null for none.
  using error_maker = std::exception_ptr (*)(ticket_state&);
  [[nodiscard]] virtual error_maker find_error() const = 0;
  /// @}

  /// Held from record() until the event is noted, so that two threads that share an instance note their
  /// events in order.
  [[nodiscard]] std::unique_lock<std::mutex> lock_order() { return std::unique_lock(order_guard_); }

  /// Drops `instance` when the engine is destroyed, if it still lives.
  void watch(std::weak_ptr<kept_instance> instance);

  /// An instance on the device for short work of ferry's own.
  template <ExecutionSpace Exec>
  [[nodiscard]] Exec own_instance() {
    return *static_cast<const Exec*>(instance());
  }

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
  [[nodiscard]] virtual const void* instance() = 0;

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
  void keep_captured(ticket_state_handle verb) noexcept;
  /// Adds the findings of launches on a stream, which is that of instance `who`, to the others. With a
  /// finding it waits for the work of the stream, because later launches may write the report. `everyone`:
  /// those of all streams, without a wait.
  void hear_captured(instance_id who, stream_handle stream, bool everyone = false) noexcept;

  const int device_number_;
  std::mutex order_guard_;
  std::mutex guard_;
  std::shared_ptr<node_pool> nodes_ = std::make_shared<node_pool>();
  std::shared_ptr<ticket_state_pool> states_ = std::make_shared<ticket_state_pool>();
  std::shared_ptr<graph_resources> drop_box_ = std::make_shared<graph_resources>();
  side_stream_pool side_streams_{nodes_};
  unheard_findings unheard_;
  std::vector<detached_tickets> detached_;
  std::atomic<bool> keeps_work_{false};  ///< true if detached_ has any, read without the lock
  std::mutex captured_guard_;
  ticket_state* captured_ = nullptr;         ///< verbs of graphs without a ticket, linked by `next`
  std::atomic<bool> keeps_captured_{false};  ///< true if there is any, read without the lock
  std::vector<std::weak_ptr<kept_instance>> instances_;
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
