// SPDX-License-Identifier: Apache-2.0

#include <ferry/runtime/detail/launch_context.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/tools.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/transfer_statistics.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

namespace {

/// Adds the name of the verb to a bad_alloc or budget_exceeded of `take`.
template <class Take>
std::shared_ptr<void> take_for_verb(const char* verb, const Take& take) {
  const auto with_verb = [verb](const error& failed) {
    return std::string("ferry::") + verb + ": " + failed.what();
  };
  try {
    return take();
  } catch (const budget_exceeded& failed) {
    throw budget_exceeded(with_verb(failed));
  } catch (const bad_alloc& failed) {
    throw bad_alloc(with_verb(failed));
  }
}

/// Reports to Kokkos Tools the table and the rows of a call, as an event in the region of the call.
[[gnu::cold]] void mark_rows(const untyped_array& table, std::int64_t positions, bool has_plan) {
  Kokkos::Tools::markEvent(std::string(table.shape.label.view()) + ": " + std::to_string(positions) +
                           (has_plan ? " positions of a plan, " : " positions, ") +
                           std::to_string(table.shape.rows()) + " rows");
}

}  // namespace

verb_call::verb_call(const void* exec, const char* verb, std::shared_ptr<engine> owner, bool capturing,
                     instance_id id, stream_handle stream)
    : region_("ferry::", verb, !capturing),
      exec_(exec),
      verb_(verb),
      capturing_(capturing),
      id_(id),
      engine_(std::move(owner)),
      state_(engine_->take_ticket_state(capturing)) {
  state_->stream = stream;
  if (!capturing_) end_ = engine_->take_event(exec_);
}

verb_call::~verb_call() {
  if (state_ == nullptr) return;
  if (!capturing_) state_->withdraw();
  if (state_->resources.empty() && state_->uses.empty()) return;
  try {
    if (capturing_) {
      engine_->give_to_graph(exec_, verb_, *state_);  // captured work runs with every launch
    } else {
      static const std::string label = "ferry::abandon";  // short: made without memory
      engine_->fence(exec_, label);
      if (side_stream_ != nullptr) engine_->fence(side_stream_.get(), label);
    }
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "ferry: %s\n", lost.what());
    if (capturing_) static_cast<void>(state_.release());  // leaked, because the graph's kernels still use it
  }
}

void verb_call::refuse_capture(std::string_view reason) const {
  if (capturing_)
    throw invalid_argument(
        joined("ferry::", verb_, ": the instance is being captured into a graph, ", reason));
}

std::shared_ptr<void> verb_call::block(std::size_t bytes) {
  auto lease = take_for_verb(verb_, [&] {
    if (capturing_) return engine_->device_scratch(bytes, true);
    return engine_->device_scratch(bytes, id_, [this](event& earlier) { engine_->wait_for(exec_, earlier); });
  });
  use_block(lease);
  return lease;
}

void verb_call::use_block(const std::shared_ptr<void>& lease) {
  state_->add_use(lease, capturing_ ? nullptr : block_of_lease(lease), true);
}

void* verb_call::pinned_bytes(std::size_t bytes) {
  return hold(take_for_verb(verb_, [&] { return engine_->pinned_scratch(bytes, capturing_); }));
}

void* verb_call::hold(std::shared_ptr<void> resource) {
  state_->resources.push_back(std::move(resource));
  return state_->resources.back().get();
}

void* verb_call::take_side_stream() {
  if (side_stream_ == nullptr) {
    side_stream_ = engine_->side_stream_of(exec_);
    hold(side_stream_);
  }
  return side_stream_.get();
}

report_writer verb_call::report() {
  if (report_ == nullptr) {
    report_ = engine_->report(capturing_);
    hold(report_);
  }
  return *report_;
}

report_writer verb_call::host_report() {
  state_->sources.host = true;
  return {&state_->by_host.report, &state_->by_host.raised};
}

