// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"
#include "support/zipf.hpp"

#include <ferry/cache.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

/// Cached tables in mapped memory, next to the same verbs without one. Rows are popular by Zipf's law
/// with exponent 1.05, and popular rows lie anywhere in the table. Every figure's rows are checked against the
/// verb without a cache.
namespace ferry_bench {
namespace {

/// The share of the positions that the `most` most popular of `rows` rows have.
double share_of(double most, double rows) {
  return (std::pow(most + 1, 1 - zipf_exponent) - 1) / (std::pow(rows + 1, 1 - zipf_exponent) - 1);
}

using table_type = ferry::tensor<float, ferry::mapped_space>;

/// Zipf batches for all calls of a figure: a cache would learn batches that come again.
std::vector<row_indices> batches(session& run, std::int64_t n, std::uint64_t popularity, std::uint64_t salt,
                                 std::int64_t rows) {
  std::vector<row_indices> sets;
  for (int b = 0; b < run.chosen().warm_up + 2 * run.chosen().repeats; ++b) {
    sets.emplace_back("indices", n);
    ferry::init::custom(run.exec(), sets.back(),
                        zipf_row{run.fresh_seed() + salt, static_cast<std::uint64_t>(rows), popularity});
  }
  return sets;
}
template <class Which>
const Which& one_of(const std::vector<Which>& list, int call) {
  return list[static_cast<std::size_t>(call) % list.size()];
}

figure gather_figure(const std::string& name, const table_type& table, std::int64_t n) {
  figure result;
  result.name = name;
  result.setting = {{"rows", static_cast<std::int64_t>(table.rows())},
                    {"row_bytes", static_cast<std::int64_t>(table.width() * 4)},
                    {"n", n}};
  result.bytes = 4.0 * static_cast<double>(n) * static_cast<double>(table.width());
  result.counts = "payload";
  return result;
}

/// Times a gather of the batches from `source` and compares a batch with that of `plain`.
template <class From>
void time_gather_of(session& run, const std::string& name, From& source, const table_type& plain,
                    const std::vector<row_indices>& sets) {
  const auto n = static_cast<std::int64_t>(sets.front().rows());
  figure result = gather_figure(name, plain, n);
  batch_tensor out("out", n, plain.width()), right("right", n, plain.width());
  result.time =
      measure(run, 1, [&](int call) { return ferry::gather(run.exec(), source, one_of(sets, call), out); });
  ferry::gather(run.exec(), source, sets.front(), out).wait();
  ferry::gather(run.exec(), plain, sets.front(), right).wait();
  conclude(run, result,
           count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(out.size()),
                    different_elements{out.data(), right.data()}));
}

/// Runs batches with fresh indices; returns the hit rate of the last `last`.
template <class Hot>
double warm(const session& run, Hot& hot, std::int64_t n, int count, int last, std::uint64_t popularity) {
  row_indices ids("indices", n);
  batch_tensor out("out", n, hot.width());
  ferry::cache::statistics before;
  for (int b = 0; b < count + last; ++b) {
    if (b == count) before = hot.statistics();
    ferry::init::custom(run.exec(), ids,
                        zipf_row{(popularity << 20) + static_cast<std::uint64_t>(b), hot.rows(), popularity});
    ferry::gather(run.exec(), hot, ids, out).wait();
  }
  const auto after = hot.statistics();
  return static_cast<double>(after.hits - before.hits) / (static_cast<double>(n) * last);
}

/// Zipf gathers, without a cache and with 1 and 10 % of the rows; hit rates.
void gathers(session& run) {
  const std::int64_t row_bytes = 512;
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / row_bytes;
  table_type table("weights", rows, row_bytes / 4);
  ferry::init::custom(run.exec(), table, element_value{row_bytes / 4});
  const std::uint64_t popularity = 7;
  std::vector<std::int64_t> sizes{1 << 20, 1 << 17};
  if (run.chosen().quick) sizes = {512};
  for (const std::int64_t n : sizes) {
    const std::string name = "cache.gather." + bytes_text(row_bytes) + ".n" + std::to_string(n) + ".zipf.";
    const auto sets = batches(run, n, popularity, std::uint64_t{1} << 40, rows);
    time_gather_of(run, name + "uncached", table, table, sets);
    for (const int percent : {1, 10}) {
      const std::string label = name + "cached" + std::to_string(percent);
      const auto most = std::max<std::int64_t>(1, rows * percent / 100);
      const double ideal = share_of(static_cast<double>(most), static_cast<double>(rows));
      {
        ferry::cached_table latest(table, ferry::cache::lru{.slots = most});
        run.results().ratio(label + ".lru.hit_rate", "that of the most popular rows",
                            warm(run, latest, n, 16, 8, popularity) / ideal);
      }
      ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
      // The rows that are chosen after 64 batches are loaded while 8 more run.
      const double rate = warm(run, hot, n, 64 + 8, 8, popularity);
      run.results().ratio(label + ".hit_rate", "that of the most popular rows", rate / ideal);
      time_gather_of(run, label, hot, table, sets);
    }
  }
}

/// Steps of adam by plans of Zipf batches, weights and moments in mapped memory.
void steps(session& run) {
  const std::int64_t width = run.chosen().width, n = run.chosen().quick ? 512 : 1 << 17;
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / (3 * 4 * width);
  const ferry::optim::adam rule{.lr = 1e-3};
  const std::uint64_t popularity = 9;
  auto grads = batch_tensor("grads", n, width);
  ferry::init::custom(run.exec(), grads, element_value{width, 3});
  std::vector<ferry::row_plan> plans;
  for (const auto& set : batches(run, n, popularity, std::uint64_t{1} << 41, rows))
    plans.push_back(ferry::make_plan(run.exec(), set, rows));
  table_type plain("weights", rows, width);
  const std::string name = "cache.step.adam.";
  {
    ferry::init::custom(run.exec(), plain, element_value{width});
    auto state = ferry::optim::make_state(rule, plain);
    figure uncached = gather_figure(name + "uncached", plain, n);
    uncached.time = measure(run, 1, [&](int call) {
      return ferry::step(run.exec(), rule, plain, state, one_of(plans, call), grads);
    });
    uncached.verified = true;
    run.results().add(uncached);
  }
  for (const int percent : {1, 10}) {
    table_type table("weights", rows, width);
    ferry::init::custom(run.exec(), table, element_value{width});
    auto state = ferry::optim::make_state(rule, table);
    figure result = gather_figure(name + "cached" + std::to_string(percent), table, n);
    {
      const auto most = std::max<std::int64_t>(1, rows * percent / 100);
      ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
      warm(run, hot, n, 64, 1, popularity);
      result.time = measure(run, 1, [&](int call) {
        return ferry::step(run.exec(), rule, hot, state, one_of(plans, call), grads);
      });
    }
    // As many steps without a cache leave the same weights.
    ferry::init::custom(run.exec(), plain, element_value{width});
    auto plain_state = ferry::optim::make_state(rule, plain);
    for (std::int64_t call = 0; call < state.steps(); ++call)
      ferry::step(run.exec(), rule, plain, plain_state, one_of(plans, static_cast<int>(call)), grads).wait();
    conclude(run, result,
             count_of(run.exec(), "ferry_bench::check", rows * width,
                      different_elements{table.data(), plain.data()}));
  }
}

const registration of_gathers{"cache.gather", gathers};
const registration of_steps{"cache.step", steps};

}  // namespace
}  // namespace ferry_bench
