// SPDX-License-Identifier: Apache-2.0
#include "support/formulas.hpp"
#include "support/measure.hpp"
#include "support/tables.hpp"

#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/loader.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {
namespace {

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;
using clock = std::chrono::steady_clock;

double ms_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

/// A value of a sample: one that takes a worker about as long as decoding it would, or a cheap one.
enum class cost { decoding, copying };
template <cost Cost>
float value_of(std::int64_t sample, std::size_t column) {
  if constexpr (Cost == cost::decoding)
    return static_cast<float>(mix(static_cast<std::uint64_t>(sample) * 4099 + column) >> 40);
  else
    return static_cast<float>((static_cast<std::uint32_t>(sample) * 31 + static_cast<std::uint32_t>(column)) &
                              0xffff);
}

/// The step: passes over the batch, each reading and writing it.
struct pass {
  const float* batch;
  float* sums;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { sums[i] += batch[i]; }
};

/// How long the three stages take for a batch, alone.
struct stages {
  double load = 0, transfer = 0, step = 0;
  [[nodiscard]] double slowest() const { return std::max({load, transfer, step}); }
  [[nodiscard]] double in_turn() const { return load + transfer + step; }
};

struct shape {
  std::int64_t batch;
  std::size_t width;
  [[nodiscard]] std::size_t elements() const { return static_cast<std::size_t>(batch) * width; }
};

template <cost Cost>
auto synthetic(std::int64_t samples, const shape& extents) {
  return ferry::made_by(
      samples,
      [](const ferry::batch_request& request, std::span<float> elements) {
        const std::size_t width = request.samples.empty() ? 0 : elements.size() / request.samples.size();
        std::size_t position = 0;
        for (const std::int64_t sample : request.samples)
          for (std::size_t j = 0; j < width; ++j) elements[position++] = value_of<Cost>(sample, j);
      },
      ferry::batch_field<float>("x", extents.width));
}

void step_on(const exec_space& exec, const float* batch, ferry::tensor<float, ferry::device_space>& sums,
             int passes) {
  for (int i = 0; i < passes; ++i)
    Kokkos::parallel_for("ferry_bench::pass", range(exec, 0, static_cast<std::int64_t>(sums.size())),
                         pass{batch, sums.data()});
}

/// Milliseconds for a batch where `workers` threads fill batches at once: they share caches and memory.
template <cost Cost>
double ms_to_load(session& run, const shape& extents, std::int64_t samples, int workers) {
  const auto source = synthetic<Cost>(samples, extents);
  const int fills = (run.chosen().quick ? 2 : 20) * workers;
  std::vector<ferry::tensor<float, ferry::pinned_space>> slots;
  for (int worker = 0; worker < workers; ++worker) slots.emplace_back("slot", extents.batch, extents.width);
  const auto fill_all = [&] {
    const auto begin = clock::now();
    const auto threads = ferry::detail::threads_for_chunks(workers);
    ferry::detail::parallel(fills, 1, threads, [&](ferry::detail::front_queue& turns, int worker) {
      std::vector<std::int64_t> listed(static_cast<std::size_t>(extents.batch));
      std::byte* data = reinterpret_cast<std::byte*>(slots[static_cast<std::size_t>(worker)].data());
      for (std::size_t fill = 0; turns.take(fill);) {
        for (std::size_t i = 0; i < listed.size(); ++i)
          listed[i] = static_cast<std::int64_t>(fill * listed.size() + i);
        source.fill({.samples = listed}, &data);
      }
    });
    return ms_since(begin) / fills;
  };
  fill_all();
  return fill_all();
}

/// A pipelined step against the slowest of its stages, all of them measured alone in the same run.
template <cost Cost>
void three_stages(session& run, const std::string& name, int workers, double step_over_transfer) {
  const bool quick = run.chosen().quick;
  const shape extents = quick ? shape{32, 16} : shape{8192, 256};
  const int batches = quick ? 8 : 200;
  const std::int64_t samples = extents.batch * 1000;
  const exec_space& exec = run.exec();
  ferry::tensor<float, ferry::pinned_space> slot("slot", extents.batch, extents.width);
  ferry::tensor<float, ferry::device_space> device_batch("there", extents.batch, extents.width);
  ferry::tensor<float, ferry::device_space> sums("sums", extents.batch, extents.width);
  ferry::init::zeros(exec, sums);
  ferry::init::zeros(exec, slot);

  stages alone;
  alone.transfer =
      measure(run, 4, [&](int) { return ferry::copy(exec, slot, device_batch); }).device.median();
  const double step_ms =
      measure(run, 8, [&](int) { step_on(exec, device_batch.data(), sums, 1); }).device.median();
  const int passes = std::clamp(static_cast<int>(step_over_transfer * alone.transfer / step_ms), 1, 2000);
  alone.step =
      measure(run, 1, [&](int) { step_on(exec, device_batch.data(), sums, passes); }).device.median();
  alone.load = ms_to_load<Cost>(run, extents, samples, workers);

  figure result;
  result.name = name;
  result.bytes = static_cast<double>(extents.elements() * sizeof(float));
  result.counts = "payload";
  std::int64_t wrong = 0;
  std::string bottleneck;
  for (int repeat = 0; repeat < (quick ? 1 : 5); ++repeat) {
    ferry::prefetcher loader(exec, synthetic<Cost>(samples, extents),
                             {.batch = extents.batch,
                              .depth = workers + 3,
                              .workers = workers,
                              .shuffle = run.fresh_seed(),
                              .epochs = 0});
    const auto serve = [&](int count) {
      for (int k = 0; k < count; ++k) {
        auto batch = loader.next();
        if (!batch) batch = loader.next();
        step_on(exec, batch->template get<0>().data(), sums, passes);
        if (k == count - 1) {
          std::vector<float> got(extents.elements());
          ferry::copy(exec, batch->template get<0>(), got).wait();
          for (std::size_t i = 0; i < got.size(); ++i)
            if (got[i] != value_of<Cost>(batch->samples()[i / extents.width], i % extents.width)) ++wrong;
        }
      }
    };
    serve(batches / 4 + 1);
    exec.fence("ferry_bench::wait");
    const auto begin = clock::now();
    serve(batches);
    exec.fence("ferry_bench::wait");
    const double batch_ms = ms_since(begin) / batches;
    result.time.wall.add(batch_ms);
    result.time.device.add(batch_ms);
    bottleneck = loader.times().back().bottleneck();
  }
  result.setting = {{"batch", extents.batch},
                    {"width", static_cast<std::int64_t>(extents.width)},
                    {"workers", std::int64_t{workers}},
                    {"passes", std::int64_t{passes}},
                    {"load_ms", alone.load},
                    {"transfer_ms", alone.transfer},
                    {"step_ms", alone.step},
                    {"bottleneck", bottleneck}};
  conclude(run, result, wrong);
  run.results().ratio(name, "slowest stage", result.time.wall.median() / alone.slowest());
  run.results().ratio(name, "stages in turn", result.time.wall.median() / alone.in_turn());
}

void load_bound(session& run) { three_stages<cost::decoding>(run, "loader.load_bound", 2, 0.5); }
void transfer_bound(session& run) { three_stages<cost::copying>(run, "loader.transfer_bound", 8, 0.5); }
void step_bound(session& run) { three_stages<cost::decoding>(run, "loader.step_bound", 12, 30.0); }

/// Indices of a skip-gram's batch: a word, its context, and random ones.
auto word_pairs(std::int64_t samples, std::int64_t rows, std::uint64_t seed) {
  return ferry::made_by(
      samples,
      [rows, seed](const ferry::batch_request& request, std::span<std::int64_t> elements) {
        const std::size_t hot = request.samples.empty() ? 0 : elements.size() / request.samples.size();
        std::size_t position = 0;
        for (const std::int64_t sample : request.samples)
          for (std::size_t j = 0; j < hot; ++j)
            elements[position++] = static_cast<std::int64_t>(
                mix(seed + static_cast<std::uint64_t>(sample) * 16 + j) % static_cast<std::uint64_t>(rows));
      },
      ferry::batch_field<std::int64_t>("pairs", 7));
}

/// Rows of a mapped table read ahead of its steps, against gather and step in turn.
void rows_ahead(session& run) {
  const bool quick = run.chosen().quick;
  const exec_space& exec = run.exec();
  const std::int64_t rows = run.chosen().step_rows;
  const std::int64_t width = run.chosen().width;
  const std::int64_t batch = quick ? 16 : 8192;
  const int batches = quick ? 6 : 100;
  const std::int64_t samples = batch * (batches + 20);
  const ferry::optim::sparse_adam rule;
  const std::uint64_t seed = run.fresh_seed();
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width), second("other", rows, width);
  ferry::init::uniform(exec, table, -1, 1, seed);
  ferry::init::uniform(exec, second, -1, 1, seed);
  auto state = ferry::optim::make_state<ferry::device_space>(rule, table);
  auto other_state = ferry::optim::make_state<ferry::device_space>(rule, second);
  const ferry::prefetch_options options{.batch = batch, .workers = 2};
  ferry::tensor<float, ferry::device_space> gathered("gathered", batch * 7, width);
  const auto loop = [&](const auto& turn) {
    for (int k = 0; k < 10; ++k) turn();
    exec.fence("ferry_bench::wait");
    const auto begin = clock::now();
    for (int k = 0; k < batches; ++k) turn();
    exec.fence("ferry_bench::wait");
    return ms_since(begin) / batches;
  };
  figure ahead, in_turn;
  ahead.name = "loader.rows.ahead";
  in_turn.name = "loader.rows.in_turn";
  {
    ferry::row_prefetcher loader(exec, table, word_pairs(samples, rows, seed), options);
    const double batch_ms = loop([&] {
      const auto got = loader.next();
      ferry::step(exec, rule, table, state, got->plan(), got->gathered()).detach();
    });
    ahead.time.wall.add(batch_ms);
    ahead.time.device.add(batch_ms);
  }
  {
    ferry::prefetcher loader(exec, word_pairs(samples, rows, seed), options);
    const double batch_ms = loop([&] {
      const auto got = loader.next();
      const auto pairs = got->get<0>();
      const auto indices = ferry::tensor_view<const std::int64_t, ferry::device_space>(
          pairs.data(),
          ferry::shape<ferry::dynamic_rank>::make(std::vector<std::size_t>{pairs.size()}, "pairs", 8));
      const auto plan = ferry::make_plan(exec, indices, rows);
      ferry::gather(exec, second, plan, gathered).detach();
      ferry::step(exec, rule, second, other_state, plan, gathered).detach();
    });
    in_turn.time.wall.add(batch_ms);
    in_turn.time.device.add(batch_ms);
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table.data()[i] != second.data()[i]) ++wrong;
  for (figure* result : {&ahead, &in_turn}) {
    result->setting = {{"rows", rows}, {"width", width}, {"positions", batch * 7}};
    conclude(run, *result, wrong);
  }
  run.results().ratio(ahead.name, in_turn.name, ahead.time.wall.median() / in_turn.time.wall.median());
}

const registration first{"loader.load_bound", load_bound};
const registration second{"loader.transfer_bound", transfer_bound};
const registration third{"loader.step_bound", step_bound};
const registration fourth{"loader.rows", rows_ahead};

}  // namespace
}  // namespace ferry_bench
