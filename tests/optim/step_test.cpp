// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::step_test {

const ferry::optim::adam adam_rule{.lr = 0.1};

/// call() throws Error, and its text has all the parts.
template <class Error, class Call>
void throws(const Call& call, const std::vector<std::string>& parts) {
  try {
    call();
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    for (const auto& part : parts) CHECK_THAT(error.what(), ContainsSubstring(part));
  }
}

template <class Space>
struct training {
  ferry::tensor<float, Space> table;
  ferry::optim::state<ferry::optim::adam, float, Space> state;
  std::vector<float> weights, first, second;

  explicit training(std::mt19937_64& random) {
    table = make<Space>("weights", 20, 6, values<float>(random, 120));
    state = ferry::optim::make_state(adam_rule, table);
    put(state.field(0), values<float>(random, 120));
    auto squares = values<float>(random, 120);
    for (auto& square : squares) square = square * square + 1.0f;
    put(state.field(1), squares);
    state.set_steps(7);
    remember();
  }
  void remember() {
    weights = take(table);
    first = take(state.field(0));
    second = take(state.field(1));
  }
  [[nodiscard]] bool unchanged() const {
    return take(table) == weights && take(state.field(0)) == first && take(state.field(1)) == second;
  }
};

TEMPLATE_TEST_CASE("a step with a bad index writes nothing and is taken back", "[optim][step]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  training<TestType> kit(random);
  const exec_space exec;
  const auto grads = make<ferry::device_space>("grads", 5, 6, values<float>(random, 30));
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{20}, std::numeric_limits<std::int64_t>::max(),
                                 std::numeric_limits<std::int64_t>::min()}) {
    const std::vector<std::int64_t> chosen{3, 4, bad, 3, 5};
    const std::vector<std::int64_t> unique{3, 4, bad, 7, 5};
    const auto plan = ferry::make_plan(exec, chosen, 20);
    const std::vector<std::string> error{"ferry::step", "'weights' [20 x 6]",
                                         "index " + std::to_string(bad) + " at position 2"};
    for_each_path<TestType, ferry::device_space, work::changes>([&](auto path) {
      auto ticket = ferry::step(exec, adam_rule, kit.table, kit.state, chosen, grads, path);
      CHECK(kit.state.steps() == 8);
      throws<ferry::out_of_range>([&] { ticket.wait(); }, error);
      CHECK(kit.state.steps() == 7);
      throws<ferry::out_of_range>(
          [&] { ferry::step(exec, adam_rule, kit.table, kit.state, plan, grads, path).wait(); }, error);
      throws<ferry::out_of_range>(
          [&] {
            ferry::step(exec, adam_rule, kit.table, kit.state, unique, grads, path,
                        ferry::duplicates::assume_unique{})
                .wait();
          },
          error);
      CHECK(kit.state.steps() == 7);
      CHECK(kit.unchanged());
    });
  }
}

TEMPLATE_TEST_CASE("a step on rejected duplicates writes nothing and is taken back", "[optim][step]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  training<TestType> kit(random);
  const exec_space exec;
  const auto grads = make<ferry::device_space>("grads", 5, 6, values<float>(random, 30));
  const std::vector<std::uint32_t> chosen{9, 4, 9, 12, 4};
  const auto plan = ferry::make_plan(exec, chosen, 20);
  const std::vector<std::string> error{"ferry::step", "2 rows", "the lowest is row 4"};
  for_each_path<TestType, ferry::device_space, work::changes>([&](auto path) {
    const ferry::duplicates::reject reject;
    throws<ferry::invalid_argument>(
        [&] { ferry::step(exec, adam_rule, kit.table, kit.state, chosen, grads, path, reject).wait(); },
        error);
    throws<ferry::invalid_argument>(
        [&] { ferry::step(exec, adam_rule, kit.table, kit.state, plan, grads, reject, path).wait(); }, error);
    CHECK(kit.state.steps() == 7);
    CHECK(kit.unchanged());
    // The plan is not spoiled by it.
    ferry::step(exec, adam_rule, kit.table, kit.state, plan, grads, path).wait();
    CHECK(kit.state.steps() == 8);
    CHECK_FALSE(kit.unchanged());
    kit.state.set_steps(7);
    kit.remember();
  });
}

TEST_CASE("a step on no rows counts and changes nothing", "[optim][step]") {
  auto random = generator();
  training<ferry::mapped_space> kit(random);
  const exec_space exec;
  const ferry::tensor<float, ferry::device_space> none("none", 0, 6);
  ferry::step(exec, adam_rule, kit.table, kit.state, std::vector<std::int64_t>{}, none).wait();
  ferry::step(exec, adam_rule, kit.table, kit.state, ferry::make_plan(exec, std::vector<std::int32_t>{}, 20),
              none)
      .wait();
  ferry::step(exec, adam_rule, kit.table, kit.state, std::vector<std::int64_t>{}, none, ferry::path::staged{})
      .wait();
  CHECK(kit.state.steps() == 10);
  CHECK(kit.unchanged());
}