void verb_call::use(const std::shared_ptr<plan_storage>& store, bool reports) {
  if (!engine_->is_host() && !store->on_host && store->device != engine_->device())
    throw invalid_argument(joined("ferry::", verb_, ": the plan was made on device ", store->device,
                                  ", but the instance is of device ", engine_->device(),
                                  "; make a plan with the instance"));
  if (reports) state_->sources.use(*store);
  if (store->values_description.rank != 0) state_->sources.values = store->values_description;
  has_plan_ = true;
  state_->add_use(store, nullptr, false);
  if (store->memory != nullptr) use_block(store->memory);
  if (store->base != nullptr && store->base->memory != nullptr) use_block(store->base->memory);
  hold(store->report);
  follow(store->accesses, false);
  if (!capturing_ && store->completion != nullptr && store->made_by != id_)
    engine_->wait_for(exec_, *store->completion);
}

ticket verb_call::finish(const untyped_array& table, std::int64_t positions, bool signed_indices) {
  if (region_.is_recording()) mark_rows(table, positions, has_plan_);
  finding_sources& sources = state_->sources;
  if (report_ == nullptr && !sources.host && sources.plan == nullptr) return finish();
  state_->find_error = engine_->find_error();
  sources.device = std::move(report_);
  sources.table = table.note();
  sources.width = table.shape.width();
  sources.positions = positions;
  sources.signed_indices = signed_indices;
  return finish();
}

ticket verb_call::finish() {
  const bool on_host = engine_->is_host();
  state_->sources.verb = verb_;
  state_->who = id_;
  state_->keeper = engine_;
  if (capturing_) {
    engine_->give_to_graph(exec_, verb_, *state_);
  } else {
    if (on_host) {
      completion_ = engine_->record_on(exec_);  // blocks, and records nothing
      state_->record_end(completion_, id_);
    } else {
      const auto order = engine_->lock_order();
      engine_->record_at(exec_, *end_);
      completion_ = end_;
      state_->record_end(completion_, id_);
    }
    state_->completion = completion_;
  }
  return ticket(std::move(state_));
}

void verb_call::reads_from(const untyped_array& array, bool anywhere) {
  if (!anywhere) require_device_of(array);
  follow(array.shape.accesses, false);
}

void verb_call::writes_to(const untyped_array& array, bool anywhere) {
  if (!anywhere) require_device_of(array);
  follow(array.shape.accesses, true);
}

void verb_call::require_write_to(const untyped_array& array) {
  require_device_of(array);
  const auto& accesses = array.shape.accesses;
  if (!capturing_ && accesses != nullptr) state_->earlier_work(*accesses, true, id_);
}

void verb_call::wait_for_host_access(const untyped_array& array, bool writes) {
  if (!array.on_host) {
    writes ? writes_to(array) : reads_from(array);
  } else if (access_tracker* const accesses = array.shape.accesses.get(); accesses != nullptr) {
    writes ? accesses->wait_for_all() : accesses->wait_for_writes();
  }
}

void verb_call::require_device_of(const untyped_array& array) const {
  if (array.on_host || engine_->is_host()) return;
  const int device = array.shape.device();
  if (device >= 0 && device != engine_->device()) [[unlikely]]
    refuse_array_device(verb_, array.note(), device, engine_->device());
}

void verb_call::follow(const std::shared_ptr<access_tracker>& accesses, bool writes) {
  if (accesses == nullptr) return;
  if (capturing_) {
    if (writes) accesses->record_untracked_use();  // each launch of the graph writes
  } else if (engine_->is_host()) {
    writes ? accesses->wait_for_all() : accesses->wait_for_writes();
  } else {
    for (const auto& earlier : state_->earlier_work(*accesses, writes, id_))
      engine_->wait_for(exec_, *earlier);
    state_->add_use(accesses, writes);
  }
}

void refuse_rows(const char* verb, const array_note& array, bool empty) {
  if (!empty)
    throw invalid_argument(joined("ferry::", verb, ": the rows of ", array.describe(),
                                  " are strided; use ferry::copy to make a dense array of them"));
  constexpr const char* state = " is an empty handle without extents: it was moved from, or never given any";
  if (array.label.empty())
    throw invalid_argument(joined("ferry::", verb, ": an array in ", array.space, state));
  throw invalid_argument(joined("ferry::", verb, ": '", array.label.view(), "'", state));
}

void require_dense_rows(const char* verb, const untyped_array& array) {
  const bool empty = array.shape.rank == 0 && array.data == nullptr;
  if (empty || !array.shape.has_dense_rows()) refuse_rows(verb, array.note(), empty);
}

