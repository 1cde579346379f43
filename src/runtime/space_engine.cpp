// SPDX-License-Identifier: Apache-2.0
// The engine of each execution space that Kokkos has.
#include "../../backends/enabled.hpp"
#include "../memory/block_cache.hpp"

#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/report.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Ends a captured verb. The graph owns what its kernels use for as long as it can be launched. It releases
/// that in a thread that may not call the device's functions. The ticket shares the ownership.
template <class Exec>
[[gnu::cold]] void give_to_graph(const Exec& exec, const char* verb, const std::shared_ptr<engine>& owner,
                                 ticket_state& state) {
  auto holder = std::make_shared<device_instance<Exec>>(exec);
  owner->watch(holder);
  state.mark = [owner = std::weak_ptr(owner), holder = std::move(holder), verb]() -> event_handle {
    const auto alive = owner.lock();
    if (alive == nullptr) return nullptr;  // Kokkos was finalized: all work has ended
    const Exec instance = holder->get();
    if (execution_backend<Exec>::capturing(instance))
      throw invalid_argument(joined(
          "ferry::", verb,
          ": the verb is still being captured into a graph, so there is nothing to wait for; end the capture and launch the graph first"));
    return alive->record(instance);
  };
  if (state.resources.empty() && state.uses.empty()) return;
  auto content = std::make_shared<std::vector<std::shared_ptr<void>>>(state.resources);
  for (const auto& use : state.uses) content->push_back(use.owner);
  owner->dropped()->expect(1);
  const auto last = [dropped = owner->dropped()](std::shared_ptr<void>* bundle) noexcept {
    dropped->put(std::move(bundle));
  };
  execution_backend<Exec>::retain(exec,
                                  std::shared_ptr<void>(new std::shared_ptr<void>(std::move(content)), last));
}

/// Resets the first `bytes` bytes of a report.
template <class Exec>
void clean_bytes(const report_writer& report, std::size_t bytes) {
  if (!report.is_raised()) return;
  const index_report nothing{};
  execution_backend<Exec>::write(report.findings, &nothing, bytes);
  *static_cast<volatile unsigned int*>(report.raised) = 0u;
}

template <ExecutionSpace Exec>
index_report read_report(const report_writer& report) {
  index_report findings;
  if (report.is_raised()) execution_backend<Exec>::read(&findings, report.findings, sizeof findings);
  return findings;
}

/// Resets what was found, and not the counts that kernels reset themselves: a graph may run them again.
template <ExecutionSpace Exec>
void clean_report(const report_writer& report) {
  clean_bytes<Exec>(report, offsetof(index_report, lock));
}

/// A pool of clean index reports for the verbs. A raised report is cleaned when its lease returns.
template <class Exec>
class report_pool {
  using backend = execution_backend<Exec>;
  /// More reports than a device's queue holds kernels (about a thousand), so a host that runs ahead of the
  /// device makes the pool grow once at most.
  static constexpr std::size_t batch_size = 1024;
  struct batch {
    allocation<typename backend::scratch_space> findings;
    allocation<pinned_space> raised;
    report_writer slots[batch_size];
  };
  /// Shared with the leases, which may outlive the pool.
  struct state {
    free_list<report_writer*> idle;
    std::mutex guard;
    std::vector<std::unique_ptr<batch>> batches;
  };

 public:
  explicit report_pool(int device) : device_(device) {}

  [[nodiscard]] std::shared_ptr<report_writer> take() {
    report_writer* slots = nullptr;
    report_writer* const slot = state_->idle.take_or_make(batch_size, [&] {
      if (slots == nullptr) slots = add_batch();
      return slots++;
    });
    const auto give_back = [owner = state_](report_writer* lent) noexcept {
      try {
        clean_bytes<Exec>(*lent, sizeof(index_report));
        owner->idle.put(std::move(lent));
      } catch (...) {
        // The device failed; those who waited have the error. This report is not used again.
      }
    };
    return {slot, give_back, node_allocator<report_writer>()};
  }

