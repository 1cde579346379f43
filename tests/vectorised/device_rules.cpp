// SPDX-License-Identifier: Apache-2.0
#include "each_rule.hpp"

#include <ferry/ferry.hpp>

#include <cstdint>

/// The kernel of a step on a plan's rows for each rule on a device: what stores.py looks at.
namespace ferry_test {

using exec = Kokkos::DefaultExecutionSpace;
using number = ferry::detail::exact_number<exec, float>;

template <class Rule, int Fields>
using step_on_packet = ferry::kernels::apply_rows<
    number, ferry::kernels::packed_tile, ferry::duplicates::sum, ferry::kernels::plan_rows, float,
    ferry::kernels::update_row<ferry::kernels::nearest_weights<float>, float,
                               ferry::kernels::global_schedule<typename Rule::template update<number>>,
                               ferry::kernels::transform_pack<>, Fields>>;

template <class Rule, int Fields>
void launch(const step_on_packet<Rule, Fields>& kernel, std::int64_t items) {
  ferry::detail::launch(exec(), "ferry_test::step_on_packet", items, kernel);
}

#define FERRY_TEST_STEP(rule, fields)                                                                 \
  template void launch<ferry::optim::rule, fields>(const step_on_packet<ferry::optim::rule, fields>&, \
                                                   std::int64_t);
FERRY_TEST_EACH_RULE(FERRY_TEST_STEP)

}  // namespace ferry_test
