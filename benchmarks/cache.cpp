// SPDX-License-Identifier: Apache-2.0
#include "support/gather_case.hpp"
#include "support/step_case.hpp"
#include "support/zipf.hpp"

#include <ferry/cache.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

/// Cached tables in mapped memory, next to the same verbs without one. Rows are popular by Zipf's law
/// with exponent 1.05, and popular rows lie anywhere in the table. Every figure's rows are checked against the
/// verb without a cache.
namespace ferry_bench {
namespace {

/// The share of the positions that the `most` most popular of `rows` rows have.
double share_of(double most, double rows) {
  return (std::pow(most + 1, 1 - zipf_exponent) - 1) / (std::pow(rows + 1, 1 - zipf_exponent) - 1);
}

struct unlike {
  const float* first;
  const float* second;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (first[i] != second[i]) ++wrong;
  }
};

/// Rows of an array against those of a dense one.
struct unlike_rows {
  const float* first;
  std::int64_t stride;
  const float* second;
  std::int64_t width;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (first[i / width * stride + i % width] != second[i]) ++wrong;
  }
};

/// The gradients of a pair's logistic loss; every sixth pair is of the text, the others are noise.
struct pair_gradients {
  const float* centre;
  const float* context;
  float* to_centre;
  float* to_context;
  std::int64_t width;

  KOKKOS_FUNCTION void operator()(std::int64_t pair) const {
    float product = 0;
    for (std::int64_t c = pair * width; c < (pair + 1) * width; ++c) product += centre[c] * context[c];
    const float expected = pair % 6 == 0 ? 1.0f : 0.0f;
    const float slope = 1.0f / (1.0f + Kokkos::exp(-product)) - expected;
    for (std::int64_t c = pair * width; c < (pair + 1) * width; ++c) {
      to_centre[c] = slope * context[c];
      to_context[c] = slope * centre[c];
    }
  }
};

using table_type = ferry::tensor<float, ferry::mapped_space>;

/// Batches for all calls of a figure: a cache would learn batches that come again.
int calls_of(const session& run) { return run.chosen().warm_up + 2 * run.chosen().repeats; }

/// Index arrays in rotation, from formulas with one seed each.
template <class Formula>
std::vector<row_indices> batches(const session& run, std::int64_t n, int count, const Formula& formula) {
  std::vector<row_indices> sets;
  for (int b = 0; b < count; ++b) {
    sets.emplace_back("indices", n);
    ferry::init::custom(run.exec(), sets.back(), formula(b));
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

std::int64_t positions_of(const row_indices& indices) { return static_cast<std::int64_t>(indices.rows()); }

std::vector<ferry::row_plan> plans_of(const session& run, const std::vector<row_indices>& sets,
                                      std::int64_t rows) {
  std::vector<ferry::row_plan> plans;
  plans.reserve(sets.size());
  for (const auto& set : sets) plans.push_back(ferry::make_plan(run.exec(), set, rows));
  return plans;
}

/// Times a gather of the batches from `source` and compares a batch with that of `plain`.
template <class From, class Which>
void time_gather_of(session& run, const std::string& name, From& source, table_type* plain,
                    const table_type& table, const std::vector<Which>& sets) {
  const std::int64_t n = positions_of(sets.front());
  figure result = gather_figure(name, table, n);
  batch_tensor out("out", n, table.width());
  result.time =
      measure(run, 1, [&](int call) { return ferry::gather(run.exec(), source, one_of(sets, call), out); });
  std::int64_t wrong = 0;
  if (plain != nullptr) {
    batch_tensor right("right", n, table.width());
    ferry::gather(run.exec(), source, sets.front(), out).wait();
    ferry::gather(run.exec(), *plain, sets.front(), right).wait();
    wrong = count_of(run.exec(), "ferry_bench::check", static_cast<std::int64_t>(out.size()),
                     unlike{out.data(), right.data()});
  }
  conclude(run, result, wrong);
}

std::string bytes_name(std::int64_t row_bytes) { return std::to_string(row_bytes) + "B"; }

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
  const int count = calls_of(run);
  for (const std::int64_t n : sizes) {
    const std::string name = "cache.gather." + bytes_name(row_bytes) + ".n" + std::to_string(n);
    const auto zipf = batches(run, n, count, [&](int b) {
      return zipf_row{run.fresh_seed() + (std::uint64_t{1} << 40) + static_cast<unsigned>(b),
                      static_cast<std::uint64_t>(rows), popularity};
    });
    const auto even = batches(run, n, count, [&](int) {
      return any_row{run.fresh_seed(), static_cast<std::uint64_t>(rows)};
    });
    time_gather_of(run, name + ".zipf.uncached", table, nullptr, table, zipf);
    time_gather_of(run, name + ".uniform.uncached", table, nullptr, table, even);
    for (const int percent : {1, 10}) {
      const std::string label = name + ".zipf.cached" + std::to_string(percent);
      const auto most = std::max<std::int64_t>(1, rows * percent / 100);
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
        const double ideal = share_of(static_cast<double>(most), static_cast<double>(rows));
        // The rows that are chosen after 64 batches are loaded while 8 more run.
        const double rate = warm(run, hot, n, 64 + 8, 8, popularity);
        run.results().ratio(label + ".hit_rate", "that of the most popular rows", rate / ideal);
        time_gather_of(run, label, hot, &table, table, zipf);
      }
      {
        ferry::cached_table hot(table, ferry::cache::frequency{.rows = most, .refresh = 64});
        const std::string uniform = name + ".uniform.cached" + std::to_string(percent);
        time_gather_of(run, uniform, hot, &table, table, even);
      }
    }
  }
}