TEST_CASE("skipped and clamped indices reach the rows they should", "[optim][step]") {
  auto random = generator();
  training<ferry::mapped_space> kit(random);
  const exec_space exec;
  const auto grads = make<ferry::device_space>("grads", 3, 6, std::vector<float>(18, 1.0f));
  const std::vector<std::int64_t> outside{-5, 20, 1000};
  ferry::step(exec, adam_rule, kit.table, kit.state, outside, grads, ferry::bounds::skip{}).wait();
  CHECK(kit.unchanged());
  CHECK(kit.state.steps() == 8);
  ferry::step(exec, adam_rule, kit.table, kit.state, outside, grads, ferry::bounds::clamp{}).wait();
  const auto now = take(kit.table);
  for (std::size_t i = 0; i < now.size(); ++i) CHECK((now[i] != kit.weights[i]) == (i < 6 || i >= 19 * 6));
}

TEST_CASE("what does not fit together is refused before anything happens", "[optim][step]") {
  auto random = generator();
  training<ferry::mapped_space> kit(random);
  const exec_space exec;
  const std::vector<std::int64_t> chosen{1, 2, 3};
  const ferry::tensor<float, ferry::device_space> grads("grads", 3, 6);
  const ferry::tensor<float, ferry::device_space> few("few", 2, 6);
  const ferry::tensor<float, ferry::device_space> narrow("narrow", 3, 5);
  CHECK_THROWS_MATCHES(
      ferry::step(exec, adam_rule, kit.table, kit.state, chosen, few), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("ferry::step") && ContainsSubstring("'few' [2 x 6]")));
  CHECK_THROWS_MATCHES(
      ferry::step(exec, adam_rule, kit.table, kit.state, chosen, narrow), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'narrow' [3 x 5]") && ContainsSubstring("'weights' [20 x 6]")));
  const auto plan = ferry::make_plan(exec, chosen, 21);
  CHECK_THROWS_AS(ferry::step(exec, adam_rule, kit.table, kit.state, plan, grads), ferry::invalid_argument);
  ferry::tensor<float, ferry::mapped_space> longer("longer", 21, 6);
  CHECK_THROWS_MATCHES(
      ferry::step(exec, adam_rule, longer, kit.state, chosen, grads), ferry::invalid_argument,
      MessageMatches(ContainsSubstring("'longer' [21 x 6]") && ContainsSubstring("exp_avg")));
  ferry::optim::state<ferry::optim::adam, float, ferry::mapped_space> unmade;
  CHECK_THROWS_MATCHES(ferry::step(exec, adam_rule, kit.table, unmade, chosen, grads),
                       ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("adam") && ContainsSubstring("2 state fields")));
  CHECK_THROWS_AS(ferry::step(exec, ferry::optim::adam{.lr = -1.0}, kit.table, kit.state, chosen, grads),
                  ferry::invalid_argument);
  // SGD's buffer is only there where the options ask for it.
  const ferry::optim::sgd plain{.lr = 0.1};
  const ferry::optim::sgd momentum{.lr = 0.1, .momentum = 0.9};
  auto without = ferry::optim::make_state(plain, kit.table);
  CHECK(without.fields() == 0);
  CHECK_THROWS_AS(ferry::step(exec, momentum, kit.table, without, chosen, grads), ferry::invalid_argument);
  CHECK(kit.state.steps() == 7);
  CHECK(unmade.steps() == 0);
  CHECK(kit.unchanged());
}

TEST_CASE("state has the rule's fields and initial values", "[optim][state]") {
  const ferry::tensor<ferry::half_t, ferry::pinned_space> table("weights", 9, 5);
  auto adam = ferry::optim::make_state(adam_rule, table);
  STATIC_CHECK(
      std::is_same_v<decltype(adam), ferry::optim::state<ferry::optim::adam, float, ferry::pinned_space>>);
  CHECK(adam.fields() == 2);
  CHECK(adam.field_name(0) == "exp_avg");
  CHECK(adam.field_name(1) == "exp_avg_sq");
  CHECK(&adam.field("exp_avg_sq") == &adam.field(1));
  CHECK_THROWS_MATCHES(adam.field("sum"), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("adam") && ContainsSubstring("'sum'")));
  CHECK(take(adam.field(1)) == std::vector<float>(45, 0.0f));
  CHECK_THAT(adam.field(0).label(), ContainsSubstring("weights"));
  CHECK(adam.steps() == 0);
  auto adagrad = ferry::optim::make_state<ferry::device_space>(
      ferry::optim::adagrad{.initial_accumulator_value = 0.25}, table);
  STATIC_CHECK(std::is_same_v<decltype(adagrad)::memory_space, ferry::device_space>);
  CHECK(adagrad.fields() == 1);
  CHECK(take(adagrad.field("sum")) == std::vector<float>(45, 0.25f));
  auto typed = ferry::optim::make_state<ferry::pageable_space, double>(
      ferry::optim::sgd{.lr = 0.1, .momentum = 0.9}, table);
  STATIC_CHECK(std::is_same_v<decltype(typed)::value_type, double>);
  CHECK(take(typed.field("momentum_buffer")) == std::vector<double>(45, 0.0));
}

