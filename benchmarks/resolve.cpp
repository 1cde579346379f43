// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"

#include <ferry/cache.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

/// Slots of rows that requests name: rows of tokens for a sparse attention, experts of a layer. Each call's slots are
/// checked: they hold the rows of the table's formula.
namespace ferry_bench {
namespace {

using table_type = ferry::tensor<float, ferry::mapped_space>;
using request_rows = ferry::tensor<std::int32_t, ferry::device_space>;

/// Groups of rows, and the batches that name them.
struct request_load {
  std::int64_t groups;
  std::int64_t group_rows;
  std::int64_t slots;      ///< of a group
  std::int64_t positions;  ///< of a group and call
  std::int64_t repeats;    ///< positions of all groups whose rows each call names
  std::int64_t row_bytes;

  KOKKOS_FUNCTION std::int64_t repeats_of(std::int64_t group) const {
    return repeats * (group + 1) / groups - repeats * group / groups;
  }
  [[nodiscard]] std::int64_t misses() const { return groups * positions - repeats; }
  /// Calls after which rows come again, which have left their slots by then.
  [[nodiscard]] std::int64_t cycle() const {
    const std::int64_t fewest = positions - (repeats + groups - 1) / groups;
    return fewest == 0 ? 4 : slots / fewest + 2;
  }
};

/// The row of a position: one of those that each call names, or the next of the fresh_rows. Positions are in random order.
struct requested_row {
  request_load load;
  std::int64_t call;

  KOKKOS_FUNCTION std::int32_t operator()(std::int64_t group, std::int64_t position) const {
    const auto key = static_cast<std::uint64_t>(call * load.groups + group);
    const std::int64_t repeats = load.repeats_of(group), fresh_rows = load.positions - repeats,
                       i = distinct_row{key, static_cast<std::uint64_t>(load.positions)}(position, 0),
                       number = i < repeats ? i
                                            : repeats + (call * fresh_rows + i - repeats) %
                                                            (load.group_rows - repeats);
    const distinct_row in_group{static_cast<std::uint64_t>(group),
                                static_cast<std::uint64_t>(load.group_rows)};
    return static_cast<std::int32_t>(group * load.group_rows + in_group(number, 0));
  }
};

/// Elements of slots that are not those of their rows.
struct wrong_slots {
  const float* in_slots;
  const std::int32_t* slots;
  const std::int32_t* rows;
  element_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t position = i / expected.width, column = i % expected.width;
    const std::int64_t slot = slots[position];
    if (slot < 0 || in_slots[slot * expected.width + column] != expected(rows[position], column)) ++wrong;
  }
};

figure time_resolve(session& run, const std::string& name, const request_load& load, table_type& table) {
  ferry::cached_table hot(table, ferry::cache::lru{.slots = load.slots, .groups = load.groups});
  std::vector<request_rows> sets;
  for (std::int64_t call = 0; call < load.cycle(); ++call) {
    sets.emplace_back("rows", load.groups, load.positions);
    ferry::init::custom(run.exec(), sets.back(), requested_row{load, call});
  }
  request_rows slots("slots", load.groups, load.positions);
  const auto resolve = [&](std::int64_t call) {
    return ferry::resolve(run.exec(), hot, sets[static_cast<std::size_t>(call % load.cycle())], slots);
  };
  for (std::int64_t call = 0; call < load.cycle(); ++call) resolve(call).wait();
  const auto before = hot.statistics();
  figure result;
  result.name = name;
  result.setting = {{"groups", load.groups},       {"slots", load.slots},
                    {"positions", load.positions}, {"repeats", load.repeats},
                    {"row_bytes", load.row_bytes}, {"rows", static_cast<std::int64_t>(table.rows())}};
  result.bytes = static_cast<double>(load.misses() * load.row_bytes);
  result.counts = "payload";
  result.time = measure(run, load.row_bytes < 65536 ? 4 : 1, resolve);
  const auto after = hot.statistics();
  const auto hits = static_cast<double>(after.hits - before.hits),
             total = hits + static_cast<double>(after.misses - before.misses);
  result.setting.emplace_back("hit_rate", hits / total);
  resolve(0).wait();
  conclude(run, result,
           count_of(run.exec(), "ferry_bench::check", load.groups * load.positions * load.row_bytes / 4,
                    wrong_slots{hot.device_rows().data(), slots.data(), sets[0].data(),
                                element_value{load.row_bytes / 4}}));
  return result;
}

/// Rows of `row_bytes` for a load, by their formula.
table_type store_of(const session& run, const request_load& load) {
  table_type table("store", load.groups * load.group_rows, load.row_bytes / 4);
  ferry::init::custom(run.exec(), table, element_value{load.row_bytes / 4});
  return table;
}

/// Milliseconds that the link takes for a row of the table, by gathers of random rows.
double link_ms_of_row(session& run, const table_type& table, std::int64_t n) {
  const std::int64_t row_bytes = static_cast<std::int64_t>(table.width()) * 4;
  const auto sets = index_sets::make<distinct_row>(run, n, table.rows());
  batch_tensor batch("batch", n, table.width());
  const std::string name = "resolve.link." + bytes_text(row_bytes) + ".n" + std::to_string(n);
  time_gather(run, name, {}, table, sets, batch, 4, over_the_link());
  return run.results().find(name)->time.device.median() / static_cast<double>(n);
}

/// Tokens of a sparse attention: 64 requests, and one.
void tokens(session& run) {
  request_load load{64, 32768, 8192, 2048, 0, 656};
  if (run.chosen().quick) load = {4, 512, 128, 32, 0, 656};
  auto table = store_of(run, load);
  const double row_ms = link_ms_of_row(run, table, load.groups * load.positions);
  for (const std::int64_t percent : {50, 90, 99, 100}) {
    load.repeats = load.groups * load.positions * percent / 100;
    const std::string name = "resolve.tokens.hits" + std::to_string(percent);
    const double ms = time_resolve(run, name, load, table).time.device.median();
    const double bound = static_cast<double>(load.misses()) * row_ms + 20e-3 +
                         40e-6 * static_cast<double>(load.groups * load.positions) / 1024;
    run.results().ratio(name, "misses over the link + 20 us + 40 ns for each 1024 positions", ms / bound);
  }
  load.group_rows *= load.groups;
  load.groups = 1;
  load.repeats = 0;
  time_resolve(run, "resolve.one_request", load, table);
  link_ms_of_row(run, table, load.positions);
  compare_rates(run, "resolve.one_request",
                "resolve.link." + bytes_text(load.row_bytes) + ".n" + std::to_string(load.positions));
}

/// Experts of layers: 8 in a call, 70 % of them in slots.
void experts(session& run) {
  request_load load{5, 32, 16, 8, 28, 18 << 20};
  if (run.chosen().quick) load.row_bytes = 18 << 10;
  auto table = store_of(run, load);
  figure result = time_resolve(run, "resolve.experts", load, table);
  run.results().ratio(result.name, "ceiling.h2d",
                      result.gb_per_s() / run.results().find(run.ceiling("ceiling.h2d"))->gb_per_s());
}

const registration of_tokens{"resolve.tokens", tokens};
const registration of_experts{"resolve.experts", experts};

}  // namespace
}  // namespace ferry_bench
