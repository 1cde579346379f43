// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/optim/detail/coefficient_history.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry::kernels {

/// Reports values that are infinite or not a number. One thread for each value.
template <class Value>
struct find_nonfinite {
  const Value* values;
  std::int64_t stride;
  detail::fast_divisor width;
  ferry::detail::report_writer report;

  static std::int64_t bytes_each() { return sizeof(Value); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const Value value = values[row * stride + i - row * width.divisor()];
    if (!detail::is_finite(value)) report.nonfinite(i, detail::is_nan(value), detail::is_negative(value));
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Looks for values that are infinite or not a number. Their positions count in row-major order.
template <class Exec, class Value, class Space>
void launch_find_nonfinite(const Exec& exec, const std::string& label, const array_ref<Value, Space>& values,
                           const report_writer& report) {
  launch(exec, label, static_cast<std::int64_t>(values.size()),
         kernels::find_nonfinite<std::remove_const_t<Value>>{values.data, values.row_stride(),
                                                             fast_divisor(values.width()), report});
}

/// Why a graph can't repeat the verb, see launch_context::refuse_capture.
inline constexpr std::string_view counts_each_step =
    "but rows that count their steps need another update each time; use step_count::global";

/// launch_context::refuse_capture with that reason, if there is no launch context yet.
[[noreturn]] void refuse_counting_capture(const char* verb);

/// The device's memory of the table, after all of the view's entries have been uploaded or their upload is
/// enqueued. Other threads may read and upload at the same time, so the end of the copy is recorded under the
/// guard, before other threads see the new entries.
template <ExecutionSpace Exec>
std::shared_ptr<tensor<std::byte, device_space>> mark_uploaded(launch_context<Exec>& call,
                                                               const optim::detail::table_view& table);

/// The kernel inputs of a step besides table, state and gradients.
struct step_inputs {
  optim::detail::table_view updates;       ///< for kernels of the host
  const void* on_device = nullptr;         ///< the same entries, in a device's memory
  const index_report* findings = nullptr;  ///< of the gradients, where kernels read them
  bool refused = false;                    ///< true if the host found that the gradients spoil the step

  /// A table's entries for kernels of the host and of the execution space.
  template <class Exec>
  void take_updates(launch_context<Exec>& call, const optim::detail::table_view& table) {
    updates = table;
    if constexpr (is_host_exec<Exec>) {
      if (table.bytes != 0) call.hold(std::const_pointer_cast<std::byte[]>(table.entries));
    } else {
      call.refuse_capture(counts_each_step);
      if (table.bytes == 0) return;
      const auto memory = mark_uploaded(call, table);
      on_device = memory->data();
      call.reads_from(make_ref(*memory));
      call.hold(memory);
    }
  }

  template <class Exec, class Update>
  [[nodiscard]] const Update* updates_for() const {
    return static_cast<const Update*>(is_host_exec<Exec> ? updates.entries.get() : on_device);
  }

  /// Checks every value of the batch before anything is written. A path that occupies the calling thread
  /// reads the result here; on other paths the kernels read it.
  template <bool Staged, class Exec, class Value, class Space>
  void look_for_nonfinite(launch_context<Exec>& call, const std::string& label,
                          const array_ref<Value, Space>& values) {
    if (values.size() == 0) return;
    const auto look = [&](const auto& exec, const report_writer& report) {
      launch_find_nonfinite(exec, call.label_part(label, "find_nonfinite"), values, report);
    };
    if constexpr (!Staged || is_host_exec<Exec>) {
      const report_writer report = call.report();
      look(call.exec(), report);
      findings = report.findings;
    } else if constexpr (Space::is_host_accessible) {
      const auto host = host_side(call.exec());
      look(host, call.host_report());
      host.fence(label);
      refused = call.host_found();
    } else {
      const report_writer report = call.report();
      look(call.exec(), report);
      execution_backend<Exec>::fence(call.exec(), label);
      refused = read_report<Exec>(report).nonfinite != 0;
    }
  }
};

}  // namespace ferry::detail
