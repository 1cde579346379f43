// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/trace_span.hpp>
#include <ferry/runtime/detail/array_device.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/captured_instance.hpp>
#include <ferry/runtime/detail/change_marks.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/error_collector.hpp>
#include <ferry/runtime/detail/host_side.hpp>
#include <ferry/runtime/detail/named_error.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/detail/require_process.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// One call of a verb: its resources, and the ticket that it ends with. A verb takes labels, scratch and
/// operands before it enqueues anything, so finish() can't fail for lack of memory.
template <class Exec>
class launch_context {
 public:
  using backend = execution_backend<Exec>;

  launch_context(const Exec& exec, const char* verb)
      : span_((require_own_kokkos(exec, verb), "ferry::"), verb, "verb"),
        on_(exec),
        exec_(exec),
        verb_(verb),
        capturing_(backend::capturing(exec)),
        id_(capturing_ ? 0 : backend::id_of(exec)),
        engine_(engine<backend>::get(exec)),
        state_(take_state()),
        changes_(capturing_) {
    if (!capturing_) end_ = engine_->event_to_record(exec_);
  }
  launch_context(const launch_context&) = delete;
  launch_context& operator=(const launch_context&) = delete;
  /// Without finish(), after an exception: waits for the enqueued work before its memory is reused.
  ~launch_context() {
    if (state_ == nullptr) return;
    if (!capturing_) state_->withdraw();
    if (state_->resources.empty() && state_->memory.empty() && state_->touched.empty()) return;
    try {
      if (capturing_) {
        hand_to_graph();  // captured work runs with every launch
      } else {
        static const std::string label = "ferry::abandoned";
        backend::fence(exec_, label);
        if (side_stream_ != nullptr) backend::fence(*side_stream_, label);
      }
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
      if (capturing_)
        static_cast<void>(state_.release());  // leaked, because the graph's kernels still use it
    }
  }

  [[nodiscard]] const Exec& exec() const { return exec_; }
  [[nodiscard]] const char* verb() const { return verb_; }
  [[nodiscard]] trace_span& span() { return span_; }
  /// Whether a graph is being captured. It then owns what the verb uses, and the device can't be queried.
  [[nodiscard]] bool capturing() const { return capturing_; }
  [[nodiscard]] instance_id id() const { return id_; }
  /// The device of the instance.
  [[nodiscard]] int device() const { return engine_->device(); }

  /// "ferry::<verb>::<path>[::<part>]". Lives as long as the call.
  const std::string& label(std::string_view path, std::string_view part = {}) {
    return state_->label({"ferry", verb_, path, part});
  }
  /// "<whole>::<part>". Lives as long as the call.
  const std::string& label_part(const std::string& whole, std::string_view part) {
    return state_->label({whole, part});
  }

  /// For verbs that need host code. Throws invalid_argument if the instance is being captured.
  void refuse_capture(std::string_view what) const {
    if (capturing_)
      throw invalid_argument("ferry::" + std::string(verb_) +
                             ": the instance is being captured into a graph, " + std::string(what));
  }