TEST_CASE("options outside of their range are refused by name", "[optim][options]") {
  const ferry::tensor<float, ferry::pageable_space> table("weights", 2, 2);
  const auto refused = [&](const auto& options, const char* name) {
    CHECK_THROWS_MATCHES(ferry::optim::make_state(options, table), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(name)));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using namespace ferry::optim;
  refused(sgd{.lr = -1.0}, "lr");
  refused(sgd{.lr = nan}, "lr");
  refused(sgd{.lr = 1.0, .momentum = -0.1}, "momentum");
  refused(sgd{.lr = 1.0, .weight_decay = -0.1}, "weight_decay");
  refused(sgd{.lr = 1.0, .nesterov = true}, "nesterov");
  refused(sgd{.lr = 1.0, .momentum = 0.9, .dampening = 0.1, .nesterov = true}, "nesterov");
  refused(adagrad{.lr = -1.0}, "lr");
  refused(adagrad{.lr_decay = -1.0}, "lr_decay");
  refused(adagrad{.weight_decay = -1.0}, "weight_decay");
  refused(adagrad{.initial_accumulator_value = -1.0}, "initial_accumulator_value");
  refused(adagrad{.eps = -1.0}, "eps");
  refused(adam{.lr = nan}, "lr");
  refused(adam{.betas = {1.0, 0.9}}, "betas[0]");
  refused(adam{.betas = {0.9, -0.1}}, "betas[1]");
  refused(ferry::optim::lion{.betas = {0.9, 1.0}}, "betas[1]");
  refused(adam{.eps = -1e-8}, "eps");
  refused(adam{.weight_decay = -1.0}, "weight_decay");
}

TEST_CASE("infinite options are refused by name", "[optim][options]") {
  ferry::tensor<float, ferry::pageable_space> table("weights", 2, 2);
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto refused = [&](const auto& options, const std::string& option) {
    CHECK_THROWS_MATCHES(ferry::optim::make_state(options, table), ferry::invalid_argument,
                         MessageMatches(ContainsSubstring(": " + option + " is inf, must be finite")));
  };
  using namespace ferry::optim;
  refused(sgd{.lr = inf}, "lr");
  refused(sgd{.momentum = inf}, "momentum");
  refused(sgd{.momentum = 0.5, .dampening = inf}, "dampening");
  refused(sgd{.weight_decay = inf}, "weight_decay");
  refused(adam{.lr = inf}, "lr");
  refused(adam{.eps = inf}, "eps");
  refused(adam{.weight_decay = inf}, "weight_decay");
  refused(adamw{.weight_decay = inf}, "weight_decay");
  refused(adamax{.eps = inf}, "eps");
  refused(nadam{.momentum_decay = inf}, "momentum_decay");
  refused(sparse_adam{.eps = inf}, "eps");
  refused(partial_rowwise_adam{.lr = inf}, "lr");
  refused(lamb{.weight_decay = inf}, "weight_decay");
  refused(lars{.trust_coefficient = inf}, "trust_coefficient");
  refused(adadelta{.eps = inf}, "eps");
  refused(adagrad{.lr_decay = inf}, "lr_decay");
  refused(adagrad{.initial_accumulator_value = inf}, "initial_accumulator_value");
  refused(rowwise_adagrad{.eps = inf}, "eps");
  refused(rmsprop{.alpha = inf}, "alpha");
  refused(rprop{.lr = inf}, "lr");
  refused(rprop{.etas = {0.5, inf}}, "etas[1]");
  refused(rprop{.step_sizes = {1e-6, inf}}, "step_sizes[1]");
  refused(asgd{.t0 = inf}, "t0");
  refused(lion{.weight_decay = inf}, "weight_decay");
  refused(ftrl{.lr = inf}, "lr");
  refused(ftrl{.l1 = inf}, "l1");

  // A schedule that divides by the steps so far, and one that grows without an end.
  const exec_space exec;
  put(table, std::vector<float>(4, 1.0f));
  const std::vector<std::int32_t> row{1};
  const auto grads = make<ferry::pageable_space>("grads", 1, 2, std::vector<float>(2, 0.0f));
  auto state = make_state(adam{}, table);
  for (const double lr : {1.0 / static_cast<double>(state.steps()), exponential_lr(1.0, 400, 10.0)})
    CHECK_THROWS_MATCHES(ferry::step(exec, adam{.lr = lr}, table, state, row, grads).wait(),
                         ferry::invalid_argument, MessageMatches(ContainsSubstring("adam: lr is inf")));
  CHECK(state.steps() == 0);
  CHECK(take(table) == std::vector<float>(4, 1.0f));
}

}  // namespace ferry_test::step_test
