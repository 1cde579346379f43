#pragma once

#include <ferry/execution/backend.hpp>
#include <ferry/execution/engine.hpp>
#include <ferry/execution/ticket.hpp>
#include <ferry/index/report.hpp>
#include <ferry/index/row_plan.hpp>
#include <ferry/tensor/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Where the host's share of a verb runs: on the given instance if that is the host's, else on the default
/// one.
template <class Exec>
auto host_side(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return exec;
  else
    return Kokkos::DefaultHostExecutionSpace{};
}

/// One call of a verb: the resources that it takes, and the ticket that it ends with.
template <class Exec>
class call {
 public:
  using backend = execution_backend<Exec>;

  call(const Exec& exec, const char* verb)
      : exec_(exec), verb_(verb), engine_(engine<backend>::get()), flight_(std::make_unique<flight>()) {
    engine_->reap();
  }

  call(const call&) = delete;
  call& operator=(const call&) = delete;
  /// Left by an exception: what is already enqueued must end before its memory goes to somebody else.
  ~call() {
    if (flight_ == nullptr || flight_->resources.empty()) return;
    try {
      backend::fence(exec_, "ferry::abandoned");
      if (lane_ != nullptr) backend::fence(*lane_, "ferry::abandoned");
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "ferry: %s\n", lost.what());
    }
  }

  [[nodiscard]] const Exec& exec() const { return exec_; }
  [[nodiscard]] const char* verb() const { return verb_; }

  /// Uninitialised memory that kernels of this execution space reach, kept until the verb ends.
  template <class T>
  T* scratch(std::int64_t count) {
    return static_cast<T*>(hold(engine_->device_scratch(bytes_of<T>(count))));
  }
  /// Uninitialised page-locked host memory, kept until the verb ends.
  template <class T>
  T* pinned(std::int64_t count) {
    return static_cast<T*>(hold(engine_->pinned_scratch(bytes_of<T>(count))));
  }
  void* hold(std::shared_ptr<void> resource) {
    flight_->resources.push_back(std::move(resource));
    return flight_->resources.back().get();
  }

  /// Another instance for transfers beside the verb's own, kept until the verb ends. Its work so far has ended;
  /// what is enqueued on it is not the ticket's, so order the verb's own instance behind it.
  const Exec& lane() {
    if (lane_ == nullptr) {
      lane_ = engine_->lanes().take(exec_);
      hold(lane_);
    }
    return *lane_;
  }

  /// A report for kernels of this execution space; its findings become the ticket's error.
  report_writer report() {
    if (report_ == nullptr) {
      report_ = engine_->report();
      hold(report_);
    }
    return *report_;
  }
  /// A report for the host's share of the verb.
  report_writer host_report() {
    if (host_findings_ == nullptr) {
      host_findings_ = std::make_shared<host_findings>();
      hold(host_findings_);
    }
    return {&host_findings_->report, &host_findings_->raised};
  }
  [[nodiscard]] bool host_found() const { return host_findings_ != nullptr && host_findings_->raised != 0u; }

  /// Orders this verb behind the making of a plan and lets its findings become the ticket's error.
  void use(const row_plan& plan) {
    plan_ = plan.storage();
    hold(plan_);
    if (plan_->made != nullptr) backend::wait_for(exec_, *plan_->made);
  }

  template <class T, class Space>
  void writes_to(const array_ref<T, Space>& array) {
    if constexpr (!is_host_exec<Exec> && Space::is_host_accessible)
      if (array.writes != nullptr) written_.push_back(array.writes);
  }

  void undo_by(std::function<void()> undo) { flight_->undo = std::move(undo); }

  /// Ends the call: everything enqueued so far belongs to the ticket. `table` names what the indices are rows
  /// of.
  template <class T, class Space>
  ticket finish(const array_ref<T, Space>& table, std::int64_t positions, bool signed_indices) {
    if (report_ != nullptr || host_findings_ != nullptr || plan_ != nullptr)
      flight_->verdict = [device = report_, host = host_findings_, plan = plan_, verb = std::string(verb_),
                          what = table, positions, signed_indices]() -> std::exception_ptr {
        if (host != nullptr && host->raised != 0u)
          return failure(host->report, verb, what.describe(), positions, signed_indices);
        if (plan != nullptr && plan->checked) {
          const index_report found = plan->read_report();
          if (found.out_of_range != 0)
            return failure(found, verb, what.describe(), positions, plan->signed_indices);
        }
        if (device != nullptr) {
          const index_report found = report_pool<backend>::read(*device);
          if (found.out_of_range != 0 || found.duplicates != 0)
            return failure(found, verb, what.describe(), positions, signed_indices);
        }
        return nullptr;
      };
    return finish();
  }

  /// Ends a call that checks no indices.
  ticket finish() {
    flight_->done = backend::record(exec_);
    for (const auto& writes : written_) writes->add(flight_->done);
    flight_->keep = [shared = engine_](event_handle done, std::shared_ptr<void> resources) {
      shared->keep(std::move(done), std::move(resources));
    };
    return ticket(std::move(flight_));
  }

 private:
  struct host_findings {
    index_report report;
    unsigned int raised = 0;
  };

  template <class T>
  static std::size_t bytes_of(std::int64_t count) {
    return static_cast<std::size_t>(count < 1 ? 1 : count) * sizeof(T);
  }

  static std::exception_ptr failure(const index_report& found, const std::string& verb,
                                    const std::string& table, std::int64_t positions, bool signed_indices) {
    if (found.out_of_range != 0) {
      const std::string index = signed_indices ? std::to_string(static_cast<std::int64_t>(found.first_index))
                                               : std::to_string(found.first_index);
      return std::make_exception_ptr(out_of_range(
          "ferry::" + verb + ": " + std::to_string(found.out_of_range) + " of " + std::to_string(positions) +
          " indices are outside of " + table + "; the first is index " + index + " at position " +
          std::to_string(found.first_position)));
    }
    return std::make_exception_ptr(
        invalid_argument("ferry::" + verb + ": " + std::to_string(found.duplicates) + " rows of " + table +
                         " are named more than once, which duplicates::reject forbids; the lowest is row " +
                         std::to_string(found.first_row)));
  }

  Exec exec_;
  const char* verb_;
  std::shared_ptr<engine<backend>> engine_;
  std::unique_ptr<flight> flight_;
  std::shared_ptr<report_writer> report_;
  std::shared_ptr<host_findings> host_findings_;
  std::shared_ptr<Exec> lane_;
  std::shared_ptr<plan_storage> plan_;
  std::vector<std::shared_ptr<write_tracker>> written_;
};

}  // namespace ferry::detail
