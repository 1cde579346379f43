// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure.hpp"
#include "tables.hpp"
#include "traffic.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ferry_bench {

/// The batch of a scatter holds its own formula, so that its rows are told apart from the table's.
constexpr std::uint64_t batch_salt = 1;

inline batch_tensor salted_batch(const session& run, std::int64_t n, std::size_t width) {
  batch_tensor batch("batch", n, width);
  ferry::init::custom(run.exec(), batch, element_value{static_cast<std::int64_t>(width), batch_salt});
  return batch;
}

/// For each position the last one that names the same row: whose values duplicates::last leaves there, and the position
/// itself where no row is named twice.
inline row_indices winners(const session& run, const row_indices& rows) {
  const auto listed = to_host(rows);
  std::unordered_map<std::int64_t, std::int64_t> last;
  last.reserve(listed.size());
  for (std::size_t p = 0; p < listed.size(); ++p) last[listed[p]] = static_cast<std::int64_t>(p);
  std::vector<std::int64_t> winner(listed.size());
  for (std::size_t p = 0; p < listed.size(); ++p) winner[p] = last[listed[p]];
  row_indices device_ids("winners", winner.size());
  ferry::copy(run.exec(), winner, device_ids).wait();
  return device_ids;
}

/// Elements that a scatter by `rows` leaves wrong. The table's own formula is put back
/// first, so that the batch's rows can only have come from this call.
template <class Table, class... Policies>
std::int64_t wrong_after_scatter(const session& run, const Table& table, const row_indices& rows,
                                 const row_indices& winner, const batch_tensor& batch, Policies... policies) {
  const auto width = static_cast<std::int64_t>(batch.width());
  ferry::init::custom(run.exec(), table, element_value{width});
  ferry::scatter(run.exec(), table, rows, batch, policies...).wait();
  return count_of(
      run.exec(), "ferry_bench::check", static_cast<std::int64_t>(batch.size()),
      wrong_scattered{table.data(), rows.data(), winner.data(), element_value{width, batch_salt}});
}

/// Times scatters of `batch` into `table` by `sets[call]`, then checks one more. `winner` is that of sets[1].
template <class Table, class... Policies>
void time_scatter(session& run, std::string name, facts setting, const Table& table, const index_sets& sets,
                  const row_indices& winner, const batch_tensor& batch, int burst, const traffic& moved,
                  Policies... policies) {
  figure result = figure_of(run, std::move(name), std::move(setting), batch, burst, moved);
  result.time = measure(run, burst, [&](int call) {
    return ferry::scatter(run.exec(), table, sets[call], batch, policies...);
  });
  conclude(run, result, wrong_after_scatter(run, table, sets[1], winner, batch, policies...));
}

}  // namespace ferry_bench
