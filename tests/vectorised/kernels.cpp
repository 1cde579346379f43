// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

/// Kernels that write rows, as a thread of the host runs them: what copies.py looks at.
namespace ferry_test {

namespace kernels = ferry::kernels;
namespace optim = ferry::optim;
using tile = kernels::host_tile;
using plan = kernels::plan_rows;
using list = kernels::index_rows<std::int64_t, ferry::bounds::check>;
using unit = kernels::opaque<4>;

template <class Rule>
using pace = kernels::global_schedule<typename Rule::template update<float>>;
template <class Weights, class State, class Rule, int Fields>
using step_of =
    kernels::apply_rows<float, tile, ferry::duplicates::sum, plan, float,
                        kernels::update_row<Weights, State, pace<Rule>, kernels::transform_pack<>, Fields>>;
template <class Rule, int Fields>
using step = step_of<kernels::nearest_weights<float>, float, Rule, Fields>;
template <class Weights, class Rule, class Stages, int Fields, int RowFields>
using whole_step = kernels::update_whole_rows<float, tile, ferry::duplicates::sum, plan, float,
                                              kernels::update_row<Weights, float, pace<Rule>, Stages, Fields>,
                                              kernels::state_rows<float, RowFields>>;
using clipped =
    kernels::transform_pack<decltype(std::declval<const optim::clip_norm&>().device_part<float>())>;

template <bool Random>
using records = kernels::quantized_weights<ferry::quantization::rowwise_int8, Random>;

template <class Kernel>
void on_host(const Kernel& kernel, const std::string& label, std::int64_t items) {
  ferry::detail::launch(ferry::detail::caller_thread{}, label, items, kernel);
}

#define FERRY_TEST_ON_HOST(...) template void on_host(const __VA_ARGS__&, const std::string&, std::int64_t);
FERRY_TEST_ON_HOST(
    kernels::apply_rows<unit, tile, ferry::duplicates::assume_unique, list, unit, kernels::replace_row<unit>>)
FERRY_TEST_ON_HOST(
    kernels::apply_rows<unit, tile, ferry::duplicates::last, plan, unit, kernels::replace_row<unit>>)
FERRY_TEST_ON_HOST(
    kernels::apply_rows<float, tile, ferry::duplicates::mean, plan, float, kernels::replace_row<float>>)
FERRY_TEST_ON_HOST(
    kernels::apply_rows<float, tile, ferry::duplicates::sum, plan, float, kernels::add_row<float>>)
FERRY_TEST_ON_HOST(
    kernels::apply_rows<double, tile, ferry::duplicates::sum, plan, double, kernels::add_row<double>>)
FERRY_TEST_ON_HOST(step<optim::sgd, 0>)
FERRY_TEST_ON_HOST(step<optim::sgd, 1>)
FERRY_TEST_ON_HOST(step<optim::adam, 2>)
FERRY_TEST_ON_HOST(step<optim::adagrad, 1>)
FERRY_TEST_ON_HOST(
    whole_step<kernels::nearest_weights<float>, optim::rowwise_adagrad, kernels::transform_pack<>, 0, 1>)
FERRY_TEST_ON_HOST(whole_step<kernels::nearest_weights<float>, optim::sgd, clipped, 0, 0>)
FERRY_TEST_ON_HOST(whole_step<records<false>, optim::sgd, kernels::transform_pack<>, 0, 0>)
FERRY_TEST_ON_HOST(whole_step<records<true>, optim::sgd, kernels::transform_pack<>, 0, 0>)
FERRY_TEST_ON_HOST(whole_step<records<false>, optim::rowwise_adagrad, kernels::transform_pack<>, 0, 1>)
FERRY_TEST_ON_HOST(whole_step<records<false>, optim::adam, clipped, 2, 0>)

// Rows that are read after the steps that they missed, and rows that become 8-bit ones.
template <class Rule, int Fields>
using caught_up_row = kernels::update_row<kernels::nearest_weights<float>, float,
                                          kernels::catch_up_schedule<typename Rule::template update<float>>,
                                          kernels::transform_pack<>, Fields>;
template <class Rule, int Fields>
using caught_up =
    kernels::caught_up_rows<float, tile, list, caught_up_row<Rule, Fields>, kernels::nearest_weights<float>>;
FERRY_TEST_ON_HOST(caught_up<optim::sgd, 0>)
FERRY_TEST_ON_HOST(caught_up<optim::adam, 2>)
FERRY_TEST_ON_HOST(
    kernels::encode_rows<ferry::quantization::rowwise_int8, float, kernels::deciding_positions, tile>)
FERRY_TEST_ON_HOST(
    kernels::encode_rows<ferry::quantization::rowwise_int8, ferry::half_t, kernels::deciding_positions, tile>)

}  // namespace ferry_test
