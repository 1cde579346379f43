// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"

#include <algorithm>

/// Records, which hold a row's weights and state side by side.
namespace ferry_bench::step_records_cases {
namespace {

constexpr ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
constexpr first_normed_step first{rule.lr, rule.eps};

/// Against the same bytes as a table and its state: padding is not counted.
template <class Space, class... Policies>
void time_records(session& run, const std::string& name, std::int64_t rows, std::int64_t width,
                  std::int64_t n, const step_terms& terms, Policies... policies) {
  figure result;
  result.ceiling = run.ceiling(terms.ceiling);
  auto records = ferry::optim::make_records<float, Space>(rule, "weights", static_cast<std::size_t>(rows),
                                                          static_cast<std::size_t>(width));
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  const plan_sets plans(run, sets, static_cast<std::size_t>(rows));
  const named_rows named(run, sets[1]);
  batch_tensor grads("grads", n, width);
  ferry::init::custom(run.exec(), grads, gradient_value{width});
  result.name = name;
  result.setting = {{"rows", rows},
                    {"n", n},
                    {"distinct", named.count()},
                    {"width", width},
                    {"record_bytes", static_cast<std::int64_t>(records.row_bytes())},
                    {"burst", std::int64_t{terms.burst}}};
  result.counts = "read + write";
  result.bytes = 4.0 * static_cast<double>(n * width * (2 * 3 + (terms.counts_gradients ? 1 : 0)));

  const element_value before{width};
  ferry::init::custom(run.exec(), records.table(), before);
  ferry::step(run.exec(), rule, records, plans[1], grads, policies...).wait();
  std::int64_t wrong = 0;
  {
    ferry::tensor<float, Space> dense("dense", rows, width);
    ferry::copy(run.exec(), records.table(), dense).wait();
    wrong = wrong_in_table(run, dense.data(), rows * width, before, first, named);
  }
  result.time = measure(run, terms.burst, [&](int call) {
    return ferry::step(run.exec(), rule, records, plans[call], grads, policies...);
  });
  conclude(run, result, wrong);
}

/// Next to step.adam.mapped: a third of the bursts over the link. Of the bytes that a table and its state have there.
void mapped(session& run) {
  const auto n = run.chosen().step_n;
  const auto width = run.chosen().width;
  const auto rows = std::max(n, static_cast<std::int64_t>(run.host_table_bytes()) / (4 * 4 * width));
  time_records<ferry::mapped_space>(run, "step.adam.records.mapped.direct", rows, width, n,
                                    both_ways_over_the_link(), ferry::path::direct{});
  time_records<ferry::mapped_space>(run, "step.adam.records.mapped.ordered", rows, width, n,
                                    both_ways_over_the_link(), ferry::path::ordered{});
}

/// Rows of one sector each, where three arrays ask for three, and of the usual width.
void in_device(session& run) {
  const auto rows = run.chosen().step_rows, n = run.chosen().step_n;
  time_records<ferry::device_space>(run, "step.adam.records.narrow", rows, 8, n, in_memory());
  time_records<ferry::device_space>(run, "step.adam.records.wide", rows, run.chosen().width, n, in_memory());
}
void narrow_arrays(session& run) {
  const auto rows = run.chosen().step_rows, n = run.chosen().step_n;
  step_case<ferry::device_space, ferry::optim::adam, first_normed_step> steps(run, "step.adam.narrow", rule,
                                                                              first, rows, n, in_memory(), 8);
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::size_t>(rows));
  steps.time("plan_ready", sets, plan_sets(run, sets, static_cast<std::size_t>(rows)));
}

const registration over_link{"step.adam.records.mapped", mapped};
const registration device{"step.adam.records", in_device};
const registration arrays{"step.adam.narrow", narrow_arrays};

}  // namespace
}  // namespace ferry_bench::step_records_cases
