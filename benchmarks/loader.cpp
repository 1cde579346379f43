// SPDX-License-Identifier: Apache-2.0
#include "support/formulas.hpp"
#include "support/measure.hpp"
#include "support/tables.hpp"

#include <ferry/loader.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry_bench {
namespace {

using clock = std::chrono::steady_clock;

double ms_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

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

const registration ahead_of_steps{"loader.rows", rows_ahead};

}  // namespace
}  // namespace ferry_bench
