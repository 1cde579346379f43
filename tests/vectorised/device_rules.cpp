#include <ferry/ferry.hpp>

#include <cstdint>

/// The kernel of a step on a plan's rows for each rule on a device: what stores.py looks at.
namespace ferry_test {

using exec = Kokkos::DefaultExecutionSpace;
using number = ferry::detail::number_t<exec, float>;

template <class Rule, int Fields>
using step_on_packet = ferry::kernels::apply_rows<
    number, ferry::kernels::packed_tile, ferry::duplicates::sum, ferry::kernels::plan_rows<true>, float,
    ferry::kernels::update_row<ferry::kernels::nearest_weights<float>, float,
                               ferry::kernels::global_pace<typename Rule::template update<number>>,
                               ferry::kernels::stage_pack<>, Fields>>;

template <class Rule, int Fields>
void launch(const step_on_packet<Rule, Fields>& kernel, std::int64_t items) {
  ferry::detail::launch(exec(), "ferry_test::step_on_packet", items, kernel);
}

#define FERRY_TEST_STEP(rule, fields)                                                                 \
  template void launch<ferry::optim::rule, fields>(const step_on_packet<ferry::optim::rule, fields>&, \
                                                   std::int64_t)
FERRY_TEST_STEP(sgd, 0);
FERRY_TEST_STEP(sgd, 1);
FERRY_TEST_STEP(adagrad, 1);
FERRY_TEST_STEP(adam, 2);
FERRY_TEST_STEP(adam, 3);
FERRY_TEST_STEP(adamw, 2);
FERRY_TEST_STEP(sparse_adam, 2);
FERRY_TEST_STEP(nadam, 2);
FERRY_TEST_STEP(adadelta, 2);
FERRY_TEST_STEP(adamax, 2);
FERRY_TEST_STEP(rmsprop, 1);
FERRY_TEST_STEP(rmsprop, 2);
FERRY_TEST_STEP(rmsprop, 3);
FERRY_TEST_STEP(rprop, 2);
FERRY_TEST_STEP(asgd, 1);
FERRY_TEST_STEP(lion, 1);
FERRY_TEST_STEP(ftrl, 2);

}  // namespace ferry_test
