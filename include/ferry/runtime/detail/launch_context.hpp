// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// Copies bytes from `source` to `target`, enqueued on `exec` and reported to Kokkos Tools under `label`.
/// Compiled for the execution spaces that Kokkos has.
template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes);

/// One call of a verb: its resources, and the ticket that it ends with. A verb takes labels, scratch and
/// operands before it enqueues anything, so finish() can't fail for lack of memory.
class verb_call {
 public:
  verb_call(const verb_call&) = delete;
  verb_call& operator=(const verb_call&) = delete;

  [[nodiscard]] const char* verb() const { return verb_; }
  /// True if a graph is being captured. It then owns what the verb uses, and the device can't be queried.
  [[nodiscard]] bool capturing() const { return capturing_; }
  [[nodiscard]] instance_id id() const { return id_; }
  /// The device of the instance.
  [[nodiscard]] int device() const { return engine_->device(); }

  /// "ferry::<verb>::<path>[::<part>]". Lives as long as the call.
  const std::string& label(std::string_view path, std::string_view part = {}) {
    return state_->label({"ferry", verb_, path, part});
  }
  /// "<label>::<part>". Lives as long as the call.
  const std::string& label_part(const std::string& label, std::string_view part) {
    return state_->label({label, part});
  }

  /// For verbs that need host code. Throws invalid_argument if the instance is being captured.
  void refuse_capture(std::string_view reason) const;

  /// Uninitialised memory that kernels of this execution space reach, kept until the verb ends.
  template <class T>
  T* scratch(std::int64_t count) {
    return static_cast<T*>(block(static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T)).get());
  }
  /// Such memory with shared ownership, for a plan for example.
  std::shared_ptr<void> block(std::size_t bytes);
  /// Uninitialised page-locked host memory, kept until the verb ends.
  template <class T>
  T* pinned(std::int64_t count) {
    return static_cast<T*>(pinned_bytes(static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T)));
  }
  void* hold(std::shared_ptr<void> resource);

  /// A report for kernels of this execution space. Its findings become the ticket's error.
  report_writer report();
  /// A report for the host's part of the verb.
  report_writer host_report();
  [[nodiscard]] bool host_found() const { return state_->by_host.raised != 0u; }
  /// Orders this verb after the making of a plan. If it `reports`, its findings become the ticket's error;
  /// else a kernel of the verb sees to them.
  void use(const std::shared_ptr<plan_storage>& store, bool reports = true);

  /// Later work of this call reads the array, after the writes of other instances. Throws invalid_argument
  /// for an array on another device than the instance, unless it may lie `anywhere`.
  void reads_from(const untyped_array& array, bool anywhere = false);
  /// Later work of this call writes to the array, after the reads and writes of other instances. Throws as
  /// reads_from().
  void writes_to(const untyped_array& array, bool anywhere = false);
  /// Throws what writes_to() would, and records nothing: for a verb that writes to several arrays one after
  /// the other, by a verb each.
  void require_write_to(const untyped_array& array);
  /// reads_from() if the array's elements are const, else writes_to().
  template <class T, class Space>
  void touches(const array_ref<T, Space>& array) {
    if constexpr (std::is_const_v<T>)
      reads_from(array);
    else
      writes_to(array);
  }
  /// touches() for paths of the calling thread: it waits for conflicting work on host memory.
  template <class T, class Space>
  void wait_for_host_access(const array_ref<T, Space>& array) {
    wait_for_host_access(array, !std::is_const_v<T>);
  }

  /// An event at the present point of the instance's work.
  [[nodiscard]] event_handle mark() { return engine_->record_on(exec_); }

  void roll_back_by(const rollback& ends) { state_->ends = ends; }
  /// Describes the values in the error about values that are not finite, unless a plan has described those
  /// that its positions share: kernels may read a copy of these.
  void name_values(const array_note& values) {
    if (state_->sources.values.rank == 0) state_->sources.values = values;
  }
  void name_tables(std::shared_ptr<const table_descriptions> list) {
    state_->sources.tables = std::move(list);
  }

  /// Ends the call: the ticket covers everything enqueued so far. The indices name rows of `table`.
  ticket finish(const untyped_array& table, std::int64_t positions, bool signed_indices);
  /// Ends a call that checks no indices.
  ticket finish();
  /// After finish(): the verb's end; null if it has ended or belongs to a graph.
  [[nodiscard]] const event_handle& completion() const { return completion_; }

 protected:
  /// `exec`: an instance of the engine's execution space, which outlives the call.
  verb_call(const void* exec, const char* verb, std::shared_ptr<engine> owner, bool capturing, instance_id id,
            stream_handle stream);
  /// Without finish(), after an exception: waits for the enqueued work before its memory is reused.
  ~verb_call();

  [[nodiscard]] engine& owner() { return *engine_; }
  [[nodiscard]] void* take_side_stream();

 private:
  void use_block(const std::shared_ptr<void>& lease);
  void* pinned_bytes(std::size_t bytes);
  void follow(const std::shared_ptr<access_tracker>& accesses, bool writes);

  void wait_for_host_access(const untyped_array& array, bool writes);
  void require_device_of(const untyped_array& array) const;

  tool_region region_;  // of the label call
  const void* exec_;
  const char* verb_;
  bool capturing_;
  bool has_plan_ = false;
  instance_id id_;
  std::shared_ptr<engine> engine_;
  ticket_state_handle state_;
  std::shared_ptr<event> end_;
  std::shared_ptr<report_writer> report_;
  std::shared_ptr<void> side_stream_;
  event_handle completion_;
};

