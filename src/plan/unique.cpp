// SPDX-License-Identifier: Apache-2.0
#include <ferry/plan/unique.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <exception>

namespace ferry::detail {

void require_indices_inside(const char* verb, const row_plan& plan) {
  const plan_storage& storage = *plan.storage();
  if (!storage.checked) return;
  const index_report findings = storage.read_report();
  if (findings.out_of_range == 0) return;
  array_note table;
  table.rank = 1;
  table.extents = {storage.rows};
  std::rethrow_exception(found_error(findings, verb, table, {}, 1, plan.positions(), storage.signed_indices));
}

template <ExecutionSpace Exec>
void count_positions(const Exec& exec, const row_plan& plan,
                     const array_ref<std::int64_t, space_of_plans<Exec>>& counts) {
  launch_context<Exec> call(exec, "unique");
  call.use(plan.storage());
  call.writes_to(counts);
  launch(exec, call.label("counts"), counts.rows(),
         kernels::count_positions{plan.storage()->segment_begin, counts.data});
  call.finish().join();
}

#define FERRY_COUNTS_OF(EXEC)                                 \
  template void count_positions(const EXEC&, const row_plan&, \
                                const array_ref<std::int64_t, space_of_plans<EXEC>>&);
FERRY_FOR_EXECUTION_SPACES(FERRY_COUNTS_OF)
#undef FERRY_COUNTS_OF

}  // namespace ferry::detail
