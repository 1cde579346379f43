// SPDX-License-Identifier: Apache-2.0
#include "support/machine.hpp"
#include "support/tables.hpp"

#include <ferry/calibrate.hpp>
#include <ferry/ferry.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// How good path::automatic's choices are: over a grid of spaces, sizes of tables, rows and batches, every path is
/// timed next to it.
namespace ferry_bench {
namespace {

constexpr double gib = 0x1p30;
constexpr double good = 1.1;  ///< times the fastest path

/// One path at one point.
struct runner {
  std::string path;
  timing ms;
};

struct tally {
  int points = 0;
  int chosen_well = 0;     ///< the path that is picked, by its own time
  int automatic_well = 0;  ///< path::automatic's own time
  double worst = 1.0;
};

/// Calls visit(path) for each path that verbs compile between the table's space and a batch on the device.
template <class Space, class Visit>
void for_each_path(const Visit& visit) {
  visit(ferry::path::direct{});
  if constexpr (!ferry::HostExecutionSpace<exec_space>) {
    visit(ferry::path::ordered{});
    if constexpr (!std::is_same_v<Space, ferry::device_space>) {
      visit(ferry::path::staged{});
      visit(ferry::path::cooperative{});
    }
  }
  visit(ferry::path::automatic{});
}

/// Times the paths in turns, so that whatever slows the machine down for a while slows all of them.
template <class Space, class View>
void measure_point(session& run, const std::string& point, const View& table, std::int64_t n, facts setting,
                   tally& total) {
  const auto sets = index_sets::make<any_row>(run, n, table.rows());
  batch_tensor batch("batch", n, table.width());
  std::vector<runner> runners;
  for_each_path<Space>([&](auto path) {
    runner entry;
    entry.path = std::string(path.name);
    runners.push_back(entry);
    ferry::init::custom(run.exec(), batch, poison_value{});
    ferry::gather(run.exec(), table, sets[0], batch, path).wait();
    if (const auto wrong = wrong_rows(run, batch, sets[0]); wrong != 0)
      run.results().failed(point + "." + std::string(path.name), std::to_string(wrong) + " wrong elements");
  });
  const int repeats = std::min(run.chosen().repeats, 5);
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; turn < repeats && (turn < 3 || seconds_since(begin) < 0.5); ++turn) {
    std::size_t next = 0;
    for_each_path<Space>([&](auto path) {
      const auto& rows = sets[turn * static_cast<int>(runners.size()) + static_cast<int>(next) + 1];
      const auto call_begin = std::chrono::steady_clock::now();
      ferry::gather(run.exec(), table, rows, batch, path).wait();
      runners[next++].ms.add(seconds_since(call_begin) * 1e3);
    });
  }
  const auto explanation = ferry::explain(ferry::verb::gather, table, n, run.exec());
  const std::string picked(name(explanation.picked));
  double best = std::numeric_limits<double>::max(), chosen = 0.0, automatic = 0.0;
  std::string fastest;
  for (const auto& entry : runners) {
    const double ms = entry.ms.median();
    setting.emplace_back(entry.path + "_ms", ms);
    if (entry.path == picked) chosen = ms;
    if (entry.path == ferry::path::automatic::name)
      automatic = ms;
    else if (ms < best) {
      best = ms;
      fastest = entry.path;
    }
  }
  for (const auto& candidate : explanation.candidates)
    setting.emplace_back(std::string(name(candidate.path)) + "_by_rates_ms", candidate.seconds * 1e3);
  const double ratio = chosen / best;
  setting.insert(setting.end(), {{"picked", picked},
                                 {"fastest", fastest},
                                 {"picked_to_best", ratio},
                                 {"automatic_to_best", automatic / best}});
  run.results().describe("selection." + point, setting);
  ++total.points;
  total.chosen_well += ratio <= good ? 1 : 0;
  total.automatic_well += automatic <= good * best ? 1 : 0;
  total.worst = std::max(total.worst, ratio);
  std::printf("%-36s %-11s %9.4f ms  x%.2f  automatic %9.4f ms  x%.2f  best %s\n", point.c_str(),
              picked.c_str(), chosen, ratio, automatic, automatic / best, fastest.c_str());
  std::fflush(stdout);
}

/// Smaller tables are the first rows of the largest, which is built once.
template <class Space>
void measure_space(session& run, double most_gib, tally& total) {
  const bool quick = run.chosen().quick;
  const std::vector<std::int64_t> rows_bytes =
      quick ? std::vector<std::int64_t>{16, 512} : std::vector<std::int64_t>{16, 64, 128, 512, 4096};
  const std::vector<std::int64_t> batches =
      quick ? std::vector<std::int64_t>{100, 2048} : std::vector<std::int64_t>{1024, 16384, 131072, 1048576};
  std::vector<double> sizes;
  for (const double size : {0.25, 2.0, 16.0})
    if (size < 0.9 * most_gib) sizes.push_back(size);
  sizes.push_back(most_gib);
  filled_table<Space> largest(run, static_cast<std::size_t>(most_gib * gib));
  for (const double size : sizes)
    for (const std::int64_t row_bytes : rows_bytes)
      for (const std::int64_t n : batches) {
        // A batch of gigabytes takes the link's time on every path.
        if (n * row_bytes > (std::int64_t{1} << 29)) continue;
        const auto table = first_rows(largest.rows_of(row_bytes), static_cast<std::size_t>(size * gib));
        char point[96];
        std::snprintf(point, sizeof point, "%.*s.%gGiB.%lldB.%lld", static_cast<int>(Space::name.find('_')),
                      Space::name.data(), size, static_cast<long long>(row_bytes), static_cast<long long>(n));
        measure_point<Space>(
            run, point, table, n,
            {{"space", std::string(Space::name)}, {"table_gib", size}, {"row_bytes", row_bytes}, {"n", n}},
            total);
      }
}

void selection(session& run) {
  const bool quick = run.chosen().quick;
  const auto begin = std::chrono::steady_clock::now();
  const auto profile =
      quick ? ferry::calibrate(run.exec(),
                               {.max_seconds = 0.5, .max_bytes = std::size_t{1} << 24, .save = false})
            : ferry::calibrate(run.exec(), {.save = false});
  facts setting{{"calibration_s", seconds_since(begin)}, {"origin", ferry::profile_origin(run.exec())}};
  for (const auto& field : ferry::detail::profile_fields)
    setting.emplace_back(std::string(field.name), profile.*field.member);
  for (std::size_t i = 0; i < ferry::detail::reading_names.size(); ++i)
    setting.emplace_back("measured_" + std::string(ferry::detail::reading_names[i]),
                         std::int64_t{(profile.measured >> i) & 1u});
  run.results().describe("profile", setting);
  std::printf("calibrated in %.2f s\n", seconds_since(begin));

  // Sixty-four gigabytes where the machine has twice that; not more than is asked for.
  const double host =
      std::min(run.chosen().table_gib.value_or(64.0), 0.6 * static_cast<double>(free_host_bytes()) / gib);
  const double device = std::min(run.chosen().device_table_gib.value_or(64.0),
                                 0.6 * static_cast<double>(free_device_bytes()) / gib);
  tally total;
  measure_space<ferry::device_space>(run, device, total);
  measure_space<ferry::pinned_space>(run, host, total);
  measure_space<ferry::mapped_space>(run, host, total);
  const auto share = [&total](int well) { return static_cast<double>(well) / std::max(1, total.points); };
  std::printf(
      "%d points: the picked path is within a tenth of the fastest at %.1f %% (worst x%.2f), automatic "
      "itself at "
      "%.1f %%\n",
      total.points, 100.0 * share(total.chosen_well), total.worst, 100.0 * share(total.automatic_well));
  run.results().describe("selection", {{"points", std::int64_t{total.points}},
                                       {"picked_within_a_tenth", share(total.chosen_well)},
                                       {"automatic_within_a_tenth", share(total.automatic_well)},
                                       {"worst", total.worst},
                                       {"seconds", seconds_since(begin)}});
  run.results().ratio("selection.picked_within_a_tenth", "selection.points", share(total.chosen_well));
  run.results().ratio("selection.automatic_within_a_tenth", "selection.points", share(total.automatic_well));
}

const registration mine{"selection", selection};

}  // namespace
}  // namespace ferry_bench
