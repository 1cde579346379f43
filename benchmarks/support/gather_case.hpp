// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure.hpp"
#include "tables.hpp"
#include "traffic.hpp"

#include <string>
#include <utility>

namespace ferry_bench {

/// Times gathers from `table` into `batch` by `which[call]`, indices or plans, then poisons the batch, gathers once
/// more and checks every element against `sets`.
template <class Table, class Which, class... Policies>
void time_gather_by(session& run, std::string name, facts setting, const Table& table, const Which& rows,
                    const index_sets& sets, batch_tensor& batch, int burst, const traffic& moved,
                    Policies... policies) {
  figure result = figure_of(run, std::move(name), std::move(setting), batch, burst, moved);
  result.time = measure(
      run, burst, [&](int call) { return ferry::gather(run.exec(), table, rows[call], batch, policies...); });
  ferry::init::custom(run.exec(), batch, poison_value{});
  ferry::gather(run.exec(), table, rows[1], batch, policies...).wait();
  conclude(run, result, wrong_rows(run, batch, sets[1]));
}

template <class Table, class... Policies>
void time_gather(session& run, std::string name, facts setting, const Table& table, const index_sets& sets,
                 batch_tensor& batch, int burst, const traffic& moved, Policies... policies) {
  time_gather_by(run, std::move(name), std::move(setting), table, sets, sets, batch, burst, moved,
                 policies...);
}

}  // namespace ferry_bench