/// Steps of adam by plans of Zipf batches, weights and moments in mapped memory: as a table with its state,
/// and as records.
void steps(session& run) {
  const bool quick = run.chosen().quick;
  const std::int64_t width = run.chosen().width, n = quick ? 512 : 1 << 17;
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / (3 * 4 * width);
  const ferry::optim::adam rule{.lr = 1e-3};
  const std::uint64_t popularity = 9;
  auto grads = batch_tensor("grads", n, width);
  ferry::init::custom(run.exec(), grads, element_value{width, 3});
  const auto sets = batches(run, n, calls_of(run), [&](int) {
    return zipf_row{run.fresh_seed() + (std::uint64_t{1} << 41), static_cast<std::uint64_t>(rows),
                    popularity};
  });
  const auto plans = plans_of(run, sets, rows);
  const std::string name = "cache.step.adam";
  const auto most = [&](int percent) { return std::max<std::int64_t>(1, rows * percent / 100); };

  // The weights after as many steps without a cache.
  table_type plain("weights", rows, width);
  const auto wrong_after = [&](std::int64_t calls, const float* weights, std::int64_t stride) {
    ferry::init::custom(run.exec(), plain, element_value{width});
    auto state = ferry::optim::make_state(rule, plain);
    for (std::int64_t call = 0; call < calls; ++call)
      ferry::step(run.exec(), rule, plain, state, one_of(plans, static_cast<int>(call)), grads).wait();
    return count_of(run.exec(), "ferry_bench::check", rows * width,
                    unlike_rows{weights, stride, plain.data(), width});
  };
  {
    ferry::init::custom(run.exec(), plain, element_value{width});
    auto state = ferry::optim::make_state(rule, plain);
    figure uncached = gather_figure(name + ".uncached", plain, n);
    uncached.time = measure(run, 1, [&](int call) {
      return ferry::step(run.exec(), rule, plain, state, one_of(plans, call), grads);
    });
    uncached.verified = true;
    run.results().add(uncached);
  }
  for (const int percent : {1, 10}) {
    const std::string label = name + ".cached" + std::to_string(percent);
    table_type table("weights", rows, width);
    ferry::init::custom(run.exec(), table, element_value{width});
    auto state = ferry::optim::make_state(rule, table);
    figure result = gather_figure(label, table, n);
    {
      ferry::cached_table hot(table, ferry::cache::frequency{.rows = most(percent), .refresh = 64});
      warm(run, hot, n, 64, 1, popularity);
      result.time = measure(run, 1, [&](int call) {
        return ferry::step(run.exec(), rule, hot, state, one_of(plans, call), grads);
      });
    }
    conclude(run, result, wrong_after(state.steps(), table.data(), width));
  }
  for (const int percent : {0, 1, 10}) {
    const std::string label =
        name + ".records." + (percent == 0 ? "uncached" : "cached" + std::to_string(percent));
    auto records = ferry::optim::make_records<float, ferry::mapped_space>(rule, "weights", rows, width);
    ferry::init::custom(run.exec(), records.table(), element_value{width});
    figure result = gather_figure(label, plain, n);
    if (percent == 0) {
      result.time = measure(run, 1, [&](int call) {
        return ferry::step(run.exec(), rule, records, one_of(plans, call), grads);
      });
    } else {
      ferry::cached_table hot(records, ferry::cache::frequency{.rows = most(percent), .refresh = 64});
      warm(run, hot, n, 64, 1, popularity);
      result.time = measure(
          run, 1, [&](int call) { return ferry::step(run.exec(), rule, hot, one_of(plans, call), grads); });
    }
    const auto weights = records.table();
    conclude(run, result, wrong_after(records.steps(), weights.data, weights.row_stride()));
  }
}

