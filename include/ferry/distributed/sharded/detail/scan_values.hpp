// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>

namespace ferry::detail {

/// The values of a batch that are infinite or not a number. Blocks.
template <class Exec, class Value, class Space>
batch_findings scan_values(const Exec& exec, const array_ref<Value, Space>& values) {
  batch_findings findings;
  if (values.size() == 0) return findings;
  static const std::string label = "ferry::step::find_nonfinite";
  if (values.accesses != nullptr) values.accesses->wait_for_all();
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    launch_context<Exec> call(exec, "step");
    require_array_device("step", exec, values);
    const report_writer writer = call.report();
    launch_find_nonfinite(exec, label, values, writer);
    execution_backend<Exec>::fence(exec, label);
    const index_report report = read_report<Exec>(writer);
    findings.nonfinite = report.nonfinite;
    findings.first_value = report.first_value;
    call.finish().drop();
  } else {
    execution_backend<Exec>::fence(exec, label);
    index_report report;
    unsigned int raised = 0;
    const auto host = host_side(exec);
    launch_find_nonfinite(host, label, values, report_writer{&report, &raised});
    host.fence(label);
    findings.nonfinite = report.nonfinite;
    findings.first_value = report.first_value;
  }
  return findings;
}

}  // namespace ferry::detail
