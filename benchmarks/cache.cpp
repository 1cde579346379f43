// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"
#include "support/step_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

/// Cached tables in mapped memory, next to the same verbs without one. Rows are popular by Zipf's law
/// with exponent 1.05, and popular rows lie anywhere in the table. Every figure's rows are checked against the
/// verb without a cache.
namespace ferry_bench {
namespace {

constexpr double exponent = 1.05;

/// The share of the positions that the `most` most popular of `rows` rows have.
double share_of(double most, double rows) {
  return (std::pow(most + 1, 1 - exponent) - 1) / (std::pow(rows + 1, 1 - exponent) - 1);
}

/// A rank by Zipf's law, from its continuous distribution, and the row that has this rank.
struct zipf_row {
  std::uint64_t seed;
  std::uint64_t rows;
  std::uint64_t popularity;  ///< which rows are the popular ones

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    const auto bits = mix(mix(seed) + static_cast<std::uint64_t>(position)) >> 11;
    const double u = static_cast<double>(bits) * 0x1p-53;
    const double last = Kokkos::pow(static_cast<double>(rows) + 1, 1 - exponent);
    const double x = Kokkos::pow(1 + u * (last - 1), 1 / (1 - exponent));
    auto rank = static_cast<std::uint64_t>(x) - 1;
    if (rank >= rows) rank = rows - 1;
    return distinct_row{popularity, rows}(static_cast<std::int64_t>(rank), column);
  }
};

/// Rows of which a part is among the first `cached`, the others among the rest.
struct part_row {
  std::uint64_t seed;
  std::uint64_t rows;
  std::uint64_t cached;
  std::uint64_t percent;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t) const {
    const std::uint64_t drawn = mix(mix(seed) + static_cast<std::uint64_t>(position));
    const bool hit = mix(drawn) % 100 < percent;
    return static_cast<std::int64_t>(hit ? drawn % cached : cached + drawn % (rows - cached));
  }
};

struct unlike {
  const float* one;
  const float* other;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (one[i] != other[i]) ++wrong;
  }
};

using table_type = ferry::tensor<float, ferry::mapped_space>;

/// Index arrays in rotation, from formulas with one seed each.
template <class Formula>
std::vector<row_indices> batches(const session& run, std::int64_t n, int count, const Formula& formula) {
  std::vector<row_indices> made;
  for (int b = 0; b < count; ++b) {
    made.emplace_back("indices", n);
    ferry::init::custom(run.exec(), made.back(), formula(b));
  }
  return made;
}
const row_indices& one_of(const std::vector<row_indices>& all, int call) {
  return all[static_cast<std::size_t>(call) % all.size()];
}

figure gather_figure(const std::string& name, const table_type& table, std::int64_t n) {
  figure made;
  made.name = name;
  made.setting = {{"rows", static_cast<std::int64_t>(table.rows())},
                  {"row_bytes", static_cast<std::int64_t>(table.width() * 4)},
                  {"n", n}};
  made.bytes = 4.0 * static_cast<double>(n) * static_cast<double>(table.width());
  made.counts = "payload";
  return made;
}

/// Times a gather of the batches from `from` and compares a batch with that of `plain`.
template <class From>
double time_gather_of(session& run, const std::string& name, From& from, table_type* plain,
                      const table_type& of, const std::vector<row_indices>& sets) {
  const auto n = static_cast<std::int64_t>(sets.front().rows());
  figure made = gather_figure(name, of, n);
  batch_tensor out("out", n, of.width());
  made.time =
      measure(run, 1, [&](int call) { return ferry::gather(run.exec(), from, one_of(sets, call), out); });
  std::int64_t wrong = 0;
  if (plain != nullptr) {
    batch_tensor right("right", n, of.width());
    ferry::gather(run.exec(), from, sets.front(), out).wait();
    ferry::gather(run.exec(), *plain, sets.front(), right).wait();
    wrong = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(out.size()),
                     unlike{out.data(), right.data()});
  }
  conclude(run, made, wrong);
  const figure* found = run.results().find(name);
  return found != nullptr ? found->gb_per_s() : 0.0;
}

std::string bytes_name(std::int64_t row_bytes) { return std::to_string(row_bytes) + "B"; }