 private:
  /// Allocates without the lock, because a user's allocation observer may call verbs.
  [[gnu::cold]] report_writer* add_batch() {
    std::unique_ptr<batch> fresh(new batch);
    fresh->findings = {"reports", batch_size * sizeof(index_report), device_};
    fresh->raised = {"reports::raised", batch_size * sizeof(unsigned int)};
    const std::vector<index_report> clean(batch_size);
    backend::write(fresh->findings.data(), clean.data(), batch_size * sizeof(index_report));
    auto* flags = static_cast<unsigned int*>(fresh->raised.data());
    for (std::size_t i = 0; i < batch_size; ++i) {
      flags[i] = 0u;
      fresh->slots[i] = {static_cast<index_report*>(fresh->findings.data()) + i, flags + i};
    }
    const std::lock_guard lock(state_->guard);
    return state_->batches.emplace_back(std::move(fresh))->slots;
  }

  int device_;
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

/// Makes a verb's error, null for none. The most severe finding comes first. Calls rollback::skip instead for
/// values that are not finite, if the verb has one.
template <class Exec>
std::exception_ptr error_of_kernels(ticket_state& state) {
  const finding_sources& sources = state.sources;
  index_report by_host, by_plan, by_device;
  if (sources.host && state.by_host.raised != 0u) by_host = state.by_host.report;
  if (sources.plan != nullptr) by_plan = sources.report_of_plan(*sources.plan);
  if (sources.device != nullptr) {
    by_device = read_report<Exec>(*sources.device);
    clean_report<Exec>(*sources.device);  // the verb may run again, as part of a graph
  }
  const auto error_of = [&](const index_report& report, bool signed_indices) {
    if (sources.tables != nullptr)
      return found_error(report, sources.verb, *sources.tables, sources.values, sources.positions,
                         signed_indices);
    return found_error(report, sources.verb, sources.table, sources.values, sources.width, sources.positions,
                       signed_indices);
  };
  if (by_host.out_of_range != 0) return error_of(by_host, sources.signed_indices);
  if (by_plan.out_of_range != 0) return error_of(by_plan, sources.signed_plan);
  if (by_device.out_of_range != 0) return error_of(by_device, sources.signed_indices);
  if (by_host.duplicates != 0) return error_of(by_host, sources.signed_indices);
  if (by_device.overflows != 0) return error_of(by_device, sources.signed_indices);
  if (by_device.duplicates != 0) return error_of(by_device, sources.signed_indices);
  const index_report& last = by_host.nonfinite != 0 ? by_host : by_device;
  if (last.nonfinite == 0) return nullptr;
  if (state.ends.skip == nullptr) return error_of(last, sources.signed_indices);
  state.ends.skip(state.ends.owner.get(), /*counted*/ !state.mark);
  return nullptr;
}

template <class Exec>
class space_engine final : public engine {
  using backend = execution_backend<Exec>;

 public:
  explicit space_engine(int device) : engine(device) { backend::enter_device(device); }
  ~space_engine() override { close(); }

  std::shared_ptr<void> device_scratch(std::size_t bytes, bool capturing) override {
    const typename backend::capture_pause pause(capturing);
    return device_.take(bytes);
  }
  std::shared_ptr<void> device_scratch(std::size_t bytes, instance_id who,
                                       function_ref<void(event&)> order_after) override {
    return device_.take(bytes, who, order_after);
  }
  std::shared_ptr<void> pinned_scratch(std::size_t bytes, bool capturing) override {
    const typename backend::capture_pause pause(capturing);
    return pinned_.take(bytes);
  }
  std::shared_ptr<report_writer> report(bool capturing) override {
    const typename backend::capture_pause pause(capturing);
    return reports_.take();
  }

