#pragma once

#include <ferry/execution/findings.hpp>
#include <ferry/execution/report_pool.hpp>
#include <ferry/index/row_plan.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace ferry::detail {

/// What a verb's findings come to once its work has ended: an error, or null. `Table` describes what the indices are rows
/// of; it is asked only where there is something to tell.
template <class Backend, class Table>
struct verdict {
  std::shared_ptr<report_writer> device;
  std::shared_ptr<host_findings> host;
  std::shared_ptr<plan_storage> plan;
  std::string verb;
  Table table;
  std::string values;  ///< what the verb looked at, where that may become an error
  std::int64_t positions;
  bool signed_indices;
  std::function<void(bool)> skip;  ///< what is done, instead of an error, where values are not finite
  bool counted;                    ///< whether the verb was counted each time that it ran

  std::exception_ptr operator()() const {
    index_report by_host, by_plan, by_device;
    if (host != nullptr && host->raised != 0u) by_host = host->report;
    if (plan != nullptr && plan->checked) by_plan = plan->read_report();
    if (device != nullptr) {
      by_device = report_pool<Backend>::read(*device);
      report_pool<Backend>::clean(*device);  // the verb may run again, as part of a graph
    }
    // The gravest first, whoever found it.
    if (by_host.out_of_range != 0) return error_of(by_host, signed_indices);
    if (by_plan.out_of_range != 0) return error_of(by_plan, plan->signed_indices);
    if (by_device.out_of_range != 0) return error_of(by_device, signed_indices);
    if (by_host.duplicates != 0) return error_of(by_host, signed_indices);
    if (by_device.duplicates != 0) return error_of(by_device, signed_indices);
    const index_report& last = by_host.nonfinite != 0 ? by_host : by_device;
    if (last.nonfinite == 0) return nullptr;
    if (!skip) return error_of(last, signed_indices);
    skip(counted);
    return nullptr;
  }

 private:
  [[nodiscard]] std::exception_ptr error_of(const index_report& found, bool is_signed) const {
    return found_error(found, verb, table.describe(), values, table.width(), positions, is_signed);
  }
};

}  // namespace ferry::detail
