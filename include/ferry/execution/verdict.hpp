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
  std::int64_t positions;
  bool signed_indices;
  std::function<void()> skip;  ///< what is done, instead of an error, where values are not finite

  std::exception_ptr operator()() const {
    if (host != nullptr && host->raised != 0u) return error_of(host->report, signed_indices);
    if (plan != nullptr && plan->checked) {
      const index_report found = plan->read_report();
      if (found.out_of_range != 0) return error_of(found, plan->signed_indices);
    }
    if (device != nullptr) {
      const index_report found = report_pool<Backend>::read(*device);
      report_pool<Backend>::clean(*device);  // the verb may run again, as part of a graph
      if (found.out_of_range != 0 || found.duplicates != 0 || found.nonfinite != 0)
        return error_of(found, signed_indices);
    }
    return nullptr;
  }

 private:
  [[nodiscard]] std::exception_ptr error_of(const index_report& found, bool is_signed) const {
    if (!skip || found.out_of_range != 0 || found.duplicates != 0)
      return found_error(found, verb, table.describe(), table.width(), positions, is_signed);
    skip();
    return nullptr;
  }
};

}  // namespace ferry::detail
