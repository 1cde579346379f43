// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_kit.hpp"
#include "support/test.hpp"

#include <ferry/io.hpp>

#include <boost/hana/tuple.hpp>

/// Optimizers in a checkpoint: the facts and arrays that it keeps, and the ones that it refuses.
namespace ferry_test::checkpoint_state_test {

namespace optim = ferry::optim;
using ferry::mapped_space;

/// The options of a rule by name, as a manifest has them.
template <class Rule>
std::string options_text(const Rule& rule) {
  std::string text;
  for (const auto& fact : ferry::detail::optimizer_facts(rule))
    text += fact.name + "=" + fact.describe() + " ";
  return text;
}

TEST_CASE("the options of all rules are saved by their names", "[io][checkpoint]") {
  using namespace ferry::optim;
  const auto text = [](const auto& rule) { return options_text(rule); };
  CHECK(text(adadelta{.lr = 2, .rho = 0.5, .eps = 3, .weight_decay = 4, .maximize = true}) ==
        "rule='adadelta' option.lr=2 option.rho=0.5 option.eps=3 option.weight_decay=4 option.maximize=1 ");
  CHECK(text(adagrad{.lr = 2, .lr_decay = 3, .weight_decay = 4, .initial_accumulator_value = 5, .eps = 6}) ==
        "rule='adagrad' option.lr=2 option.lr_decay=3 option.weight_decay=4 "
        "option.initial_accumulator_value=5 option.eps=6 option.maximize=0 ");
  CHECK(text(adam{.lr = 1e-3, .betas = {0.25, 0.1}, .eps = 2, .weight_decay = 3, .amsgrad = true}) ==
        "rule='adam' option.lr=0.001 option.betas=(0.25, 0.1) option.eps=2 option.weight_decay=3 "
        "option.amsgrad=1 option.maximize=0 ");
  CHECK(text(adamax{.betas = {0.25, 0.5}, .eps = 2, .weight_decay = 3, .maximize = true}) ==
        "rule='adamax' option.lr=0.002 option.betas=(0.25, 0.5) option.eps=2 option.weight_decay=3 "
        "option.maximize=1 ");
  CHECK(text(adamw{.eps = 2, .weight_decay = 3, .amsgrad = true}) ==
        "rule='adamw' option.lr=0.001 option.betas=(0.9, 0.999) option.eps=2 option.weight_decay=3 "
        "option.amsgrad=1 option.maximize=0 ");
  CHECK(text(asgd{.lr = 2, .lambd = 3, .alpha = 4, .t0 = 5, .weight_decay = 6}) ==
        "rule='asgd' option.lr=2 option.lambd=3 option.alpha=4 option.t0=5 option.weight_decay=6 "
        "option.maximize=0 ");
  CHECK(text(ftrl{.lr = 2, .beta = 3, .l1 = 4, .l2 = 5, .initial_accumulator_value = 6}) ==
        "rule='ftrl' option.lr=2 option.beta=3 option.l1=4 option.l2=5 option.initial_accumulator_value=6 "
        "option.maximize=0 ");
  CHECK(
      text(lamb{.lr = 2, .eps = 3, .weight_decay = 4}) ==
      "rule='lamb' option.lr=2 option.betas=(0.9, 0.999) option.eps=3 option.weight_decay=4 option.maximize=0 ");
  CHECK(text(lars{.lr = 2, .momentum = 3, .weight_decay = 4, .trust_coefficient = 5, .eps = 6}) ==
        "rule='lars' option.lr=2 option.momentum=3 option.weight_decay=4 option.trust_coefficient=5 "
        "option.eps=6 option.maximize=0 ");
  CHECK(text(lion{.lr = 2, .weight_decay = 3}) ==
        "rule='lion' option.lr=2 option.betas=(0.9, 0.99) option.weight_decay=3 option.maximize=0 ");
  CHECK(text(nadam{
            .lr = 2, .eps = 3, .weight_decay = 4, .momentum_decay = 5, .decoupled_weight_decay = true}) ==
        "rule='nadam' option.lr=2 option.betas=(0.9, 0.999) option.eps=3 option.weight_decay=4 "
        "option.momentum_decay=5 option.decoupled_weight_decay=1 option.maximize=0 ");
  CHECK(text(partial_rowwise_adam{.lr = 2, .eps = 3, .weight_decay = 4}) ==
        "rule='partial_rowwise_adam' option.lr=2 option.betas=(0.9, 0.999) option.eps=3 "
        "option.weight_decay=4 option.maximize=0 ");
  CHECK(text(rmsprop{.lr = 2, .alpha = 3, .eps = 4, .weight_decay = 5, .momentum = 6, .centered = true}) ==
        "rule='rmsprop' option.lr=2 option.alpha=3 option.eps=4 option.weight_decay=5 option.momentum=6 "
        "option.centered=1 option.maximize=0 ");
  CHECK(text(rowwise_adagrad{.lr = 2, .weight_decay = 3, .initial_accumulator_value = 4, .eps = 5}) ==
        "rule='rowwise_adagrad' option.lr=2 option.weight_decay=3 option.initial_accumulator_value=4 "
        "option.eps=5 option.maximize=0 ");
  CHECK(text(rprop{.lr = 2, .step_sizes = {3, 4}}) ==
        "rule='rprop' option.lr=2 option.etas=(0.5, 1.2) option.step_sizes=(3, 4) option.maximize=0 ");
  CHECK(text(sgd{.lr = 2, .momentum = 3, .dampening = 4, .weight_decay = 5, .nesterov = true}) ==
        "rule='sgd' option.lr=2 option.momentum=3 option.dampening=4 option.weight_decay=5 "
        "option.nesterov=1 option.maximize=0 ");
  CHECK(text(sparse_adam{.lr = 2, .eps = 3}) ==
        "rule='sparse_adam' option.lr=2 option.betas=(0.9, 0.999) option.eps=3 option.maximize=0 ");
  CHECK(text(chain{sgd{.lr = 2}, clip_norm{3}, clip_value{4}, grad_scale{5}, max_norm{6}}) ==
        "rule='sgd' option.lr=2 option.momentum=0 option.dampening=0 option.weight_decay=0 "
        "option.nesterov=0 option.maximize=0 transform.0='clip_norm' transform.0.max_norm=3 "
        "transform.1='clip_value' transform.1.limit=4 transform.2='grad_scale' transform.2.scale=5 "
        "transform.3='max_norm' transform.3.limit=6 ");
}

TEST_CASE("records and separate arrays load each other's checkpoints", "[io][checkpoint]") {
  const temporary_folder folder;
  auto rule = optim::adam{.lr = 0.01};
  auto records = optim::make_records<float, mapped_space>(rule, "model", run_rows, run_width);
  const exec_space exec;
  ferry::init::uniform(exec, records.table(), -1.0f, 1.0f, 5);
  ferry::tensor<float, ferry::device_space> grads("grads", run_batch, run_width);
  const auto train = [&](auto& table, std::int64_t begin, std::int64_t end, auto&... state) {
    for (auto step = begin; step < end; ++step) {
      const run_batch_of batch(step);
      put(grads, batch.grads);
      ferry::step(exec, rule, table, state..., batch.rows, grads).wait();
    }
  };
  train(records, 0, 6);
  ferry::io::checkpoint source(folder.path() + "/run");
  source.add("model", rule, records);
  source.save();

  ferry::tensor<float, ferry::device_space> table("table", run_rows, run_width);
  auto state = optim::make_state(rule, table);
  ferry::io::checkpoint apart(folder.path() + "/run");
  apart.add("model/weights", table);
  apart.add("model", rule, state);
  apart.load();
  train(table, 6, 10, state);
  apart.save();

  auto second = optim::make_records<float, ferry::device_space>(rule, "again", run_rows, run_width);
  ferry::io::checkpoint together(folder.path() + "/run");
  CHECK_THROWS_AS(together.add("model", "model", rule, second), ferry::invalid_argument);  // nothing is added
  together.add("model/weights", "model", rule, second);
  together.load();
  train(second, 10, 14);
  train(records, 6, 14);
  CHECK(records.steps() == 14);
  CHECK(second.steps() == 14);
  const auto mine = take(records.bytes());
  CHECK(take(second.bytes()) == mine);
  together.load();
  CHECK(second.steps() == 10);
}

TEST_CASE("the state of another rule or of other options is refused", "[io][checkpoint]") {
  const temporary_folder folder;
  using run_type = training_run<float, mapped_space, optim::adam>;
  run_type saved(optim::adam{.lr = 0.5});
  saved.train(0, 3);
  ferry::io::checkpoint run(folder.path() + "/run");
  saved.add_to(run);
  run.save();

  const auto refuses = [&](auto& table, auto&& rule, auto& state, const std::string& sentence) {
    const auto before = bits(table);
    const auto steps = state.steps();
    ferry::io::checkpoint loading(folder.path() + "/run");
    loading.add("weights", table);
    loading.add("optimizer", std::forward<decltype(rule)>(rule), state);
    CHECK_THROWS_MATCHES(loading.load(), ferry::io_error, MessageMatches(ContainsSubstring(sentence)));
    CHECK(bits(table) == before);
    CHECK(state.steps() == steps);
  };
  run_type mine(optim::adam{.lr = 0.25}, 1);
  {
    const auto& fixed = mine.optimizer;
    refuses(mine.table, fixed, mine.state,
            "entry 'optimizer': 'option.lr' is 0.5 in the file, and 0.25 here; the options of a rule");
    refuses(mine.table, optim::adam{.lr = 0.5, .betas = {0.5, 0.999}}, mine.state,
            "'option.betas' is (0.9, 0.999) in the file, and (0.5, 0.999) here");
  }
  training_run<float, mapped_space, optim::adamw> second(optim::adamw{}, 1);
  refuses(second.table, second.optimizer, second.state, "'rule' is 'adam' in the file, and 'adamw' here");
  training_run<float, mapped_space, optim::adam> longer(optim::adam{.amsgrad = true}, 1);
  refuses(longer.table, longer.optimizer, longer.state, "the file has no array 'max_exp_avg_sq' for it");
  using chain_type = optim::chain<optim::adam, optim::clip_norm>;
  training_run<float, mapped_space, chain_type> chained(chain_type(optim::adam{}, optim::clip_norm{}), 1);
  refuses(chained.table, chained.optimizer, chained.state,
          "the file lacks 'transform.0', which is 'clip_norm' here");

  // A const rule with the same options loads.
  run_type same(optim::adam{.lr = 0.5}, 2);
  ferry::io::checkpoint loading(folder.path() + "/run");
  loading.add("weights", same.table);
  loading.add("optimizer", optim::adam{.lr = 0.5}, same.state);
  loading.load();
  saved.require_same(same);
}

TEST_CASE("counters of rows follow the checkpoint", "[io][checkpoint]") {
  const temporary_folder folder;
  using counting = training_run<float, mapped_space, optim::adam, ferry::step_count::per_row>;
  using plain = training_run<float, mapped_space, optim::adam>;
  counting counted(optim::adam{});
  counted.train(0, 5);
  plain without(optim::adam{});
  without.train(0, 5);
  ferry::io::checkpoint with_counters(folder.path() + "/with"), without_counters(folder.path() + "/without");
  counted.add_to(with_counters);
  without.add_to(without_counters);
  with_counters.save();
  without_counters.save();
  // One object takes both, one after the other.
  counting taker(optim::adam{}, 1);
  ferry::io::checkpoint first(folder.path() + "/with"), second(folder.path() + "/without");
  taker.add_to(first);
  taker.add_to(second);
  first.load();
  CHECK(taker.state.row_steps().size() == run_rows);
  second.load();
  CHECK(taker.state.row_steps().size() == 0);
  CHECK(taker.state.steps() == 5);
  first.load();
  counted.train(5, 9);
  taker.train(5, 9);
  counted.require_same(taker);
}

TEST_CASE("a checkpoint of more steps than rows count is refused", "[io][checkpoint]") {
  const temporary_folder folder;
  using counting = training_run<float, mapped_space, optim::adam, ferry::step_count::per_row>;
  counting counted(optim::adam{});
  counted.train(0, 2);
  counted.state.clock()->steps = 5'000'000'000;
  ferry::io::checkpoint run(folder.path() + "/run");
  counted.add_to(run);
  run.save();
  counting taker(optim::adam{}, 1);
  const auto before = bits(taker.table);
  ferry::io::checkpoint loading(folder.path() + "/run");
  taker.add_to(loading);
  CHECK_THROWS_MATCHES(loading.load(), ferry::io_error,
                       MessageMatches(ContainsSubstring("it has taken 5000000000 steps")));
  CHECK(bits(taker.table) == before);
  CHECK(taker.state.steps() == 0);
}

/// A rule of a user, whose options are no aggregate of numbers.
struct decaying {
  static constexpr std::string_view name = "decaying";
  static constexpr int min_fields = 1;
  struct rates {
    double lr = 0.1;
    float keep = 0.5f;
  } of;
  std::int32_t every = 3;
  const char* remark = "not saved";