/// Runs batches with fresh indices; returns the hit rate of the last `last`.
template <class Hot>
double warm(const session& run, Hot& hot, std::int64_t n, int count, int last, std::uint64_t popularity) {
  row_indices which("indices", n);
  batch_tensor out("out", n, hot.width());
  ferry::cache::statistics before;
  for (int b = 0; b < count + last; ++b) {
    if (b == count) before = hot.statistics();
    ferry::init::custom(run.exec(), which,
                        zipf_row{(popularity << 20) + static_cast<std::uint64_t>(b), hot.rows(), popularity});
    ferry::gather(run.exec(), hot, which, out).wait();
  }
  const auto after = hot.statistics();
  return static_cast<double>(after.hits - before.hits) / (static_cast<double>(n) * last);
}

/// Zipf and uniform gathers, without a cache and with 1 and 10 % of the rows; hit rates; time of an exchange.
void gathers(session& run) {
  const bool quick = run.chosen().quick;
  const std::int64_t row_bytes = 512;
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / row_bytes;
  table_type table("weights", rows, row_bytes / 4);
  ferry::init::custom(run.exec(), table, element_value{row_bytes / 4});
  const std::uint64_t popularity = 7;
  std::vector<std::int64_t> sizes{1 << 20, 1 << 17};
  if (quick) sizes = {512};
  const int count = run.chosen().index_sets;
  for (const std::int64_t n : sizes) {
    const std::string name = "cache.gather." + bytes_name(row_bytes) + ".n" + std::to_string(n);
    const auto zipf = batches(run, n, count, [&](int b) {
      return zipf_row{run.fresh_seed() + (std::uint64_t{1} << 40) + static_cast<unsigned>(b),
                      static_cast<std::uint64_t>(rows), popularity};
    });
    const auto even = batches(run, n, count, [&](int) {
      return any_row{run.fresh_seed(), static_cast<std::uint64_t>(rows)};
    });
    const double plain = time_gather_of(run, name + ".zipf.uncached", table, nullptr, table, zipf);
    const double plain_even = time_gather_of(run, name + ".uniform.uncached", table, nullptr, table, even);
    for (const int percent : {1, 10}) {
      const std::string own = name + ".zipf.cached" + std::to_string(percent);
      const auto most = std::max<std::int64_t>(1, rows * percent / 100);
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
        const double ideal = share_of(static_cast<double>(most), static_cast<double>(rows));
        const double rate = warm(run, hot, n, 64, 8, popularity);
        run.results().ratio(own + ".hit_rate", "ideal " + std::to_string(ideal), rate / ideal);
        const double cached = time_gather_of(run, own, hot, &table, table, zipf);
        run.results().ratio(own, name + ".zipf.uncached", cached / plain);
        if (n == sizes.back()) {
          const double later = warm(run, hot, n, quick ? 64 : 200, 8, popularity + 1);
          run.results().ratio(own + ".hit_rate_after_turnover", "ideal", later / ideal);
        }
      }
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
        const double cached =
            time_gather_of(run, name + ".uniform.cached" + std::to_string(percent), hot, &table, table, even);
        run.results().ratio(name + ".uniform.cached" + std::to_string(percent), name + ".uniform.uncached",
                            cached / plain_even);
      }
      {
        // An exchange in each batch against none: its time, of 64 batches without one.
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 1});
        warm(run, hot, n, 16, 1, popularity);
        const double always = time_gather_of(run, own + ".refresh1", hot, &table, table, zipf);
        const figure* found = run.results().find(own);
        if (found != nullptr && always > 0 && found->gb_per_s() > 0) {
          const double exchange = std::max(0.0, found->gb_per_s() / always - 1);
          run.results().ratio(own + ".exchange_time", "64 batches", exchange / 64);
        }
      }
    }
  }
}