/// Verbs that write as one, on the shards of a table for example: calls verb(i) for each i in [first, last).
/// Each call but the first begins within the one before it, when that one has taken its memory. So a call
/// that lacks memory ends all of them before the first write.
void write_jointly(int first, int last, function_ref<void(int)> verb);

/// A verb calls this when it has taken its memory and before it writes: the calls that write jointly with it
/// begin here. Does nothing else.
void before_writing();

/// The instance of a call, and its device, which Kokkos' launches would leave current.
template <class Exec>
class call_instance {
 public:
  explicit call_instance(const Exec& exec) : device_(exec), exec_(exec) {}
  [[nodiscard]] const Exec& exec() const { return exec_; }

 private:
  typename execution_backend<Exec>::device_guard device_;
  Exec exec_;
};

/// A call on an instance of Exec.
template <class Exec>
class launch_context : private call_instance<Exec>, public verb_call {
 public:
  using backend = execution_backend<Exec>;

  launch_context(const Exec& instance, const char* verb)
      : launch_context(instance, verb, is_capturing(instance, verb)) {}

  using call_instance<Exec>::exec;

  /// Another, idle instance for concurrent work, kept until the verb ends. The ticket does not cover its
  /// work, so order the verb's own instance after it.
  const Exec& side_stream() { return *static_cast<const Exec*>(take_side_stream()); }

  using verb_call::mark;
  [[nodiscard]] event_handle mark(const Exec& instance) { return owner().record(instance); }
  /// For backend::record_at, which needs no memory, after work that must not fail.
  [[nodiscard]] auto event_to_record() { return owner().event_to_record(exec()); }

 private:
  static bool is_capturing(const Exec& instance, const char* verb) {
    require_own_kokkos(instance, verb);
    return backend::capturing(instance);
  }
  launch_context(const Exec& instance, const char* verb, bool capturing)
      : call_instance<Exec>(instance),
        verb_call(&this->exec(), verb, engine::get(instance), capturing,
                  capturing ? 0 : backend::id_of(instance), backend::stream_of(instance)) {}
};

/// The transfers between two spaces by one path. On a cache line of its own.
struct alignas(64) transfer_counter {
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> zero_copy_bytes{0};

  void add(std::int64_t moved, bool zero_copy) noexcept {
    calls.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(static_cast<std::uint64_t>(moved), std::memory_order_relaxed);
    if (zero_copy) add_zero_copy(moved);
  }
  void add_zero_copy(std::int64_t moved) noexcept {
    zero_copy_bytes.fetch_add(static_cast<std::uint64_t>(moved), std::memory_order_relaxed);
  }
};

/// The counters of the process, for all pairs of spaces and all paths. Spaces and paths of the user share the
/// last name of a list. Verbs add to them with relaxed order: a count is exact once the call has returned.
struct transfer_counters {
  static constexpr std::size_t names = 5;
  static constexpr std::string_view spaces[names] = {"device_space", "pinned_space", "mapped_space",
                                                     "pageable_space", "other"};
  static constexpr std::string_view paths[names] = {"direct", "ordered", "staged", "cooperative", "other"};

  transfer_counter counters[names * names * names];  ///< by source, destination, path

  static constexpr std::size_t index_of(const std::string_view (&list)[names], std::string_view name) {
    std::size_t index = 0;
    while (index + 1 < names && list[index] != name) ++index;
    return index;
  }

  template <class From, class To, class Path>
  [[nodiscard]] transfer_counter& counter_of() noexcept {
    constexpr std::size_t pair = index_of(spaces, From::name) * names + index_of(spaces, To::name);
    return counters[pair * names + index_of(paths, Path::name)];
  }

  static transfer_counters& get();
};

/// Counts the bytes of rows that a call moves from one array to another, for transfer_statistics. Keep the
/// result until the work is enqueued: it reports kernels that move rows over the link as one transfer.
/// Without `by_kernel` copy engines move them, and transfer() reports that.
template <class Path, class Exec, class From, class FromSpace, class To, class ToSpace>
[[nodiscard]] transfer_region count_transfer(launch_context<Exec>& call,
                                             const array_ref<From, FromSpace>& source,
                                             const array_ref<To, ToSpace>& target, std::int64_t bytes,
                                             bool by_kernel = true) {
  constexpr bool over_link = !is_host_exec<Exec> && Path::reaches_table && !Path::occupies_host_threads &&
                             (FromSpace::is_host_accessible || ToSpace::is_host_accessible);
  const bool reported = over_link && by_kernel;
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add(bytes, reported);
  return transfer_region(ToSpace::name, target.data, FromSpace::name, source.data,
                         static_cast<std::size_t>(bytes),
                         reported ? std::string_view(call.label(Path::name)) : std::string_view(), reported);
}

/// Bytes that kernels moved, of those that count_transfer() counted, when they share the rows with host
/// threads.
template <class Path, class From, class FromSpace, class To, class ToSpace>
void moved_by_kernels(const array_ref<From, FromSpace>&, const array_ref<To, ToSpace>&, std::int64_t bytes) {
  transfer_counters::get().counter_of<FromSpace, ToSpace, Path>().add_zero_copy(bytes);
}

}  // namespace ferry::detail
