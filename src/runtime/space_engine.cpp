// SPDX-License-Identifier: Apache-2.0
// The engine of each execution space that Kokkos has.
#include "../../backends/enabled.hpp"
#include "../memory/block_cache.hpp"
#include "report_pool.hpp"

#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/detail/require_kokkos.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/event_pool.hpp>
#include <ferry/runtime/detail/findings.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The instance of a captured verb, which its ticket queries for progress until the engine is destroyed.
template <class Exec>
class captured_instance final : public kept_instance {
 public:
  explicit captured_instance(const Exec& exec) : exec_(exec) {}
  void drop() noexcept override {
    const std::lock_guard lock(guard_);
    exec_.reset();
  }
  /// The end of the work enqueued so far; null after Kokkos::finalize, when all work has ended.
  event_handle mark(engine& home, const char* verb) {
    const std::lock_guard lock(guard_);
    if (!exec_) return nullptr;
    if (execution_backend<Exec>::capturing(*exec_))
      throw invalid_argument(
          "ferry::" + std::string(verb) +
          ": the verb is still being captured into a graph, so there is nothing to wait for; end the capture and launch the graph first");
    return home.record(*exec_);
  }

 private:
  std::mutex guard_;
  std::optional<Exec> exec_;
};

/// Ends a captured verb. The graph owns what its kernels use for as long as it can be launched. It releases
/// that in a thread that may not call the device's functions. The ticket shares the ownership.
template <class Exec>
[[gnu::cold]] void give_to_graph(const Exec& exec, const char* verb, const std::shared_ptr<engine>& home,
                                 ticket_state& state) {
  auto instance = std::make_shared<captured_instance<Exec>>(exec);
  home->watch(instance);
  state.mark = [home = std::weak_ptr(home), instance = std::move(instance), verb]() -> event_handle {
    const auto alive = home.lock();
    return alive == nullptr ? nullptr : instance->mark(*alive, verb);
  };
  if (state.resources.empty() && state.uses.empty()) return;
  auto content = std::make_shared<std::vector<std::shared_ptr<void>>>(state.resources);
  for (const auto& use : state.uses) content->push_back(use.owner);
  const auto last = [box = home->dropped()](std::shared_ptr<void>* bundle) { box->put(bundle); };
  execution_backend<Exec>::retain(exec,
                                  std::shared_ptr<void>(new std::shared_ptr<void>(std::move(content)), last));
}

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
  std::shared_ptr<void> side_stream(const void* exec) override {
    const typename backend::capture_pause pause(true);  // an instance allocates
    return side_streams().take(typed(exec));
  }
  error_maker find_error() const override { return &error_of_kernels<Exec>; }

 private:
  static const Exec& typed(const void* exec) { return *static_cast<const Exec*>(exec); }

  const void* instance() override {
    const std::lock_guard lock(instance_guard_);
    if (instance_ == nullptr)
      instance_ = std::make_shared<Exec>(backend::template instance_on<Exec>(device()));
    return instance_.get();
  }

  event_pool<typename backend::native_event> events_{nodes()};
  block_cache<typename backend::scratch_space> device_{nodes(), device()};
  block_cache<pinned_space> pinned_{nodes(), device()};
  report_pool<backend> reports_{nodes(), device()};
  std::mutex instance_guard_;
  std::shared_ptr<void> instance_;
};

/// The engines of one execution space by device. That of the device that Kokkos uses is made first, and found
/// without a lock. Thread-safe.
template <class Exec>
class engine_set {
 public:
  engine_set() : first_((require_kokkos("ferry"), execution_backend<Exec>::default_device())) {}
  engine_set(const engine_set&) = delete;
  engine_set& operator=(const engine_set&) = delete;

  engine& engine_on(int device) {
    if (device == first_.device()) return first_;
    const std::lock_guard lock(guard_);
    for (const auto& engine : others_by_device_)
      if (engine->device() == device) return *engine;
    return *others_by_device_.emplace_back(std::make_unique<space_engine<Exec>>(device));
  }

 private:
  space_engine<Exec> first_;
  std::mutex guard_;
  std::vector<std::unique_ptr<space_engine<Exec>>> others_by_device_;
};

template <ExecutionSpace Exec>
std::shared_ptr<engine> engine::get_on(int device) {
  auto set = until_finalize<engine_set<Exec>>();
  engine& member = set->engine_on(device);
  return {std::move(set), &member};
}

template <ExecutionSpace Exec>
void engine::release() {
  place_until_finalize<engine_set<Exec>>().release();
}

template <ExecutionSpace Exec>
index_report read_report(const report_writer& report) {
  return report_pool<execution_backend<Exec>>::read(report);
}
template <ExecutionSpace Exec>
void clean_report(const report_writer& report) {
  report_pool<execution_backend<Exec>>::clean_findings(report);
}

#define FERRY_ENGINE_OF(EXEC)                                    \
  template std::shared_ptr<engine> engine::get_on<EXEC>(int);    \
  template void engine::release<EXEC>();                         \
  template index_report read_report<EXEC>(const report_writer&); \
  template void clean_report<EXEC>(const report_writer&);
FERRY_FOR_EXECUTION_SPACES(FERRY_ENGINE_OF)
#undef FERRY_ENGINE_OF

}  // namespace ferry::detail
