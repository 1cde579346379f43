// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

struct ticket_state;
/// Shared with its states, which return to it.
using ticket_state_pool = free_list<std::unique_ptr<ticket_state>>;

/// Deleter of a state: returns it to its pool.
struct ticket_state_return {
  void operator()(ticket_state* ended) const noexcept;
};
using ticket_state_handle = std::unique_ptr<ticket_state, ticket_state_return>;

/// Keeps the states of detached tickets until their work has ended, and then their findings.
class ticket_state_keeper {
 public:
  ticket_state_keeper() = default;
  ticket_state_keeper(const ticket_state_keeper&) = delete;
  ticket_state_keeper& operator=(const ticket_state_keeper&) = delete;
  virtual ~ticket_state_keeper() = default;
  virtual void keep(ticket_state_handle work) noexcept = 0;
  /// Keeps a finding of instance `who`.
  virtual void add_finding(instance_id who, const std::exception_ptr& error) noexcept = 0;
  /// The oldest finding of detached work of an instance that has ended; null for none. Each comes once.
  /// The stream of the instance names captured work, which has no id of its instance.
  [[nodiscard]] virtual std::exception_ptr take_finding(instance_id who, stream_handle stream) noexcept = 0;
};

/// Callbacks for a verb that wrote nothing.
struct rollback {
  std::shared_ptr<void> owner;          ///< the argument of both
  void (*undo)(void* owner) = nullptr;  ///< called before wait() throws
  /// Called instead of throwing, for values that are not finite. `counted`: whether this run of the verb was
  /// counted; runs of a captured verb are not.
  void (*skip)(void* owner, bool counted) = nullptr;
};

/// The sources of a verb's findings, and the facts about its arguments for an error message.
struct finding_sources {
  std::shared_ptr<report_writer> device;
  bool host = false;  ///< true if the host part writes ticket_state::by_host
  /// The findings of a plan that checked its indices. A detached verb returns the plan's memory at once.
  std::shared_ptr<report_writer> plan;
  index_report (*report_of_plan)(const report_writer&) = nullptr;
  bool signed_plan = false;
  const char* verb = "";
  array_note table;                                  ///< the table of the indices
  std::shared_ptr<const table_descriptions> tables;  ///< instead, of a verb on several tables
  array_note values;  ///< the array that the verb scanned for non-finite values
  std::int64_t width = 0;
  std::int64_t positions = 0;
  bool signed_indices = false;

  void use(const plan_storage& store) {
    if (!store.checked) return;
    plan = store.report;
    report_of_plan = store.report_of;
    signed_plan = store.signed_indices;
  }
};

/// The work of one verb in flight: its end, the resources that it needs until then, and the sources of its
/// errors. Later verbs reuse the object with the capacity of its lists, so a steady loop does not use the
/// heap.
struct ticket_state {
  event_handle completion;
  /// Resources kept until the work has ended.
  std::vector<std::shared_ptr<void>> resources;
  struct used_resource {
    std::shared_ptr<void> owner;
    used_object* object;  ///< with a promise that record_end() or withdraw() fulfils; null for none
    bool writes;
    bool until_recorded;  ///< record_end() drops `owner`
  };
  /// Tensors and memory that record the work themselves, so they may be released before it has ended.
  std::vector<used_resource> uses;
  /// Makes the error from the findings, once the work has ended; null if nothing is checked.
  std::exception_ptr (*find_error)(ticket_state& state) = nullptr;
  finding_sources sources;
  host_findings by_host;
  rollback ends;
  /// If set, detach() calls it and does nothing else.
  void (*give_up)(ticket_state& state) noexcept = nullptr;
  std::weak_ptr<ticket_state_keeper> keeper;
  instance_id who = 0;  ///< 0 for a captured verb: CUDA gives no id of a stream that is being captured
  stream_handle stream = nullptr;
  process_mark process;
  /// For a captured verb: the end of the work enqueued on its instance so far. Throws before the capture has
  /// ended.
  std::function<event_handle()> mark;

  // Used while the verb is launched.
  std::vector<event_handle> earlier;
  std::vector<std::unique_ptr<std::string>> labels;
  std::size_t labels_used = 0;

  ticket_state* next = nullptr;  ///< in the list of its keeper
  std::shared_ptr<ticket_state_pool> pool;

  /// Joins the non-empty parts with "::". The text lives until clear().
  const std::string& label(std::initializer_list<std::string_view> parts);

  /// The events that work of `instance` must come after; valid until the next call.
  const std::vector<event_handle>& earlier_work(const access_tracker& accesses, bool writes,
                                                instance_id instance);
  /// Keeps `owner`, and promises its `object` that the work uses it; null for no promise.
  void add_use(std::shared_ptr<void> owner, used_object* object, bool writes);
  /// Promises the tracker of an array that the work uses it. A tracker ends with its array, which others ask
  /// of it, so the ticket keeps it only until the end is recorded.
  void add_use(const std::shared_ptr<access_tracker>& accesses, bool writes);
  void record_end(const event_handle& end, instance_id instance) noexcept;
  void withdraw() noexcept;

  /// True if kernels have found an error. Reads words in host memory, whether the kernels have ended or not.
  [[nodiscard]] bool is_raised() const;
  /// True if a graph or a plan, too, holds a report: later kernels may find an error.
  [[nodiscard]] bool can_be_raised() const;

  /// True if Kokkos was finalized, so that the work has ended and the device may be gone. Kokkos counts as
  /// initialized while finalize runs its hooks; then work may still be in flight.
  [[nodiscard]] bool has_outlived_kokkos() const;

  /// The error from the findings, after the end of the work; null for none.
  [[nodiscard]] std::exception_ptr finding() noexcept;
  /// After detach(): nothing is taken back or counted as skipped, because later steps may have been counted.
  void take_nothing_back() noexcept;

  /// Resets the object. Lists keep their capacity.
  void clear() noexcept;
};

/// A state of the pool, which lives as long as its states are in use.
[[nodiscard]] ticket_state_handle take_ticket_state(const std::shared_ptr<ticket_state_pool>& pool);

}  // namespace ferry::detail
