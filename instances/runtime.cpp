// SPDX-License-Identifier: Apache-2.0
// The functions of ferry that are no templates.
#define FERRY_DEFINES_RUNTIME
#include "prebuilt.hpp"

#include <ferry/distributed.hpp>

namespace ferry::detail {

/// The running sums of plans and of routes to owners: a backend may only declare these where FERRY_USE_INSTANCES is
/// defined, so each Term of ferry's is named here.
template <class Term>
struct sum_instances {
  using backend = execution_backend<instance_exec>;
  std::size_t (*bytes)(std::int64_t) = &backend::template sum_bytes<Term>;
  void (*sum)(const instance_exec&, const Term&, std::uint64_t*, std::int64_t, void*,
              std::size_t) = &backend::inclusive_sum;
};

[[gnu::used]] const sum_instances<kernels::sorted_keys> sums_of_plans;
[[gnu::used]] const sum_instances<kernels::owned_counts> sums_of_routes;

}  // namespace ferry::detail
