// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/report_pool.hpp>
#include <ferry/runtime/detail/ticket_state.hpp>

#include <exception>

namespace ferry::detail {

/// The error that a verb's kernels found, once its work has ended; null for none.
template <class Backend>
std::exception_ptr find_error(ticket_state& of) {
  const finding_sources& from = of.sources;
  index_report by_host, by_plan, by_device;
  if (from.host && of.by_host.raised != 0u) by_host = of.by_host.report;
  if (from.plan != nullptr) by_plan = from.report_of_plan(*from.plan);
  if (from.device != nullptr) {
    by_device = report_pool<Backend>::read(*from.device);
    report_pool<Backend>::clean(*from.device);  // the verb may run again, as part of a graph
  }
  const auto error_of = [&](const index_report& found, bool signed_indices) {
    if (from.tables != nullptr)
      return found_error(found, from.verb, *from.tables, from.positions, signed_indices);
    return found_error(found, from.verb, from.table, from.values, from.width, from.positions, signed_indices);
  };
  // The most severe error comes first.
  if (by_host.out_of_range != 0) return error_of(by_host, from.signed_indices);
  if (by_plan.out_of_range != 0) return error_of(by_plan, from.signed_plan);
  if (by_device.out_of_range != 0) return error_of(by_device, from.signed_indices);
  if (by_host.duplicates != 0) return error_of(by_host, from.signed_indices);
  if (by_device.duplicates != 0) return error_of(by_device, from.signed_indices);
  const index_report& last = by_host.nonfinite != 0 ? by_host : by_device;
  if (last.nonfinite == 0) return nullptr;
  if (of.ends.skip == nullptr) return error_of(last, from.signed_indices);
  of.ends.skip(of.ends.owner.get(), /*counted*/ !of.mark);
  return nullptr;
}

}  // namespace ferry::detail
