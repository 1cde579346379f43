#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/block_lease.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

struct ticket_state;
class ticket_state_pool;

/// Where a state goes when nobody needs it any more.
struct ticket_state_return {
  void operator()(ticket_state* ended) const noexcept;
};
using ticket_state_handle = std::unique_ptr<ticket_state, ticket_state_return>;

/// Keeps the states of detached tickets until their work has ended.
class ticket_state_keeper {
 public:
  ticket_state_keeper() = default;
  ticket_state_keeper(const ticket_state_keeper&) = delete;
  ticket_state_keeper& operator=(const ticket_state_keeper&) = delete;
  virtual ~ticket_state_keeper() = default;
  virtual void keep(ticket_state_handle work) noexcept = 0;
};

/// What the caller's side does where a verb turned out to write nothing.
struct rollback {
  std::shared_ptr<void> owner;          ///< what both work on
  void (*undo)(void* owner) = nullptr;  ///< before wait() throws
  /// Where values are not finite, instead of throwing; says whether the verb was counted for this time that it
  /// ran, which those that a graph repeats are not.
  void (*skip)(void* owner, bool counted) = nullptr;
};

/// Where a verb's findings are, and what an error says of its arguments.
struct finding_sources {
  std::shared_ptr<report_writer> device;
  bool host = false;  ///< whether ticket_state::by_host was handed out
  std::shared_ptr<plan_storage> plan;
  const char* verb = "";
  array_note table;   ///< what the indices are rows of
  array_note values;  ///< what the verb looked at, where that may become an error
  std::int64_t width = 0;
  std::int64_t positions = 0;
  bool signed_indices = false;
};

/// One verb's work in flight: when it ends, what it needs until then, and what may have gone wrong. Reused by later
/// verbs, with the capacity that its lists have grown to: a steady loop leaves the heap alone.
struct ticket_state {
  event_handle done;
  /// Kept until the work has ended.
  std::vector<std::shared_ptr<void>> resources;
  /// Memory that notes the work in flight itself, so it may be let go of before that.
  std::vector<std::shared_ptr<void>> memory;
  /// Composes the error from what the kernels found; null where nothing is checked. Called once the work has ended.
  std::exception_ptr (*find_error)(ticket_state& of) = nullptr;
  finding_sources sources;
  host_findings by_host;
  rollback ends;
  std::weak_ptr<ticket_state_keeper> keeper;
  instance_id who = 0;
  /// Of a verb that became part of a graph: the point that its instance has reached now. Throws while the capture
  /// goes on.
  std::function<event_handle()> mark;

  // While the verb is being launched.
  struct touch {
    std::shared_ptr<access_tracker> accesses;
    bool writes;
  };
  std::vector<touch> touched;
  std::vector<event_handle> earlier;
  std::deque<std::string> labels;
  std::size_t labels_used = 0;

  ticket_state* next = nullptr;  ///< in its keeper's list
  std::shared_ptr<ticket_state_pool> pool;

  /// The parts that are not empty, "::" between them. Lives until clear().
  const std::string& label(std::initializer_list<std::string_view> parts) {
    if (labels_used == labels.size()) labels.emplace_back();
    std::string& made = labels[labels_used];
    made.clear();
    for (const std::string_view part : parts) {
      if (part.empty()) continue;
      if (!made.empty()) made.append("::");
      made.append(part);
    }
    ++labels_used;
    return made;
  }

  /// What work of instance `by` must come after; valid until the next call.
  const std::vector<event_handle>& earlier_work(const access_tracker& accesses, bool writes, instance_id by) {
    earlier.clear();
    if (writes)
      accesses.before_write(by, earlier);
    else
      accesses.before_read(by, earlier);
    return earlier;
  }
  /// The work uses this tensor. Takes the room to say so, which note_end() fills and withdraw() gives back.
  void touch(const std::shared_ptr<access_tracker>& accesses, bool writes) {
    touched.push_back({nullptr, writes});
    accesses->promise(writes);
    touched.back().accesses = accesses;
  }
  /// The work uses this lease of a block. Its end is noted where that is `noted`.
  void keep_block(const std::shared_ptr<void>& lease, bool noted) {
    memory.push_back(nullptr);
    if (block_loan* const loan = loan_of(lease); loan != nullptr && noted) loan->promise();
    memory.back() = lease;
  }
  void note_end(const event_handle& end, instance_id by) noexcept {
    for (const auto& each : touched) each.accesses->note(each.writes, end, by);
    touched.clear();
    earlier.clear();
    for (const auto& each : memory)
      if (block_loan* const loan = loan_of(each)) loan->used_as_promised(end, by);
  }
  void withdraw() noexcept {
    for (const auto& each : touched)
      if (each.accesses != nullptr) each.accesses->withdraw(each.writes);
    for (const auto& each : memory)
      if (block_loan* const loan = loan_of(each)) loan->withdraw();
  }

  /// Whether Kokkos was finalized since, so that the work has ended and the device may be gone. Kokkos counts as
  /// initialized while finalize runs its hooks, when work may still be in flight.
  [[nodiscard]] bool has_outlived_kokkos() const {
    return pool != nullptr && keeper.expired() && !Kokkos::is_initialized();
  }

  /// As new, but for capacities.
  void clear() noexcept {
    done = nullptr;
    resources.clear();
    memory.clear();
    find_error = nullptr;
    sources = {};
    by_host = {};
    ends = {};
    keeper.reset();
    mark = nullptr;
    touched.clear();
    earlier.clear();
    labels_used = 0;
    next = nullptr;
  }
};

/// States for verbs to come. Thread-safe.
class ticket_state_pool : public std::enable_shared_from_this<ticket_state_pool> {
 public:
  [[nodiscard]] ticket_state_handle take() {
    ticket_state_handle taken;
    {
      const std::lock_guard lock(guard_);
      if (free_.empty()) {
        free_.reserve(++made_);
        taken.reset(new ticket_state);
      } else {
        taken.reset(free_.back().release());
        free_.pop_back();
      }
    }
    taken->pool = shared_from_this();
    return taken;
  }
  void put(std::unique_ptr<ticket_state> ended) noexcept {
    const std::lock_guard lock(guard_);
    free_.push_back(std::move(ended));
  }

 private:
  std::mutex guard_;
  std::vector<std::unique_ptr<ticket_state>> free_;  // has room for all that were made
  std::size_t made_ = 0;
};

inline void ticket_state_return::operator()(ticket_state* ended) const noexcept {
  std::unique_ptr<ticket_state> back(ended);
  back->clear();
  if (const auto pool = std::move(back->pool)) pool->put(std::move(back));
}

}  // namespace ferry::detail
