// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../baseline/baseline.hpp"
#include "measure.hpp"
#include "step_check.hpp"
#include "tables.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace ferry_bench {

/// Ceiling of a rule's steps, and the bytes that count. Gradients that lie in the device don't pass its link.
struct step_terms {
  std::string ceiling;
  bool counts_gradients;
  int burst;
};
inline step_terms in_memory() { return {baseline::memory_ceiling(), true, 8}; }
inline step_terms both_ways_over_the_link() { return {"ceiling.link_both_ways", false, 1}; }

/// Steps of one rule by n gradients in the device on rows of one table.
template <class Space, class Rule, class First>
class step_case {
 public:
  step_case(session& run, std::string name, const Rule& rule, const First& first, std::int64_t rows,
            std::int64_t n, step_terms terms = in_memory())
      : run_(run),
        name_(std::move(name)),
        rule_(rule),
        first_(first),
        terms_(std::move(terms)),
        ceiling_(run.ceiling(terms_.ceiling)),
        table_("weights", rows, run.chosen().width),
        grads_("grads", n, table_.width()) {
    ferry::init::custom(run.exec(), grads_, gradient_value{static_cast<std::int64_t>(table_.width())});
  }

  /// By `which[call]`: the index sets, or plans of them.
  template <class Which, class... Policies>
  void time(const std::string& variant, const index_sets& sets, const Which& selection,
            Policies... policies) {
    const named_rows named(run_, sets[1]);
    const auto n = static_cast<std::int64_t>(grads_.rows());
    const auto width = static_cast<std::int64_t>(grads_.width());
    figure result;
    result.name = name_ + "." + variant;
    result.setting = {{"rows", static_cast<std::int64_t>(table_.rows())},
                      {"n", n},
                      {"distinct", named.count()},
                      {"width", width},
                      {"burst", std::int64_t{terms_.burst}}};
    result.counts = "read + write";
    result.ceiling = ceiling_;
    ferry::init::custom(run_.exec(), table_, element_value{width});
    {
      auto state = ferry::optim::make_state(rule_, table_);
      const std::int64_t of_row = width * (1 + state.fields()) + state.row_fields;
      result.bytes =
          4 * static_cast<double>(2 * of_row * named.count() + (terms_.counts_gradients ? n * width : 0));
      result.time = measure(run_, terms_.burst, [&](int call) {
        return ferry::step(run_.exec(), rule_, table_, state, selection[call], grads_, policies...);
      });
    }
    conclude(run_, result,
             wrong_after_step(run_, table_, rule_, first_, selection[1], named, grads_, policies...));
  }

 private:
  session& run_;
  std::string name_;
  Rule rule_;
  First first_;
  step_terms terms_;
  std::string ceiling_;  // measured before there are tables
  ferry::tensor<float, Space> table_;
  batch_tensor grads_;
};

/// The least that a step on distinct rows of a device table has to do: with a plan made beforehand, and with the promise
/// that every row is there and none comes twice.
template <class Rule, class First>
void time_rule(session& run, const std::string& name, const Rule& rule, const First& first, std::int64_t rows,
               std::int64_t n) {
  step_case<ferry::device_space, Rule, First> steps(run, name, rule, first, rows, n);
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  steps.time("plan_ready", sets, plan_sets(run, sets, static_cast<std::size_t>(rows)));
  steps.time("unique_unchecked", sets, sets, ferry::duplicates::assume_unique{}, ferry::bounds::unchecked{});
}
template <class Rule, class First>
void time_rule(session& run, const std::string& name, const Rule& rule, const First& first) {
  time_rule(run, name, rule, first, run.chosen().step_rows, run.chosen().step_n);
}

/// Also with the indices sorted inside the call, and with rows that come more than once.
template <class Rule, class First>
void time_steps(session& run, const std::string& name, const Rule& rule, const First& first) {
  time_rule(run, name, rule, first);
  const auto rows = static_cast<std::size_t>(run.chosen().step_rows);
  const auto n = run.chosen().step_n;
  step_case<ferry::device_space, Rule, First> steps(run, name, rule, first, run.chosen().step_rows, n);
  const auto distinct = index_sets::make<distinct_row>(run, n, rows);
  steps.time("plan_inside", distinct, distinct);
  steps.time("unique", distinct, distinct, ferry::duplicates::assume_unique{});
  const auto any = index_sets::make<any_row>(run, n, rows);
  steps.time("duplicates", any, any);
  if constexpr (ferry::LinearOptimizer<Rule>)
    steps.time("duplicates_any_order", any, any, ferry::duplicates::sum_any_order{});
  steps.time("duplicates_plan_ready", any, plan_sets(run, any, rows));
}

}  // namespace ferry_bench
