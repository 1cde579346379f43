// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"
#include "support/scatter_case.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace ferry_bench {
namespace {

/// Rows of any width: narrow ones, and such as are no whole units of 16 bytes.
constexpr std::int64_t widths[] = {1, 3, 8, 33, 65, 127, 128, 129};
constexpr std::int64_t odd_widths[] = {33, 65, 127, 128, 129};
constexpr int burst = 4;

std::string name_of(const std::string& verb, const std::string& space, std::int64_t width) {
  return "widths." + verb + "." + space + "." + std::to_string(width);
}

struct position_of_row {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const { return position; }
};

/// scatter_add of distinct rows into zeros leaves the batch's formula.
template <class Table>
void time_sums(session& run, const std::string& name, const facts& setting, const Table& table,
               const index_sets& sets, const batch_tensor& batch) {
  const traffic three{3.0, "read + read + write", "ceiling.device_copy"};
  const auto width = static_cast<std::int64_t>(batch.width());
  const auto time = [&](const std::string& label, const auto& selection, auto... policies) {
    figure result = figure_of(run, label, setting, batch, burst, three);
    result.time = measure(run, burst, [&](int call) {
      return ferry::scatter_add(run.exec(), table, selection[call], batch, policies...);
    });
    ferry::init::zeros(run.exec(), table);
    ferry::scatter_add(run.exec(), table, selection[1], batch, policies...).wait();
    row_indices positions("positions", batch.rows());
    ferry::init::custom(run.exec(), positions, position_of_row{});
    conclude(run, result,
             count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(batch.size()),
                      wrong_scattered{table.data(), sets[1].data(), positions.data(),
                                      element_value{width, batch_salt}}));
  };
  time(name, sets);
  time(name + ".any_order", sets, ferry::duplicates::sum_any_order{});
  time(name + ".unique", sets, ferry::duplicates::assume_unique{});
  time(name + ".plan_ready", plan_sets(run, sets, table.rows()));
}

void widths_device(session& run) {
  filled_table<ferry::device_space> table(run, run.device_table_bytes());
  for (const std::int64_t width : widths) {
    const auto view = table.rows_of(4 * width);
    const auto n = std::min(run.chosen().device_n, static_cast<std::int64_t>(view.rows()));  // distinct rows
    const auto any = index_sets::make<any_row>(run, n, view.rows());
    batch_tensor batch("batch", n, width);
    ferry::init::custom(run.exec(), view, element_value{width});
    time_gather(run, name_of("gather", "device", width), table.setting(), view, any, batch, burst,
                inside_the_device());
    const auto values = salted_batch(run, n, static_cast<std::size_t>(width));
    const auto distinct = index_sets::make<distinct_row>(run, n, view.rows());
    time_scatter(run, name_of("scatter", "device", width), table.setting(), view, distinct,
                 winners(run, distinct[1]), values, burst, inside_the_device(),
                 ferry::duplicates::assume_unique{});
    time_scatter(run, name_of("scatter_last", "device", width), table.setting(), view, any,
                 winners(run, any[1]), values, burst, inside_the_device());
    time_sums(run, name_of("scatter_add", "device", width), table.setting(), view, distinct, values);
  }
}

void widths_mapped(session& run) {
  filled_table<ferry::mapped_space> table(run, run.host_table_bytes());
  for (const std::int64_t width : odd_widths) {
    const auto view = table.rows_of(4 * width);
    const auto n = std::min(run.chosen().n, static_cast<std::int64_t>(view.rows()));
    const auto distinct = index_sets::make<distinct_row>(run, n, view.rows());
    batch_tensor batch("batch", n, width);
    ferry::init::custom(run.exec(), view, element_value{width});
    time_gather(run, name_of("gather", "mapped", width), table.setting(), view, distinct, batch, 1,
                over_the_link());
    time_scatter(run, name_of("scatter", "mapped", width), table.setting(), view, distinct,
                 winners(run, distinct[1]), salted_batch(run, n, static_cast<std::size_t>(width)), 1,
                 back_over_the_link(), ferry::duplicates::assume_unique{});
  }
}