  bool is_host() const override { return is_host_exec<Exec>; }
  event_handle record_on(const void* exec) override { return backend::record(typed(exec), events_); }
  std::shared_ptr<event> take_event(const void* exec) override {
    return backend::take_event(typed(exec), events_);
  }
  void record_at([[maybe_unused]] const void* exec, [[maybe_unused]] event& point) override {
    if constexpr (!is_host_exec<Exec>)
      backend::record_at(typed(exec), static_cast<typename backend::native_event&>(point));
  }
  void wait_for(const void* exec, event& before) override { backend::wait_for(typed(exec), before); }
  void fence(const void* exec, const std::string& label) override { backend::fence(typed(exec), label); }
  void give_to_graph([[maybe_unused]] const void* exec, [[maybe_unused]] const char* verb,
                     [[maybe_unused]] ticket_state& state) override {
    if constexpr (!is_host_exec<Exec>)  // host instances are never captured
      detail::give_to_graph(typed(exec), verb, engine::get_on<Exec>(device()), state);
  }
  std::shared_ptr<void> side_stream_of(const void* exec) override {
    const typename backend::capture_pause pause(true);  // an instance allocates
    Exec* const stream = idle_streams_->take_or_make(1, [&] { return make_stream(exec); });
    const auto give_back = [idle = idle_streams_](Exec* dropped) noexcept { idle->put(std::move(dropped)); };
    return std::shared_ptr<Exec>(stream, give_back, node_allocator<Exec>());
  }
  error_maker find_error() const override { return &error_of_kernels<Exec>; }

 private:
  static const Exec& typed(const void* exec) { return *static_cast<const Exec*>(exec); }

  Exec* make_stream(const void* exec) {
    std::unique_ptr<Exec> fresh;
    if (exec == nullptr) {
      fresh = std::make_unique<Exec>(backend::template instance_on<Exec>(device()));
    } else {
      [[maybe_unused]] const auto lock = backend::lock_instances();
      fresh = std::make_unique<Exec>(Kokkos::Experimental::partition_space(typed(exec), 1)[0]);
    }
    const std::lock_guard lock(streams_guard_);
    return streams_.emplace_back(std::move(fresh)).get();
  }

  std::mutex streams_guard_;
  std::vector<std::unique_ptr<Exec>> streams_;  ///< end after the pools, which wait for work on them
  std::shared_ptr<free_list<Exec*>> idle_streams_ = std::make_shared<free_list<Exec*>>();
  event_pool<typename backend::native_event> events_;
  block_cache<typename backend::scratch_space> device_{device()};
  block_cache<pinned_space> pinned_{device()};
  report_pool<Exec> reports_{device()};
};

/// The engines of one execution space by device. Thread-safe.
template <class Exec>
class engine_set {
 public:
  engine_set() { engine_on(-1); }

  engine& engine_on(int device) {
    require_kokkos("ferry");
    const std::lock_guard lock(guard_);
    if (device < 0) device = execution_backend<Exec>::default_device();
    auto& known = by_device_[device];
    if (known == nullptr) known = std::make_unique<space_engine<Exec>>(device);
    return *known;
  }

 private:
  std::mutex guard_;
  std::map<int, std::unique_ptr<space_engine<Exec>>> by_device_;
};

template <ExecutionSpace Exec>
std::shared_ptr<engine> engine::get_on(int device) {
  auto set = until_finalize<engine_set<Exec>>();
  engine& member = set->engine_on(device);
  return {std::move(set), &member};
}

template <ExecutionSpace Exec>
void engine::release() {
  owner_until_finalize<engine_set<Exec>>().release();
}

#define FERRY_ENGINE_OF(EXEC)                                    \
  template std::shared_ptr<engine> engine::get_on<EXEC>(int);    \
  template void engine::release<EXEC>();                         \
  template index_report read_report<EXEC>(const report_writer&); \
  template void clean_report<EXEC>(const report_writer&);
FERRY_FOR_EXECUTION_SPACES(FERRY_ENGINE_OF)
#undef FERRY_ENGINE_OF

}  // namespace ferry::detail