/// Fixed hit rates against the bound max(bytes of misses over the link, 2 x bytes in the device).
void bounds_of_rates(session& run) {
  const bool quick = run.chosen().quick;
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / row_bytes;
    table_type table("weights", rows, row_bytes / 4);
    ferry::init::custom(run.exec(), table, element_value{row_bytes / 4});
    const std::int64_t n = quick ? 512 : 1 << 20, cached = std::max<std::int64_t>(1, rows / 10);
    const auto rate_of = [&](const char* ceiling) {
      const figure* found = run.results().find(run.ceiling(ceiling));
      return found != nullptr ? found->gb_per_s() : 0.0;
    };
    const double over_link = rate_of("ceiling.h2d"), inside = rate_of("ceiling.device_copy");
    const auto time = [&](const std::string& kind, auto directory) {
      ferry::cached_table hot(table, ferry::cache::first{cached}, directory);
      for (const int percent : {0, 50, 90, 100}) {
        const auto sets = batches(run, n, run.chosen().index_sets, [&](int) {
          return part_row{run.fresh_seed(), static_cast<std::uint64_t>(rows),
                          static_cast<std::uint64_t>(cached), static_cast<std::uint64_t>(percent)};
        });
        const std::string name =
            "cache.rate." + kind + "." + bytes_name(row_bytes) + ".hits" + std::to_string(percent);
        const double reached = time_gather_of(run, name, hot, &table, table, sets);
        if (over_link <= 0 || inside <= 0) continue;
        const double misses = (100 - percent) / 100.0;
        const double best = 1 / std::max(misses / over_link, 2 / inside);
        run.results().ratio(name, "bound", reached / best);
      }
    };
    time("dense", ferry::cache::dense{});
    time("sets", ferry::cache::sets{});
  }
}

/// Steps of adam by plans of Zipf batches, weights and moments in mapped memory.
void steps(session& run) {
  const bool quick = run.chosen().quick;
  const std::int64_t width = run.chosen().width, n = quick ? 512 : 1 << 17;
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / (3 * 4 * width);
  const ferry::optim::adam rule{.lr = 1e-3};
  const std::uint64_t popularity = 9;
  table_type plain("weights", rows, width), table("weights", rows, width);
  auto grads = batch_tensor("grads", n, width);
  ferry::init::custom(run.exec(), grads, element_value{width, 3});
  ferry::init::custom(run.exec(), plain, element_value{width});
  auto plain_state = ferry::optim::make_state(rule, plain);
  const int count = run.chosen().index_sets;
  const auto sets = batches(run, n, count, [&](int) {
    return zipf_row{run.fresh_seed() + (std::uint64_t{1} << 41), static_cast<std::uint64_t>(rows),
                    popularity};
  });
  std::vector<ferry::row_plan> plans;
  for (const auto& set : sets) plans.push_back(ferry::make_plan(run.exec(), set, rows));
  const auto plan_of = [&](int call) -> const ferry::row_plan& {
    return plans[static_cast<std::size_t>(call) % plans.size()];
  };
  figure uncached = gather_figure("cache.step.adam.uncached", plain, n);
  uncached.time = measure(run, 1, [&](int call) {
    return ferry::step(run.exec(), rule, plain, plain_state, plan_of(call), grads);
  });
  uncached.verified = true;
  run.results().add(uncached);
  for (const int percent : {1, 10}) {
    ferry::init::custom(run.exec(), table, element_value{width});
    ferry::init::custom(run.exec(), plain, element_value{width});
    auto state = ferry::optim::make_state(rule, table);
    auto twin = ferry::optim::make_state(rule, plain);
    const std::string name = "cache.step.adam.cached" + std::to_string(percent);
    figure made = gather_figure(name, table, n);
    {
      ferry::cached_table hot(
          table,
          ferry::cache::frequency{.rows = std::max<std::int64_t>(1, rows * percent / 100), .refresh = 64});
      warm(run, hot, n, 64, 1, popularity);
      made.time = measure(
          run, 1, [&](int call) { return ferry::step(run.exec(), rule, hot, state, plan_of(call), grads); });
    }
    // The same steps without a cache.
    for (std::int64_t call = 0; call < state.steps(); ++call)
      ferry::step(run.exec(), rule, plain, twin, plan_of(static_cast<int>(call)), grads).wait();
    conclude(run, made,
             count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(table.size()),
                      unlike{table.data(), plain.data()}));
    run.results().ratio(name, uncached.name, made.gb_per_s() / uncached.gb_per_s());
  }
}

const registration of_gathers{"cache.gather", gathers};
const registration of_rates{"cache.rate", bounds_of_rates};
const registration of_steps{"cache.step", steps};

}  // namespace
}  // namespace ferry_bench