/// out(p, c) must be what the formula gives for (rows[p], c), rounded to T.
template <class T>
struct wrong_narrow {
  const float* out;
  const std::int64_t* rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / expected.width, column = i % expected.width;
    const std::int64_t row = rows == nullptr ? position : rows[position];
    if (out[i] != static_cast<float>(T(expected(row, column)))) ++wrong;
  }
};

/// Rows of 16-bit numbers and batches of floats or of such numbers.
template <class T>
void time_narrow(session& run, const std::string& type) {
  const auto width = run.chosen().width;
  const auto rows = run.chosen().step_rows, n = std::min(run.chosen().device_n, rows);
  const auto floats = static_cast<double>(n * width);
  const std::string ceiling = run.ceiling(inside_the_device().ceiling);
  ferry::tensor<T, ferry::device_space> table("table", rows, width), narrow("narrow", n, width);
  batch_tensor batch("batch", n, width);
  const auto sets = index_sets::make<distinct_row>(run, n, static_cast<std::uint64_t>(rows));
  const element_value formula{width};
  const auto time = [&](const std::string& verb, double bytes, const std::int64_t* expected, const auto& call,
                        const auto& result_to_batch) {
    figure result;
    result.name = "widths." + verb + "." + type;
    result.setting = facts{{"n", n}, {"row_bytes", 2 * width}, {"burst", std::int64_t{burst}}};
    result.bytes = bytes;
    result.counts = "read + write";
    result.ceiling = ceiling;
    result.time = measure(run, burst, call);
    result_to_batch();
    conclude(run, result,
             count_of(run.exec(), "ferry_bench::check", n * width,
                      wrong_narrow<T>{batch.data(), expected, formula}));
  };
  const auto& exec = run.exec();
  ferry::init::custom(exec, table, formula);
  time(
      "gather_to_float", 6 * floats, sets[1].data(),
      [&](int call) { return ferry::gather(exec, table, sets[call], batch); },
      [&] { ferry::gather(exec, table, sets[1], batch).wait(); });
  ferry::init::custom(exec, batch, formula);
  time(
      "scatter_floats", 6 * floats, nullptr,
      [&](int call) {
        return ferry::scatter(exec, table, sets[call], batch, ferry::duplicates::assume_unique{});
      },
      [&] {
        ferry::scatter(exec, table, sets[1], batch, ferry::duplicates::assume_unique{}).wait();
        ferry::init::custom(exec, batch, poison_value{});
        ferry::gather(exec, table, sets[1], batch).wait();
      });
  ferry::init::custom(exec, narrow, formula);
  time(
      "copy_to_float", 6 * floats, nullptr, [&](int) { return ferry::copy(exec, narrow, batch); },
      [&] {
        ferry::init::custom(exec, batch, poison_value{});
        ferry::copy(exec, narrow, batch).wait();
      });
  const auto sum = [&](const std::string& verb, const auto& selection) {
    time(
        verb, 6 * floats, nullptr,
        [&](int call) { return ferry::scatter_add(exec, table, selection[call], narrow); },
        [&] {
          ferry::init::zeros(exec, table);
          ferry::scatter_add(exec, table, selection[1], narrow).wait();
          ferry::gather(exec, table, sets[1], batch).wait();
        });
  };
  sum("scatter_add", sets);
  sum("scatter_add_plan_ready", plan_sets(run, sets, static_cast<std::size_t>(rows)));
}

void widths_narrow(session& run) {
  time_narrow<ferry::half_t>(run, "half");
  time_narrow<ferry::bhalf_t>(run, "bhalf");
}

const registration device{"widths.device", widths_device};
const registration mapped{"widths.mapped", widths_mapped};
const registration narrow{"widths.narrow", widths_narrow};

}  // namespace
}  // namespace ferry_bench
