// SPDX-License-Identifier: Apache-2.0
#include "support/measure.hpp"
#include "support/step_check.hpp"
#include "support/tables.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// step_count::catch_up of rows that missed many steps, under weight decay: every missed step changes the weights, though
/// soon by their decay alone. One call may take seconds: three are timed, after one that brings the history to the device.
namespace ferry_bench::step_catch_up_cases {
namespace {

constexpr int sets = 4;

/// Powers of two: lr weight_decay is exact in float, and the weights drift by rounding alone.
constexpr double lr = 0x1p-10, weight_decay = 0x1p-7;
constexpr ferry::optim::adamw decoupled{.lr = lr, .eps = 0.25, .weight_decay = weight_decay};
constexpr ferry::optim::sgd coupled{.lr = lr, .weight_decay = weight_decay};

/// One element in double, step by step.
struct element_of_adamw {
  double weight, first = 0, second = 0, first_power = 1, second_power = 1;

  void step(double gradient) {
    first_power *= 0.9;
    second_power *= 0.999;
    weight *= 1 - lr * weight_decay;
    first = 0.9 * first + 0.1 * gradient;
    second = 0.999 * second + 0.001 * gradient * gradient;
    weight -=
        lr / (1 - first_power) * first / (std::sqrt(second) / std::sqrt(1 - second_power) + decoupled.eps);
  }
};
struct element_of_sgd {
  double weight;
  void step(double gradient) { weight -= lr * (gradient + weight_decay * weight); }
};

/// The distinct rows from `first` on.
struct part_row {
  std::uint64_t seed, rows;
  std::int64_t first;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    return distinct_row{seed, rows}(first + position, column);
  }
};

template <class Rule, class Element>
class late_rows {
 public:
  late_rows(session& run, std::string name, const Rule& rule, std::int64_t missed)
      : run_(run),
        name_(std::move(name)),
        rule_(rule),
        missed_(missed),
        n_(std::min(run.chosen().step_n, (run.chosen().step_rows - 1) / sets)),
        table_("weights", run.chosen().step_rows, run.chosen().width),
        grads_("grads", n_, table_.width()),
        batch_("batch", n_, table_.width()),
        state_(ferry::optim::make_state(rule, table_)) {
    const auto& exec = run.exec();
    const auto rows = static_cast<std::uint64_t>(table_.rows());
    const std::uint64_t seed = run.fresh_seed();
    ferry::init::custom(exec, table_, element_value{width()});
    ferry::init::custom(exec, grads_, gradient_value{width()});
    for (int s = 0; s < sets; ++s) {
      parts_.emplace_back("indices", n_);
      ferry::init::custom(exec, parts_.back(), part_row{seed, rows, s * n_});
      step(s).wait();
    }
    // Steps of a single row pass by.
    row_indices single_row("indices", 1);
    ferry::init::custom(exec, single_row, part_row{seed, rows, sets * n_});
    const auto grads = grads_.first(1);
    while (state_.steps() < missed + sets) {
      ferry::step(exec, rule_, table_, state_, single_row, grads, ferry::step_count::catch_up{}).detach();
      if (state_.steps() % 1024 == 0) exec.fence("ferry_bench::missed");
    }
    exec.fence("ferry_bench::missed");
  }

  void time() {
    time(
        "gather",
        [&](int call) {
          return ferry::gather(run_.exec(), rule_, table_, state_, parts_[static_cast<std::size_t>(call)],
                               batch_);
        },
        [&] { return wrong_elements(batch_, false); });
    time(
        "step", [&](int call) { return step(call); },
        [&] {
          ferry::gather(run_.exec(), table_, parts_.back(), batch_).wait();
          return wrong_elements(batch_, true);
        });
  }

 private:
  [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(table_.width()); }
  auto step(int part) {
    return ferry::step(run_.exec(), rule_, table_, state_, parts_[static_cast<std::size_t>(part)], grads_,
                       ferry::step_count::catch_up{});
  }

  template <class Work, class Check>
  void time(const std::string& verb, const Work& work, const Check& wrong) {
    figure result;
    result.name = "step.catch_up." + name_ + "." + verb + "." + std::to_string(missed_);
    result.setting = {{"rows", static_cast<std::int64_t>(table_.rows())},
                      {"n", n_},
                      {"width", width()},
                      {"missed", missed_}};
    work(0).wait();
    for (int call = 1; call < sets; ++call) {
      const auto begin = std::chrono::steady_clock::now();
      work(call).wait();
      const double ms = 1e3 * seconds_since(begin);
      result.time.wall.add(ms);
      result.time.device.add(ms);
    }
    conclude(run_, result, wrong());
  }

  /// Of the first rows of the last part, up to what float loses in the products of all steps.
  std::int64_t wrong_elements(const batch_tensor& batch, bool stepped_again) const {
    const std::int64_t some = std::min<std::int64_t>(n_, 4), last = state_.steps();
    const auto listed = to_host(parts_.back());
    std::vector<float> weights(static_cast<std::size_t>(some * width()));
    copy_to_host(weights.data(), batch.data(), weights.size() * sizeof(float));
    // A step rounds by half a unit in the last place, and neighbouring steps the same way: a step's decay is many units.
    const double rounding = 0x1p-24 * static_cast<double>(last);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < some * width(); ++i) {
      const std::int64_t position = i / width(), column = i % width();
      const auto gradient = static_cast<double>(gradient_value{width()}(position, column));
      Element expected{
          static_cast<double>(element_value{width()}(listed[static_cast<std::size_t>(position)], column))};
      for (std::int64_t t = 1; t <= last; ++t)
        expected.step(t == sets || (stepped_again && t == last) ? gradient : 0.0);
      const double difference = static_cast<double>(weights[static_cast<std::size_t>(i)]) - expected.weight;
      if (!(std::abs(difference) <= 1e-6 + rounding * std::abs(expected.weight))) ++wrong;
    }
    return wrong;
  }

  session& run_;
  std::string name_;
  Rule rule_;
  std::int64_t missed_, n_;
  ferry::tensor<float, ferry::device_space> table_;
  batch_tensor grads_, batch_;
  decltype(ferry::optim::make_state(std::declval<const Rule&>(), table_)) state_;
  std::vector<row_indices> parts_;
};

void catch_up(session& run) {
  // A host takes minutes for what a device does in seconds.
  constexpr bool on_host = ferry::execution_backend<exec_space>::device_is_host;
  std::vector<std::int64_t> counts{1000, 100000};
  if (on_host) counts = {100};
  if (run.chosen().quick) counts = {20};
  for (const std::int64_t missed : counts) {
    late_rows<ferry::optim::adamw, element_of_adamw>(run, "adamw", decoupled, missed).time();
    late_rows<ferry::optim::sgd, element_of_sgd>(run, "sgd", coupled, missed).time();
  }
}

const registration mine{"step.catch_up", catch_up};

}  // namespace
}  // namespace ferry_bench::step_catch_up_cases
