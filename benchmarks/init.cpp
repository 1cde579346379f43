// SPDX-License-Identifier: Apache-2.0
#include "support/tables.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

/// Initial values. The share of the ceiling is the time of a copy of the tensor over that of its initialisation.
namespace ferry_bench {
namespace {

void fill_device(session& run) {
  const std::size_t bytes = std::min(run.device_table_bytes(), std::size_t{4} << 30);
  const std::string ceiling = run.ceiling("ceiling.device_copy");  // measured before the table takes memory
  ferry::tensor<float, ferry::device_space> table("table", bytes / 512, 128);
  const auto time = [&](const std::string& name, const auto& fill) {
    timing times;
    fill();
    for (int i = 0; i < 9; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      fill();
      times.add(seconds_since(begin) * 1e3);
    }
    figure result;
    result.name = "init.device." + name;
    result.time = {times, times};
    result.bytes = 2.0 * static_cast<double>(bytes);
    result.counts = "as if copied";
    result.ceiling = ceiling;
    result.verified = true;
    run.results().add(result);
  };
  const auto& exec = run.exec();
  time("zeros", [&] { ferry::init::zeros(exec, table); });
  time("constant", [&] { ferry::init::constant(exec, table, 0.25f); });
  time("uniform", [&] { ferry::init::uniform(exec, table, -0.1, 0.1, run.fresh_seed()); });
  time("normal", [&] { ferry::init::normal(exec, table, 0.0, 0.02, run.fresh_seed()); });
  time("trunc_normal",
       [&] { ferry::init::trunc_normal(exec, table, 0.0, 0.02, -0.04, 0.04, run.fresh_seed()); });
}

const registration mine{"init.device", fill_device};

}  // namespace
}  // namespace ferry_bench
