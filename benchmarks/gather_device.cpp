// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/gather_case.hpp"

#include <bit>

namespace ferry_bench {
namespace {

/// The best shape of the hand-written kernel on the same table, and how ferry compares with it.
template <class View>
void time_hand_written(session& run, const std::string& name, const facts& setting, const View& table,
                       const index_sets& sets, batch_tensor& batch, int burst) {
  const auto row_bytes = static_cast<std::int64_t>(batch.width() * sizeof(float));
  if (!std::has_single_bit(static_cast<std::uint64_t>(row_bytes)))
    return run.results().skipped(name, "the hand-written kernel takes powers of two only");
  figure best;
  for (int shape = 0; shape < baseline::gather_shapes(); ++shape) {
    figure tried;
    tried.name = name;
    tried.setting = setting + facts{{"n", static_cast<std::int64_t>(batch.rows())},
                                    {"row_bytes", row_bytes},
                                    {"burst", std::int64_t{burst}},
                                    {"shape", baseline::shape_name(shape)}};
    tried.bytes = static_cast<double>(batch.size() * sizeof(float)) * 2;
    tried.counts = "read + write";
    tried.ceiling = run.ceiling("ceiling.device_copy");
    tried.time = measure(run, burst, [&](int call) {
      baseline::gather(run.exec(), table.data(), sets[call].data(), batch.data(),
                       static_cast<std::int64_t>(batch.rows()), row_bytes, shape);
    });
    if (shape == 0 || tried.time.device.median() < best.time.device.median()) best = tried;
  }
  ferry::init::custom(run.exec(), batch, poison_value{});
  baseline::gather(run.exec(), table.data(), sets[1].data(), batch.data(),
                   static_cast<std::int64_t>(batch.rows()), row_bytes, 0);
  run.exec().fence("ferry_bench::wait");
  conclude(run, best, wrong_rows(run, batch, sets[1]));
}

/// A table of which no cache holds much.
void gather_device(session& run) {
  constexpr int burst = 4;
  filled_table<ferry::device_space> table(run, run.device_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto view = table.rows_of(row_bytes);
    const auto sets = index_sets::make<any_row>(run, run.chosen().device_n, view.rows());
    batch_tensor batch("batch", run.chosen().device_n, row_bytes / 4);
    const std::string name = "gather.device." + bytes_text(row_bytes);
    time_gather(run, name, table.setting(), view, sets, batch, burst, inside_the_device());
    time_gather(run, name + ".unchecked", table.setting(), view, sets, batch, burst, inside_the_device(),
                ferry::bounds::unchecked{});
    time_hand_written(run, name + ".hand_written", table.setting(), view, sets, batch, burst);
    compare_rates(run, name, name + ".hand_written");
    compare_rates(run, name + ".unchecked", name + ".hand_written");
  }
}

/// The batch of a training step: milliseconds matter.
void gather_step_batch(session& run) {
  constexpr int burst = 16;
  const auto row_bytes = run.chosen().width * 4;
  filled_table<ferry::device_space> table(run, static_cast<std::size_t>(run.chosen().step_rows * row_bytes));
  const auto view = table.rows_of(row_bytes);
  const auto sets = index_sets::make<any_row>(run, run.chosen().step_n, view.rows());
  batch_tensor batch("batch", run.chosen().step_n, run.chosen().width);
  time_gather(run, "gather.device.step_batch", table.setting(), view, sets, batch, burst,
              inside_the_device());
  time_gather(run, "gather.device.step_batch.unchecked", table.setting(), view, sets, batch, burst,
              inside_the_device(), ferry::bounds::unchecked{});
}

const registration large{"gather.device", gather_device};
const registration small{"gather.device.step_batch", gather_step_batch};

}  // namespace
}  // namespace ferry_bench
