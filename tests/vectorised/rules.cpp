// SPDX-License-Identifier: Apache-2.0
#include "each_rule.hpp"

#include <ferry/ferry.hpp>

#include <cstdint>

/// A host thread's run of a step on a plan's rows for each rule, compiled as programs that step on the host should be: what
/// check.py looks at.
namespace ferry_test {

template <class Rule, int Fields>
using step_on_rows = ferry::kernels::apply_rows<
    float, ferry::kernels::host_tile, ferry::duplicates::sum, ferry::kernels::plan_rows, float,
    ferry::kernels::update_row<ferry::kernels::nearest_weights<float>, float,
                               ferry::kernels::global_schedule<typename Rule::template update<float>>,
                               ferry::kernels::transform_pack<>, Fields>>;

template <class Rule, int Fields>
void run(const step_on_rows<Rule, Fields>& kernel, std::int64_t number, std::int64_t runs) {
  kernel(ferry::detail::host_run{number, runs});
}

#define FERRY_TEST_STEP(rule, fields)                                                            \
  template void run<ferry::optim::rule, fields>(const step_on_rows<ferry::optim::rule, fields>&, \
                                                std::int64_t, std::int64_t);
FERRY_TEST_EACH_RULE(FERRY_TEST_STEP)

}  // namespace ferry_test
