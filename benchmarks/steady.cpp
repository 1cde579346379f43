// SPDX-License-Identifier: Apache-2.0
#include "support/calls.hpp"
#include "support/gather_case.hpp"
#include "support/scatter_case.hpp"
#include "support/step_check.hpp"

namespace ferry_bench {
namespace {

/// A counter that sees nothing would be content with everything.
void check_counter(session& run) {
  call_counter counter;
  { const Kokkos::View<float*, exec_space> array("ferry_bench::seen", 10); }  // no pool of ferry's
  run.exec().fence("ferry_bench::seen");
  const call_counts counts = counter.stop();
  if (counts.allocations == 0 || counts.synchronisations == 0)
    run.results().failed("steady", "an allocation or a fence was not counted");
}

/// A loop that waits for nothing has to ask for nothing either: what `work(call)`, whose tickets are let go, allocates
/// and waits for in each of 50 turns after 50 others. The times are those of measure().
template <class Work>
void count_turns(const session& run, figure& result, const Work& work) {
  constexpr int turns = 50;
  constexpr int burst = 8;
  result.setting.insert(result.setting.end(),
                        {{"turns", std::int64_t{turns}}, {"burst", std::int64_t{burst}}});
  const auto loop = [&] {
    for (int turn = 0; turn < turns; ++turn) work(turn).detach();
  };
  loop();
  call_counter counter;
  loop();
  const call_counts counts = counter.stop();
  run.exec().fence("ferry_bench::wait");
  result.counted = {{"allocations", static_cast<double>(counts.allocations) / turns},
                    {"synchronisations", static_cast<double>(counts.synchronisations) / turns}};
  result.time = measure(run, burst, work);
}

/// The verbs of a training step on path::direct, on fresh rows each turn; the step's turn also sorts its indices.
template <class Space>
void steady(session& run, const std::string& name) {
  check_counter(run);
  const ferry::path::direct direct;
  const auto n = run.chosen().step_n;
  const auto row_bytes = run.chosen().width * 4;
  filled_table<Space> table(run, static_cast<std::size_t>(run.chosen().step_rows * row_bytes));
  auto view = table.rows_of(row_bytes);
  const auto distinct = index_sets::make<distinct_row>(run, n, view.rows());
  const auto begin = [&](const std::string& verb) {
    figure result;
    result.name = name + "." + verb;
    result.setting = table.setting() + facts{{"n", n}, {"row_bytes", row_bytes}};
    return result;
  };
  {
    const auto sets = index_sets::make<any_row>(run, n, view.rows());
    batch_tensor batch("batch", n, view.width());
    auto result = begin("gather");
    count_turns(run, result,
                [&](int call) { return ferry::gather(run.exec(), view, sets[call], batch, direct); });
    ferry::init::custom(run.exec(), batch, poison_value{});
    ferry::gather(run.exec(), view, sets[1], batch, direct).wait();
    conclude(run, result, wrong_rows(run, batch, sets[1]));
  }
  {
    const ferry::duplicates::assume_unique unique;
    const auto batch = salted_batch(run, n, view.width());
    auto result = begin("scatter");
    count_turns(run, result, [&](int call) {
      return ferry::scatter(run.exec(), view, distinct[call], batch, direct, unique);
    });
    conclude(run, result,
             wrong_after_scatter(run, view, distinct[1], winners(run, distinct[1]), batch, direct, unique));
  }
  {
    const ferry::optim::sgd rule{.lr = 0.1};
    batch_tensor grads("grads", n, view.width());
    ferry::init::custom(run.exec(), grads, gradient_value{static_cast<std::int64_t>(view.width())});
    auto state = ferry::optim::make_state(rule, view);
    auto result = begin("step");
    const auto plan = [&](int call) { return ferry::make_plan(run.exec(), distinct[call], view.rows()); };
    count_turns(run, result, [&](int call) {
      return ferry::step(run.exec(), rule, view, state, plan(call), grads, direct);
    });
    conclude(run, result,
             wrong_after_step(run, view, rule, first_sgd_step{rule.lr}, plan(1), named_rows(run, distinct[1]),
                              grads, direct));
  }
}

void steady_device(session& run) { steady<ferry::device_space>(run, "steady.device"); }
void steady_mapped(session& run) { steady<ferry::mapped_space>(run, "steady.mapped"); }

const registration device{"steady.device", steady_device};
const registration mapped{"steady.mapped", steady_mapped};

}  // namespace
}  // namespace ferry_bench
