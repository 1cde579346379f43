// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

/// Options that double holds and float does not: 0 or infinite in a step that is computed in float.
namespace ferry_test::float_options_test {

namespace optim = ferry::optim;

/// Steps a row of ones by a gradient of 1/2, and returns the row.
template <class T, class Rule>
std::vector<T> stepped(const Rule& rule) {
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", 1, 2, std::vector<T>(2, T(1)));
  const auto grads = make<ferry::mapped_space>("grads", 1, 2, std::vector<T>(2, T(0.5)));
  auto state = optim::make_state(rule, table);
  const std::vector<std::int32_t> row{0};
  try {
    ferry::step(exec, rule, table, state, row, grads, ferry::path::direct{}).wait();
  } catch (...) {
    CHECK(take(table) == std::vector<T>(2, T(1)));
    CHECK(state.steps() == 0);
    throw;
  }
  return take(table);
}

/// A step in float refuses the options and names one; a step in double gives numbers.
template <class Rule>
void refuses(const Rule& rule, const std::string& sentence) {
  CAPTURE(sentence);
  CHECK_THROWS_MATCHES(stepped<float>(rule), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring(sentence)));
  for (const double weight : stepped<double>(rule)) CHECK(std::isfinite(weight));
}
template <class Rule>
void takes(const Rule& rule) {
  for (const float weight : stepped<float>(rule)) CHECK(std::isfinite(weight));
}

TEST_CASE("a step in float refuses options that are 0 or infinite there", "[optim][float_options]") {
  refuses(optim::sgd{.weight_decay = 1e-50},
          "sgd: weight_decay is 1e-50, must be another number: it is 0 in float");
  refuses(optim::sgd{.momentum = 1e-46}, "momentum is 1e-46");
  refuses(optim::sgd{.lr = 1e39}, "lr is 1e+39, must be another number: it is infinite in float");
  refuses(optim::sgd{.momentum = 0.5, .dampening = -1e40}, "dampening is -1e+40");
  refuses(optim::adam{.eps = 1e-60}, "adam: eps is 1e-60");
  refuses(optim::adam{.betas = {1e-70, 0.999}}, "betas[0] is 1e-70");
  refuses(optim::adam{.betas = {0.5, 1e-50}}, "betas[1] is 1e-50");
  refuses(optim::adamw{.eps = 1e-60}, "adamw: eps");
  refuses(optim::adamax{.eps = 1e-60}, "adamax: eps");
  refuses(optim::nadam{.eps = 1e-60}, "nadam: eps");
  refuses(optim::sparse_adam{.eps = 1e-60}, "sparse_adam: eps");
  refuses(optim::partial_rowwise_adam{.eps = 1e-60}, "partial_rowwise_adam: eps");
  refuses(optim::lamb{.weight_decay = 1e-60}, "lamb: weight_decay");
  refuses(optim::lars{.trust_coefficient = 1e-60}, "lars: trust_coefficient");
  refuses(optim::adadelta{.eps = 1e-60}, "adadelta: eps");
  refuses(optim::adagrad{.eps = 1e-60}, "adagrad: eps");
  refuses(optim::rowwise_adagrad{.eps = 1e-60}, "rowwise_adagrad: eps");
  refuses(optim::rmsprop{.eps = 1e-60}, "rmsprop: eps");
  refuses(optim::rprop{.etas = {1e-60, 1.2}}, "rprop: etas[0]");
  refuses(optim::rprop{.step_sizes = {1e-6, 1e40}}, "rprop: step_sizes[1]");
  refuses(optim::asgd{.weight_decay = 1e-60}, "asgd: weight_decay");
  refuses(optim::lion{.betas = {0.9, 1e-60}}, "lion: betas[1]");
  refuses(optim::ftrl{.lr = 1e-39},
          "ftrl: lr is 1e-39, must be another number: it is so small that 1 / lr is infinite");
  refuses(optim::ftrl{.l1 = 1e-60}, "ftrl: l1");
  refuses(optim::chain{optim::sgd{}, optim::grad_scale{1e-39}},
          "grad_scale: scale is 1e-39, must be another number: it is so small that 1 / scale is infinite");
  refuses(optim::chain{optim::sgd{}, optim::grad_scale{1e46}}, "so large that 1 / scale is 0");
  refuses(optim::chain{optim::sgd{}, optim::clip_norm{1e-50}}, "clip_norm: max_norm is 1e-50");
  refuses(optim::chain{optim::sgd{}, optim::clip_value{1e-50}}, "clip_value: limit is 1e-50");
  refuses(optim::chain{optim::sgd{}, optim::max_norm{1e-50}}, "max_norm: limit is 1e-50");
}

TEST_CASE("a step in float takes rates that fade and limits beyond float", "[optim][float_options]") {
  constexpr double most = std::numeric_limits<double>::max(),
                   infinity = std::numeric_limits<double>::infinity();
  CHECK(stepped<float>(optim::sgd{.lr = 1e-60}) == std::vector<float>(2, 1.0f));
  CHECK(stepped<float>(optim::adam{.lr = 1e-300}) == std::vector<float>(2, 1.0f));
  for (const double limit : {1e39, most, infinity})
    CHECK(stepped<float>(optim::chain{optim::sgd{.lr = 1.0}, optim::clip_norm{limit},
                                      optim::clip_value{limit}, optim::max_norm{limit}}) ==
          std::vector<float>(2, 0.5f));
  takes(optim::ftrl{.lr = 1e-30});
  takes(optim::adam{.eps = 1e-40, .weight_decay = 1e-44});
}

TEST_CASE("a state refuses initial values that its elements can't hold", "[optim][float_options]") {
  ferry::tensor<float, ferry::pageable_space> table("weights", 2, 2);
  const auto refused = [](const char* sentence) { return MessageMatches(ContainsSubstring(sentence)); };
  CHECK_THROWS_MATCHES(optim::make_state(optim::adagrad{.initial_accumulator_value = 1e39}, table),
                       ferry::invalid_argument, refused("adagrad: the initial value of 'sum' is 1e+39"));
  CHECK_THROWS_MATCHES(optim::make_state(optim::ftrl{.initial_accumulator_value = 1e-50}, table),
                       ferry::invalid_argument, refused("ftrl: the initial value of 'sum' is 1e-50"));
  CHECK_THROWS_MATCHES((optim::make_state<ferry::pageable_space, ferry::half_t>(
                           optim::rowwise_adagrad{.initial_accumulator_value = 1e5}, table)),
                       ferry::invalid_argument,
                       refused("rowwise_adagrad: the initial value of 'sum' is 1e+05"));
  CHECK_THROWS_MATCHES((optim::make_records<float, ferry::pageable_space>(
                           optim::adagrad{.initial_accumulator_value = 1e39}, "records", 2, 2)),
                       ferry::invalid_argument, refused("adagrad: the initial value of 'sum' is 1e+39"));
  ferry::tensor<double, ferry::pageable_space> wide("weights", 2, 2);
  CHECK(take(optim::make_state(optim::adagrad{.initial_accumulator_value = 1e39}, wide).field(0)) ==
        std::vector<double>(4, 1e39));
}

}  // namespace ferry_test::float_options_test
