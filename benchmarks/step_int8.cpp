// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <ferry/int8.hpp>

/// Steps on tables of 8-bit rows.
namespace ferry_bench::step_int8_cases {
namespace {

/// Elements of the named rows that are farther from the rule's first step than half a code of the widest range that a row
/// can have here: weights in [0, 1) and a step of at most lr to either side.
template <class First>
struct wrong_decoded {
  const float* before;
  const float* after;
  const std::int64_t* rows;
  const std::int64_t* begins;
  const std::int64_t* positions;
  std::int64_t width;
  First first;
  double tolerance;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t named = i / width, column = i % width;
    const summed_gradient sum{{width}, positions, begins[named], begins[named + 1]};
    const std::int64_t element = rows[named] * width + column;
    const double difference =
        static_cast<double>(after[element]) - first(static_cast<double>(before[element]), sum(column));
    if (!(difference < tolerance && difference > -tolerance)) ++wrong;
  }
};

template <class Rule, class First>
void time_int8(session& run, const std::string& name, const Rule& rule, const First& first) {
  const auto rows = run.chosen().step_rows, n = run.chosen().step_n, width = run.chosen().width;
  figure result;
  result.ceiling = run.ceiling(in_memory().ceiling);
  const auto& exec = run.exec();
  ferry::rowwise_int8_tensor<ferry::device_space> table("codes", rows, width);
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  const plan_sets plans(run, sets, static_cast<std::size_t>(rows));
  const named_rows named(run, sets[1]);
  batch_tensor grads("grads", n, width), before("before", rows, width), after("after", rows, width);
  ferry::init::custom(exec, grads, gradient_value{width});
  ferry::init::custom(exec, before, element_value{width});
  ferry::quantize(exec, before, table).wait();
  ferry::dequantize(exec, table, before).wait();
  {
    auto state = ferry::optim::make_state(rule, table);
    ferry::step(exec, rule, table, state, plans[1], grads).wait();
  }
  ferry::dequantize(exec, table, after).wait();
  const double tolerance = (1.0 + 2.0 * rule.lr) / 255.0 * 0.51;
  const auto wrong =
      count_of(exec, "ferry_bench::check", n * width,
               wrong_decoded<First>{before.data(), after.data(), named.rows.data(), named.begins.data(),
                                    named.positions.data(), width, first, tolerance});

  auto state = ferry::optim::make_state(rule, table);
  result.name = name;
  result.setting = {{"rows", rows},
                    {"n", n},
                    {"width", width},
                    {"row_bytes", static_cast<std::int64_t>(table.row_bytes())},
                    {"burst", std::int64_t{in_memory().burst}}};
  result.counts = "read + write";
  result.bytes = static_cast<double>(n) * (2.0 * static_cast<double>(table.row_bytes()) +
                                           4.0 * static_cast<double>(width * (2 * state.fields() + 1)));
  result.time = measure(run, in_memory().burst,
                        [&](int call) { return ferry::step(exec, rule, table, state, plans[call], grads); });
  conclude(run, result, wrong);
}

void by_sgd(session& run) {
  const ferry::optim::sgd rule{.lr = 0.1};
  time_int8(run, "step.sgd.int8.plan_ready", rule, first_sgd_step{rule.lr});
}
void by_adam(session& run) {
  const ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
  time_int8(run, "step.adam.int8.plan_ready", rule, first_normed_step{rule.lr, rule.eps});
}

const registration sgd{"step.sgd.int8", by_sgd};
const registration adam{"step.adam.int8", by_adam};

}  // namespace
}  // namespace ferry_bench::step_int8_cases
