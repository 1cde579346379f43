#include "each_rule.hpp"

#include <ferry/ferry.hpp>

/// One full tile of each rule, compiled as programs that step on the host should be: what check.py looks at.
namespace ferry_test {

template <class Rule, int Fields>
using operation_of =
    ferry::kernels::update_row<ferry::kernels::nearest_weights<float>, float,
                               ferry::kernels::global_pace<typename Rule::template update<float>>,
                               ferry::kernels::stage_pack<>, Fields>;

template <class Rule, int Fields>
void step_on_tile(const operation_of<Rule, Fields>& operation, const float* gradients, std::int64_t row) {
  using tile = ferry::kernels::host_tile;
  typename operation_of<Rule, Fields>::template held<tile, float> held;
  float gradient[tile::elements];
  ferry::kernels::load_tile<tile>(gradient, gradients, tile::elements);
  operation.template load<tile>(held, row, 0, tile::elements);
  operation.template finish<tile>(held, 0, row, 0, gradient, tile::elements);
}

#define FERRY_TEST_STEP(rule, fields)                                                                     \
  template void step_on_tile<ferry::optim::rule, fields>(const operation_of<ferry::optim::rule, fields>&, \
                                                         const float*, std::int64_t);
FERRY_TEST_EACH_RULE(FERRY_TEST_STEP)

}  // namespace ferry_test