/// Skip-gram with negative sampling: pairs of words, popular ones by Zipf's law, both tables and the state of
/// adagrad in mapped memory. The same training with 2 % of the rows cached has to give the same bits.
void skip_gram(session& run) {
  const bool quick = run.chosen().quick;
  const std::int64_t width = run.chosen().width, pairs = quick ? 256 : 1 << 16;
  const auto words = static_cast<std::int64_t>(run.host_table_bytes()) / (8 * 4 * width);
  const int count = quick ? 12 : 200;
  const ferry::optim::adagrad rule{.lr = 0.05};
  const auto most = std::max<std::int64_t>(1, words / 50);
  row_indices centre("centre", pairs), context("context", pairs);
  batch_tensor of_centre("of_centre", pairs, width), of_context("of_context", pairs, width);
  batch_tensor to_centre("to_centre", pairs, width), to_context("to_context", pairs, width);
  const std::uint64_t seed = run.fresh_seed() << 32;
  const auto train = [&](auto& centres, auto& contexts, auto& centre_state, auto& context_state) {
    const auto& exec = run.exec();
    exec.fence("ferry_bench::skip_gram");
    const auto begin = std::chrono::steady_clock::now();
    for (int b = 0; b < count; ++b) {
      const auto salt = seed + 2 * static_cast<std::uint64_t>(b);
      ferry::init::custom(exec, centre, zipf_row{salt, static_cast<std::uint64_t>(words), 13});
      ferry::init::custom(exec, context, zipf_row{salt + 1, static_cast<std::uint64_t>(words), 13});
      const auto centre_plan = ferry::make_plan(exec, centre, words);
      const auto context_plan = ferry::make_plan(exec, context, words);
      ferry::gather(exec, centres, centre_plan, of_centre).detach();
      ferry::gather(exec, contexts, context_plan, of_context).detach();
      Kokkos::parallel_for(
          "ferry_bench::pairs",
          Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(exec, 0, pairs),
          pair_gradients{of_centre.data(), of_context.data(), to_centre.data(), to_context.data(), width});
      ferry::step(exec, rule, centres, centre_state, centre_plan, to_centre).detach();
      ferry::step(exec, rule, contexts, context_state, context_plan, to_context).detach();
    }
    exec.fence("ferry_bench::skip_gram");
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    return elapsed.count();
  };
  table_type centres("centres", words, width), contexts("contexts", words, width);
  table_type twins("centres", words, width), twin_contexts("contexts", words, width);
  for (auto* table : {&centres, &twins}) ferry::init::uniform(run.exec(), *table, -0.5, 0.5, 1);
  for (auto* table : {&contexts, &twin_contexts}) ferry::init::uniform(run.exec(), *table, -0.5, 0.5, 2);
  double cached_ms = 0;
  {
    auto first = ferry::optim::make_state(rule, centres), second = ferry::optim::make_state(rule, contexts);
    ferry::cached_table hot(centres, ferry::cache::frequency{.rows = most, .refresh = 64});
    ferry::cached_table hot_contexts(contexts, ferry::cache::frequency{.rows = most, .refresh = 64});
    cached_ms = train(hot, hot_contexts, first, second);
  }
  auto first = ferry::optim::make_state(rule, twins), second = ferry::optim::make_state(rule, twin_contexts);
  const double without = train(twins, twin_contexts, first, second);
  const std::int64_t wrong =
      count_of(run.exec(), "ferry_bench::check", words * width, unlike{centres.data(), twins.data()}) +
      count_of(run.exec(), "ferry_bench::check", words * width,
               unlike{contexts.data(), twin_contexts.data()});
  run.results().ratio("cache.skip_gram", "without a cache", without / cached_ms);
  if (wrong != 0) run.results().failed("cache.skip_gram", "tables differ");
}

const registration of_gathers{"cache.gather", gathers};
const registration of_steps{"cache.step", steps};
const registration of_skip_gram{"cache.skip_gram", skip_gram};

}  // namespace
}  // namespace ferry_bench