void refuse_array_device(std::string_view verb, const array_note& array, int device, int instance) {
  throw invalid_argument(joined(
      "ferry::", verb, ": ", array.describe(), " lies on device ", device, ", but the instance is of device ",
      instance, "; give the verb an instance of that device, or copy the array with ferry::copy"));
}

namespace {

class waiting_calls;
thread_local waiting_calls* waiting = nullptr;

/// The calls that begin at the next before_writing() of this thread, within their lifetime.
class waiting_calls {
 public:
  waiting_calls(int first, int last, function_ref<void(int)> verb)
      : first_(first), last_(last), verb_(verb), outer_(std::exchange(waiting, this)) {}
  waiting_calls(const waiting_calls&) = delete;
  waiting_calls& operator=(const waiting_calls&) = delete;
  ~waiting_calls() {
    if (!begun_) waiting = outer_;
  }
  void begin() {
    if (std::exchange(begun_, true)) return;
    waiting = outer_;
    write_jointly(first_, last_, verb_);
  }

 private:
  int first_, last_;
  function_ref<void(int)> verb_;
  waiting_calls* outer_;  ///< begin after these
  bool begun_ = false;
};

}  // namespace

void write_jointly(int first, int last, function_ref<void(int)> verb) {
  if (first == last) return before_writing();
  waiting_calls later_calls(first + 1, last, verb);
  verb(first);
  later_calls.begin();  // if the verb had nothing to write
}

void before_writing() {
  if (waiting != nullptr) waiting->begin();
}

template <HostExecutionSpace Exec>
void launch(const Exec& exec, const std::string& label, host_loop loop) {
  if (loop.count <= 0) return;
  if (stays_in_caller(exec, loop.bytes)) {
    const tool_kernel region(exec, label);
    return loop(0);
  }
  require_own_kokkos(exec, label);
  loop.runs = std::min(loop.count, loop.thread_runs * concurrency_of(exec));
  using range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, host_range<range>(exec, loop.runs), loop);
  execution_backend<Exec>::end_launch(exec, label);
}

#define FERRY_LAUNCH_ON(EXEC) template void launch<EXEC>(const EXEC&, const std::string&, host_loop);
FERRY_FOR_HOST_EXECUTION_SPACES(FERRY_LAUNCH_ON)
#undef FERRY_LAUNCH_ON

template <ExecutionSpace Exec>
void transfer(const Exec& exec, const char* label, void* target, std::string_view target_space,
              const void* source, std::string_view source_space, std::int64_t bytes) {
  if (bytes <= 0) return;
  const transfer_region region(target_space, target, source_space, source, static_cast<std::size_t>(bytes),
                               label);
  execution_backend<Exec>::copy_async(exec, label, target, source, static_cast<std::size_t>(bytes));
}

#define FERRY_TRANSFER_ON(EXEC)                                                                \
  template void transfer<EXEC>(const EXEC&, const char*, void*, std::string_view, const void*, \
                               std::string_view, std::int64_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_TRANSFER_ON)
#undef FERRY_TRANSFER_ON

}  // namespace ferry::detail

namespace ferry {

detail::transfer_counters& detail::transfer_counters::get() {
  static transfer_counters& counters = process_wide<transfer_counters>();
  return counters;
}

std::vector<transfer_count> transfer_statistics() {
  using list = detail::transfer_counters;
  std::vector<transfer_count> counts;
  std::size_t number = 0;
  for (const auto& counter : list::get().counters) {
    const std::size_t path = number % list::names, pair = number / list::names;
    ++number;
    const std::uint64_t calls = counter.calls.load(std::memory_order_relaxed);
    if (calls == 0) continue;
    counts.push_back({list::spaces[pair / list::names], list::spaces[pair % list::names], list::paths[path],
                      calls, counter.bytes.load(std::memory_order_relaxed),
                      counter.zero_copy_bytes.load(std::memory_order_relaxed)});
  }
  return counts;
}

void reset_transfer_statistics() {
  for (auto& counter : detail::transfer_counters::get().counters)
    for (auto* count : {&counter.calls, &counter.bytes, &counter.zero_copy_bytes})
      count->store(0, std::memory_order_relaxed);
}

}  // namespace ferry