  /// Uninitialised memory that kernels of this execution space reach, kept until the verb ends.
  template <class T>
  T* scratch(std::int64_t count) {
    return static_cast<T*>(block(static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T)).get());
  }
  /// Such memory with shared ownership, for a plan for example.
  std::shared_ptr<void> block(std::size_t bytes) {
    const typename backend::capture_pause pause(capturing_);
    auto lease = with_verb_in_error(verb_, [&]() -> std::shared_ptr<void> {
      if (capturing_) return engine_->device_scratch(bytes);
      return engine_->device_scratch(bytes, id_,
                                     [this](event& earlier) { backend::wait_for(exec_, earlier); });
    });
    state_->keep_block(lease, !capturing_);
    return lease;
  }
  /// Uninitialised page-locked host memory, kept until the verb ends.
  template <class T>
  T* pinned(std::int64_t count) {
    const typename backend::capture_pause pause(capturing_);
    return static_cast<T*>(hold(with_verb_in_error(verb_, [&] {
      return engine_->pinned_scratch(static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T));
    })));
  }
  void* hold(std::shared_ptr<void> resource) {
    state_->resources.push_back(std::move(resource));
    return state_->resources.back().get();
  }

  /// Another, idle instance for concurrent work, kept until the verb ends. The ticket does not cover its
  /// work, so order the verb's own instance after it.
  const Exec& side_stream() {
    if (side_stream_ == nullptr) {
      const typename backend::capture_pause pause(true);  // an instance allocates
      side_stream_ = engine_->side_streams().take(exec_);
      hold(side_stream_);
    }
    return *side_stream_;
  }

  /// A report for kernels of this execution space. Its findings become the ticket's error.
  report_writer report() {
    if (report_ == nullptr) {
      const typename backend::capture_pause pause(capturing_);
      report_ = engine_->report();
      hold(report_);
    }
    return *report_;
  }
  /// A report for the host's part of the verb.
  report_writer host_report() {
    state_->sources.host = true;
    return {&state_->by_host.report, &state_->by_host.raised};
  }
  [[nodiscard]] bool host_found() const { return state_->by_host.raised != 0u; }
  /// Orders this verb after the making of a plan. The plan's findings become the ticket's error.
  void use(const std::shared_ptr<plan_storage>& store) {
    require_plan_device(verb_, exec_, *store);
    state_->sources.use(*store);
    state_->memory.push_back(store);
    if (store->memory != nullptr) state_->keep_block(store->memory, !capturing_);
    if (store->base != nullptr && store->base->memory != nullptr)
      state_->keep_block(store->base->memory, !capturing_);
    hold(store->report);
    follow(store->accesses, false);
    if (!capturing_ && store->made != nullptr && store->made_by != id_)
      backend::wait_for(exec_, *store->made);
  }

  /// Later work of this call reads the array, after the writes of other instances. Throws invalid_argument
  /// for an array on another device than the instance, unless it may lie `anywhere`.
  template <class T, class Space>
  void reads_from(const array_ref<T, Space>& array, bool anywhere = false) {
    if (!anywhere) require_array_device(verb_, exec_, array);
    follow(array.accesses, false);
  }
  /// Later work of this call writes to the array, after the reads and writes of other instances. Throws as
  /// reads_from().
  template <class T, class Space>
  void writes_to(const array_ref<T, Space>& array, bool anywhere = false) {
    if (!anywhere) require_array_device(verb_, exec_, array);
    note_change(array);
    follow(array.accesses, true);
  }
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
    if constexpr (!Space::is_host_accessible) {
      touches(array);
    } else if (array.accesses != nullptr) {
      if constexpr (std::is_const_v<T>) {
        array.accesses->wait_for_writes();
      } else {
        note_change(array);
        array.accesses->wait_for_all();
      }
    }
  }
  [[nodiscard]] change_marks& changes() { return changes_; }

  /// An event at the present point of the instance's work.
  [[nodiscard]] event_handle mark() { return mark(exec_); }
  [[nodiscard]] event_handle mark(const Exec& instance) { return engine_->record(instance); }
  /// For backend::record_at, which needs no memory, after work that must not fail.
  [[nodiscard]] auto event_to_record() { return engine_->event_to_record(exec_); }

  void roll_back_by(const rollback& ends) { state_->ends = ends; }
  /// Describes the values in the error about values that are not finite.
  void name_values(const array_note& values) { state_->sources.values = values; }
  void name_tables(std::shared_ptr<const table_notes> list) { state_->sources.tables = std::move(list); }

  /// Ends the call: the ticket covers everything enqueued so far. The indices name rows of `table`.
  template <class T, class Space>
  ticket finish(const array_ref<T, Space>& table, std::int64_t positions, bool signed_indices) {
    finding_sources& from = state_->sources;
    if (report_ != nullptr || from.host || from.plan != nullptr) {
      state_->find_error = &find_error<backend>;
      from.device = std::move(report_);
      from.verb = verb_;
      from.table = table.note();
      from.width = table.width();
      from.positions = positions;
      from.signed_indices = signed_indices;
    }
    return finish();
  }

  /// Ends a call that checks no indices.
  ticket finish() {
    if constexpr (!is_host_exec<Exec>) changes_.mark(exec_);
    if (capturing_) {
      hand_to_graph();
    } else {
      if constexpr (is_host_exec<Exec>) {
        done_ = engine_->record(exec_);  // blocks, and notes nothing
        state_->note_end(done_, id_);
        changes_.mark(exec_);
      } else {
        const auto order = engine_->lock_order();
        backend::record_at(exec_, *end_);
        done_ = end_;
        state_->note_end(done_, id_);
      }
      state_->done = done_;
      state_->who = id_;
      state_->keeper = engine_;
    }
    return ticket(std::move(state_));
  }
  /// After finish(): the verb's end; null if it has ended or belongs to a graph.
  [[nodiscard]] const event_handle& done() const { return done_; }

 private:
  /// States of ended work return first: the pool of a steady loop then holds as many as are in flight.
  ticket_state_handle take_state() {
    if (!capturing_) engine_->reap();
    return engine_->take_ticket_state();
  }

  /// Host instances are never captured.
  void hand_to_graph() {
    if constexpr (!is_host_exec<Exec>) give_to_graph(exec_, verb_, engine_, *state_);
  }
  void follow(const std::shared_ptr<access_tracker>& accesses, bool writes) {
    if (capturing_ || accesses == nullptr) return;
    if constexpr (is_host_exec<Exec>) {
      writes ? accesses->wait_for_all() : accesses->wait_for_writes();
    } else {
      for (const auto& each : state_->earlier_work(*accesses, writes, id_)) backend::wait_for(exec_, *each);
      state_->touch(accesses, writes);
    }
  }
  void note_change(const auto& array) {
    changes_.add(array, [this](const auto& kept) { return hold(kept), &label("mark_changed"); });
  }

  trace_span span_;                    // of the whole call
  typename backend::device_guard on_;  // Kokkos leaves its own device current
  Exec exec_;
  const char* verb_;
  bool capturing_;
  instance_id id_;
  std::shared_ptr<engine<backend>> engine_;
  ticket_state_handle state_;
  std::shared_ptr<typename backend::native_event> end_;
  std::shared_ptr<report_writer> report_;
  std::shared_ptr<Exec> side_stream_;
  event_handle done_;
  change_marks changes_;
};

}  // namespace ferry::detail