  template <class Compute>
  struct update {
    Compute lr, keep;
    template <int N>
    KOKKOS_FUNCTION void apply(Compute& weight, Compute gradient, Compute (&state)[N]) const {
      state[0] = keep * state[0] + gradient;
      weight -= lr * state[0];
    }
  };
  [[nodiscard]] auto fields() const { return boost::hana::make_tuple(optim::field{"trace"}); }
  void check() const {
    if (!(of.lr >= 0)) throw ferry::invalid_argument("lr");
  }
  template <class Compute>
  [[nodiscard]] update<Compute> coefficients(std::int64_t) const {
    return {static_cast<Compute>(of.lr), static_cast<Compute>(of.keep)};
  }
  template <class Visit>
  void visit_options(const Visit& visit) {
    visit(of.lr), visit(of.keep), visit(every);
  }
  template <class Visit>
  void visit_options(const Visit& visit) const {
    visit(of.lr), visit(of.keep), visit(every);
  }
};

TEST_CASE("a user's rule is saved by its visit_options", "[io][checkpoint]") {
  const temporary_folder folder;
  decaying rule;
  ferry::tensor<float, mapped_space> table("t", 4, 3);
  put(table, std::vector<float>(12, 1.0f));
  auto state = optim::make_state(rule, table);
  rule.of = {0.125, 0.75f};
  rule.every = -9;
  ferry::io::checkpoint run(folder.path() + "/run");
  run.add("rule", rule, state);
  run.save();
  rule.of = {5, 6};
  rule.every = 1;
  rule.remark = "mine";
  run.load();
  CHECK(rule.of.lr == 0.125);
  CHECK(rule.of.keep == 0.75f);
  CHECK(rule.every == -9);
  CHECK(std::string(rule.remark) == "mine");
}

}  // namespace ferry_test::checkpoint_state_test
