// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/optim/detail/find_nonfinite.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The values of a batch that are infinite or not a number. Blocks.
template <class Exec, class Value, class Space>
batch_findings scan_values(const Exec& exec, const array_ref<Value, Space>& values) {
  using plain = std::remove_const_t<Value>;
  batch_findings made;
  if (values.size() == 0) return made;
  static const std::string label = "ferry::step::find_nonfinite";
  if (values.accesses != nullptr) values.accesses->wait_for_all();
  const auto look = [&](const auto& on, const report_writer& report) {
    launch(on, label, values.size(),
           kernels::find_nonfinite<plain>{values.data, values.row_stride(), fast_divisor(values.width()),
                                          report});
  };
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    launch_context<Exec> of(exec, "step");
    require_array_device("step", exec, values);
    const report_writer report = of.report();
    look(exec, report);
    execution_backend<Exec>::fence(exec, label);
    const index_report found = read_report<Exec>(report);
    made.nonfinite = found.nonfinite;
    made.first_value = found.first_value;
    of.finish().drop();
  } else {
    execution_backend<Exec>::fence(exec, label);
    index_report found;
    unsigned int raised = 0;
    const auto host = host_side(exec);
    look(host, report_writer{&found, &raised});
    host.fence(label);
    made.nonfinite = found.nonfinite;
    made.first_value = found.first_value;
  }
  return made;
}

}  // namespace ferry::detail
