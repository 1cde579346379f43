// SPDX-License-Identifier: Apache-2.0
#include "support/step_case.hpp"
#include "support/zipf.hpp"

namespace ferry_bench {
namespace {

/// scatter_add in the order of the batch, with and without a plan, of rows named often, and in any order. Checked as a step of sgd with the
/// rate -1: the batch holds gradients.
template <class Which, class... Policies>
void time_sums(session& run, const std::string& name, const std::string& ceiling,
               ferry::tensor<float, ferry::device_space>& table, const batch_tensor& values,
               const Which& selection, const index_sets& sets, Policies... policies) {
  const named_rows named(run, sets[1]);
  const auto n = static_cast<std::int64_t>(values.rows());
  const auto width = static_cast<std::int64_t>(values.width());
  figure result;
  result.name = "scatter_add.device.step_batch." + name;
  result.setting = facts{{"n", n}, {"row_bytes", 4 * width}, {"burst", std::int64_t{16}}};
  result.counts = "read + write";
  result.ceiling = ceiling;
  result.bytes = 4 * static_cast<double>(2 * named.count() * width + n * width);
  result.time = measure(run, 16, [&](int call) {
    return ferry::scatter_add(run.exec(), table, selection[call], values, policies...);
  });
  const element_value before{width};
  ferry::init::custom(run.exec(), table, before);
  ferry::scatter_add(run.exec(), table, selection[1], values, policies...).wait();
  conclude(run, result,
           wrong_in_table(run, table.data(), static_cast<std::int64_t>(table.size()), before,
                          first_sgd_step{-1.0}, named));
}

void scatter_add_step_batch(session& run) {
  const auto rows = static_cast<std::size_t>(run.chosen().step_rows);
  const auto width = static_cast<std::size_t>(run.chosen().width);
  const auto n = run.chosen().step_n;
  const std::string ceiling = run.ceiling(in_memory().ceiling);  // measured before there are tables
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  batch_tensor values("values", n, width);
  ferry::init::custom(run.exec(), table, element_value{static_cast<std::int64_t>(width)});
  ferry::init::custom(run.exec(), values, gradient_value{static_cast<std::int64_t>(width)});
  const auto any = index_sets::make<any_row>(run, n, rows);
  time_sums(run, "sum", ceiling, table, values, any, any);
  time_sums(run, "sum_plan_ready", ceiling, table, values, plan_sets(run, any, rows), any);
  const auto popular = index_sets::make<popular_row>(run, n, rows);
  time_sums(run, "sum.zipf_1.05", ceiling, table, values, popular, popular);
  time_sums(run, "sum_any_order", ceiling, table, values, any, any, ferry::duplicates::sum_any_order{});
  time_sums(run, "sum_any_order_unchecked", ceiling, table, values, any, any,
            ferry::duplicates::sum_any_order{}, ferry::bounds::unchecked{});
}

/// Particles in cells: each adds its row of four floats to its cell and reads the cell's sums. Cells change with each call.
template <class... Policies>
void time_particles(session& run, const std::string& name, Policies... policies) {
  const auto cells = static_cast<std::size_t>(run.chosen().step_rows);
  const std::int64_t particles = run.chosen().device_n, width = 4;
  const std::string ceiling = run.ceiling(in_memory().ceiling);
  ferry::tensor<float, ferry::device_space> field("field", cells, width);
  batch_tensor deposits("deposits", particles, width), gathered("gathered", particles, width);
  ferry::init::custom(run.exec(), deposits, gradient_value{width});
  const auto sets = index_sets::make<any_row>(run, particles, cells);
  const named_rows named(run, sets[1]);
  figure result;
  result.name = "job.particles." + name;
  result.setting = facts{{"n", particles}, {"width", width}};
  result.counts = "read + write";
  result.ceiling = ceiling;
  result.bytes = 4 * static_cast<double>(width * (3 * named.count() + 2 * particles));
  const auto deposit_and_gather = [&](int call) {
    ferry::scatter_add(run.exec(), field, sets[call], deposits, policies...).detach();
    return ferry::gather(run.exec(), field, sets[call], gathered);
  };
  result.time = measure(run, 4, deposit_and_gather);
  const element_value before{width};
  ferry::init::custom(run.exec(), field, before);
  deposit_and_gather(1).wait();
  conclude(run, result,
           wrong_in_table(run, field.data(), static_cast<std::int64_t>(field.size()), before,
                          first_sgd_step{-1.0}, named));
}
void particles(session& run) {
  time_particles(run, "in_order");
  time_particles(run, "any_order", ferry::duplicates::sum_any_order{});
}

const registration in_cells{"job.particles", particles};
const registration sums{"scatter_add.device.step_batch", scatter_add_step_batch};

}  // namespace
}  // namespace ferry_bench
