// SPDX-License-Identifier: Apache-2.0
#include "baseline/baseline.hpp"
#include "support/gather_case.hpp"
#include "support/step_case.hpp"
#include "support/zipf.hpp"

#include <ferry/bags.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Bags of ten random rows: pooled, and stepped on. Peers of the same sizes: peers/bags.py, peers/cuembed.cu. Few long
/// bags: pooled.
namespace ferry_bench {
namespace {

constexpr std::int64_t hotness = 10;

/// Elements that are not the sum of a bag's rows of T in their order, divided by `divisor`, as Out.
template <class T, class Out>
struct wrong_pooled {
  const Out* out;
  const std::int64_t* rows;
  const std::int64_t* offsets;
  element_value expected;
  float divisor;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t bag = i / expected.width, column = i % expected.width;
    const std::int64_t end = offsets[bag + 1], positions = end - offsets[bag];
    // docs/bags.md: pieces of 32 rows, or of 1/256 of all if that is more; the last piece takes the rest.
    const std::int64_t piece = positions < 1024 ? positions : positions / 256 > 32 ? positions / 256 : 32;
    float total = 0.0F;
    for (std::int64_t k = offsets[bag]; k < end;) {
      const std::int64_t piece_end = end - k < 2 * piece ? end : k + piece;
      float sum = 0.0F;
      for (; k < piece_end; ++k) sum += static_cast<float>(T(expected(rows[k], column)));
      total += sum;
    }
    if (static_cast<float>(out[i]) != static_cast<float>(Out(total / divisor))) ++wrong;
  }
};

/// The gradient of each position, from those of the bags.
struct expanded_gradient {
  gradient_value of_bag;
  float divisor;
  KOKKOS_FUNCTION float operator()(std::int64_t position, std::int64_t column) const {
    return of_bag(position / hotness, column) / divisor;
  }
};

/// The gradients of a bag, once for each table.
struct repeated_gradient {
  gradient_value of_table;
  KOKKOS_FUNCTION float operator()(std::int64_t bag, std::int64_t column) const {
    return of_table(bag, column % of_table.width);
  }
};

row_indices offsets_of(const session& run, const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t length : lengths) sums.push_back(sums.back() + length);
  row_indices result("offsets", sums.size());
  ferry::copy(run.exec(), sums, result).wait();
  return result;
}
std::vector<std::int64_t> equal_bags(std::int64_t bags, std::int64_t positions = hotness) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(bags), positions);
}

/// `source` is `offsets`, or the number of positions of every bag.
template <class Table, class Source, class Pooled, class... Policies>
void time_bags(session& run, const std::string& name, const facts& setting, const Table& table,
               const index_sets& sets, const row_indices& offsets, const Source& source, Pooled& pooled,
               const traffic& moved, bool counts_output, int burst, float divisor, Policies... policies) {
  const auto bags = static_cast<std::int64_t>(pooled.rows()),
             width = static_cast<std::int64_t>(pooled.width()),
             positions = static_cast<std::int64_t>(sets[0].size());
  figure result = figure_of(run, name, setting, pooled, burst, moved);
  result.setting.emplace_back("hotness", positions / bags);
  using element = std::remove_const_t<typename Table::value_type>;
  using sum = typename Pooled::value_type;
  const std::int64_t output_bytes = counts_output ? static_cast<std::int64_t>(sizeof(sum)) * bags : 0;
  result.bytes =
      static_cast<double>(width * (static_cast<std::int64_t>(sizeof(element)) * positions + output_bytes));
  result.time = measure(run, burst, [&](int call) {
    return ferry::gather_bags(run.exec(), table, sets[call], source, pooled, policies...);
  });
  ferry::init::custom(run.exec(), pooled, poison_value{});
  ferry::gather_bags(run.exec(), table, sets[1], source, pooled, policies...).wait();
  conclude(run, result,
           count_of(run.exec(), "ferry_bench::check", bags * width,
                    wrong_pooled<element, sum>{pooled.data(), sets[1].data(), offsets.data(),
                                               element_value{width}, divisor}));
}

std::int64_t bags_of(const session& run) { return run.chosen().step_n / 2; }

void pool_device(session& run) {
  constexpr int burst = 8;
  const std::int64_t bags = bags_of(run), width = run.chosen().width;
  filled_table<ferry::device_space> table(run, static_cast<std::size_t>(run.chosen().step_rows * width * 4));
  const auto view = table.rows_of(width * 4);
  const auto sets = index_sets::make<any_row>(run, bags * hotness, view.rows());
  const auto offsets = offsets_of(run, equal_bags(bags));
  const auto popular = index_sets::make<popular_row>(run, bags * hotness, view.rows());
  batch_tensor pooled("pooled", bags, width);
  const auto time = [&](const std::string& variant, const index_sets& rows, const auto& source, float divisor,
                        auto... policies) {
    time_bags(run, "bags.device." + variant, table.setting(), view, rows, offsets, source, pooled,
              inside_the_device(), true, burst, divisor, policies...);
  };
  using namespace ferry;
  time("sum", sets, offsets, 1.0F, pooling::sum{});
  time("mean", sets, offsets, static_cast<float>(hotness), pooling::mean{});
  time("sum.unchecked", sets, offsets, 1.0F, pooling::sum{}, bounds::unchecked{});
  time("sum.fixed", sets, hotness, 1.0F, pooling::sum{});
  time("sum.zipf_1.05", popular, offsets, 1.0F, pooling::sum{});
  time("sum.fixed.zipf_1.05", popular, hotness, 1.0F, pooling::sum{});
}

/// Rows of halves, pooled as floats and as halves.
void pool_halves(session& run) {
  const std::int64_t bags = bags_of(run), width = run.chosen().width, rows = run.chosen().step_rows;
  ferry::tensor<ferry::half_t, ferry::device_space> table("table", rows, width);
  ferry::init::custom(run.exec(), table, element_value{width});
  const auto sets = index_sets::make<any_row>(run, bags * hotness, static_cast<std::size_t>(rows));
  const auto offsets = offsets_of(run, equal_bags(bags));
  const auto time = [&](const std::string& variant, const index_sets& selection, auto& pooled) {
    time_bags(run, "bags.device.half" + variant, {{"rows", rows}}, table, selection, offsets, offsets, pooled,
              inside_the_device(), true, 8, 1.0F, ferry::pooling::sum{});
  };
  batch_tensor floats("pooled", bags, width);
  time("", sets, floats);
  ferry::tensor<ferry::half_t, ferry::device_space> halves("pooled", bags, width);
  time(".to_half", sets, halves);
  const auto popular = index_sets::make<popular_row>(run, bags * hotness, static_cast<std::size_t>(rows));
  time(".to_half.zipf_1.05", popular, halves);
}

/// Few long bags.
void pool_long(session& run) {
  const std::int64_t positions = 8 * run.chosen().step_n, width = run.chosen().width;
  filled_table<ferry::device_space> table(run, static_cast<std::size_t>(run.chosen().step_rows * width * 4));
  const auto view = table.rows_of(width * 4);
  const auto time = [&](const std::string& variant, const std::vector<std::int64_t>& lengths) {
    const auto offsets = offsets_of(run, lengths);
    std::int64_t total = 0;
    for (const std::int64_t length : lengths) total += length;
    const auto sets = index_sets::make<any_row>(run, total, view.rows());
    batch_tensor pooled("pooled", static_cast<std::int64_t>(lengths.size()), width);
    time_bags(run, "bags.long." + variant, table.setting(), view, sets, offsets, offsets, pooled,
              inside_the_device(), true, 2, 1.0F, ferry::pooling::sum{});
  };
  time("1", {positions});
  time("8", equal_bags(8, positions / 8));
  time("132", equal_bags(132, positions / 132));
}

/// Against a plain gather of as many positions from the same table.
void pool_mapped(session& run) {
  filled_table<ferry::mapped_space> table(run, run.host_table_bytes());
  for (const std::int64_t row_bytes : run.chosen().rows_bytes) {
    const auto view = table.rows_of(row_bytes);
    const std::int64_t bags = std::max<std::int64_t>(1, run.chosen().n / hotness);
    const auto sets = index_sets::make<any_row>(run, bags * hotness, view.rows());
    const auto offsets = offsets_of(run, equal_bags(bags));
    const std::string name = "bags.mapped." + bytes_text(row_bytes);
    {
      batch_tensor batch("batch", bags * hotness, row_bytes / 4);
      time_gather(run, name + ".gather", table.setting(), view, sets, batch, 1, over_the_link());
    }
    batch_tensor pooled("pooled", bags, row_bytes / 4);
    time_bags(run, name, table.setting(), view, sets, offsets, offsets, pooled, over_the_link(), false, 1,
              1.0F, ferry::pooling::sum{});
    compare_rates(run, name, name + ".gather");
  }
}

constexpr ferry::optim::adam rule{.lr = 0.1, .eps = 0.25};
constexpr ferry::optim::sgd plain_rule{.lr = 0.1};

template <class Pooling, class Rule, class Which>
void time_step(session& run, const std::string& name, const Rule& optimizer, const std::string& ceiling,
               const index_sets& sets, const Which& selection, const row_indices& offsets,
               const batch_tensor& grads) {
  const auto& exec = run.exec();
  const std::int64_t rows = run.chosen().step_rows, width = run.chosen().width;
  const named_rows named(run, sets[1]);
  figure result;
  result.name = name;
  result.setting = {{"rows", rows},       {"bags", static_cast<std::int64_t>(grads.rows())},
                    {"hotness", hotness}, {"distinct", named.count()},
                    {"width", width},     {"burst", std::int64_t{4}}};
  result.counts = "read + write";
  result.ceiling = ceiling;
  ferry::tensor<float, ferry::device_space> table("weights", rows, width), second("weights", rows, width);
  ferry::init::custom(exec, table, element_value{width});
  {
    auto state = ferry::optim::make_state(optimizer, table);
    result.bytes = 4.0 * static_cast<double>(2 * (1 + state.fields()) * width * named.count() +
                                             width * static_cast<std::int64_t>(grads.rows()));
    result.time = measure(run, 4, [&](int call) {
      return ferry::step_bags(exec, optimizer, table, state, selection[call], offsets, grads, Pooling{});
    });
  }
  // Once more by a step on gradients of positions.
  ferry::init::custom(exec, table, element_value{width});
  ferry::init::custom(exec, second, element_value{width});
  {
    auto state = ferry::optim::make_state(optimizer, table);
    ferry::step_bags(exec, optimizer, table, state, selection[1], offsets, grads, Pooling{}).wait();
  }
  {
    auto state = ferry::optim::make_state(optimizer, second);
    batch_tensor of_positions("grads", static_cast<std::int64_t>(grads.rows()) * hotness, width);
    ferry::init::custom(exec, of_positions,
                        expanded_gradient{{width}, Pooling::divides ? static_cast<float>(hotness) : 1.0F});
    ferry::step(exec, optimizer, second, state, sets[1], of_positions).wait();
  }
  conclude(
      run, result,
      count_of(exec, "ferry_bench::check", rows * width, different_elements{table.data(), second.data()}));
}

void step_bags(session& run) {
  const auto ceiling = run.ceiling(in_memory().ceiling);
  const std::int64_t bags = bags_of(run), rows = run.chosen().step_rows, width = run.chosen().width;
  const auto sets = index_sets::make<any_row>(run, bags * hotness, static_cast<std::size_t>(rows));
  const auto offsets = offsets_of(run, equal_bags(bags));
  batch_tensor grads("grads", bags, width);
  ferry::init::custom(run.exec(), grads, gradient_value{width});
  using namespace ferry;
  const auto time = [&]<class Pooling>(Pooling, const std::string& variant, const auto& optimizer,
                                       const index_sets& rows_of_sets, const auto& selection) {
    time_step<Pooling>(run, "bags.step." + variant, optimizer, ceiling, rows_of_sets, selection, offsets,
                       grads);
  };
  time(pooling::sum{}, "sum", rule, sets, sets);
  time(pooling::mean{}, "mean", rule, sets, sets);
  time(pooling::sum{}, "sum.plan_ready", rule, sets, plan_sets(run, sets, static_cast<std::size_t>(rows)));
  time(pooling::sum{}, "sum.sgd", plain_rule, sets, sets);
  const auto popular = index_sets::make<popular_row>(run, bags * hotness, static_cast<std::size_t>(rows));
  time(pooling::sum{}, "sum.zipf_1.05", rule, popular, popular);
  time(pooling::sum{}, "sum.sgd.zipf_1.05", plain_rule, popular, popular);
}

/// A training step of an embedding: bags of rows under Zipf's law are pooled, then stepped on. The verbs are checked above.
template <class Rule>
void time_training(session& run, const Rule& optimizer) {
  const std::int64_t bags = bags_of(run), rows = run.chosen().step_rows, width = run.chosen().width;
  figure result;
  result.name = "job.training." + std::string(Rule::name);
  result.setting = {{"rows", rows}, {"bags", bags}, {"hotness", hotness}, {"width", width}};
  const auto sets = index_sets::make<popular_row>(run, bags * hotness, static_cast<std::size_t>(rows));
  const auto offsets = offsets_of(run, equal_bags(bags));
  ferry::tensor<float, ferry::device_space> table("weights", rows, width);
  ferry::init::custom(run.exec(), table, element_value{width});
  auto state = ferry::optim::make_state(optimizer, table);
  batch_tensor pooled("pooled", bags, width), grads("grads", bags, width);
  ferry::init::custom(run.exec(), grads, gradient_value{width});
  ferry::gather_bags(run.exec(), table, sets[1], offsets, pooled, ferry::pooling::sum{}).wait();
  const std::int64_t wrong = count_of(
      run.exec(), "ferry_bench::check", bags * width,
      wrong_pooled<float, float>{pooled.data(), sets[1].data(), offsets.data(), element_value{width}, 1.0F});
  result.time = measure(run, 2, [&](int call) {
    ferry::gather_bags(run.exec(), table, sets[call], offsets, pooled, ferry::pooling::sum{}).detach();
    return ferry::step_bags(run.exec(), optimizer, table, state, sets[call], offsets, grads,
                            ferry::pooling::sum{});
  });
  conclude(run, result, wrong);
}
void train(session& run) {
  time_training(run, rule);
  time_training(run, ferry::optim::adagrad{.lr = 0.1, .eps = 0.25});
}

/// Tables of one model, with their states.
struct table_set {
  std::vector<ferry::tensor<float, ferry::device_space>> tables;
  std::vector<decltype(ferry::optim::make_state(rule, tables.front()))> states;

  table_set(const session& run, std::int64_t count, std::int64_t rows) {
    const std::int64_t width = run.chosen().width;
    for (std::int64_t t = 0; t < count; ++t) {
      tables.emplace_back("weights", rows, width);
      ferry::init::custom(run.exec(), tables.back(), element_value{width});
      states.push_back(ferry::optim::make_state(rule, tables.back()));
    }
  }
};

/// Bags of 26 tables, as many as Criteo's models have: by a step for each table and by one step.
void step_tables(session& run) {
  constexpr std::int64_t count = 26;
  const auto& exec = run.exec();
  const std::int64_t width = run.chosen().width, rows = run.chosen().step_rows / count + 1;
  const std::int64_t bags = bags_of(run) / count + 1, part = bags * hotness;
  const auto sets = index_sets::make<any_row>(run, count * part, static_cast<std::size_t>(rows));
  const auto offsets = offsets_of(run, equal_bags(count * bags));
  const auto offsets_each = offsets_of(run, equal_bags(bags));
  batch_tensor grads("grads", bags, count * width), grads_each("grads", bags, width);
  ferry::init::custom(exec, grads, repeated_gradient{{width}});
  ferry::init::custom(exec, grads_each, gradient_value{width});
  std::int64_t distinct = 0;
  for (std::int64_t t = 0; t < count; ++t) {
    auto named = to_host(sets[1]);
    named = {named.begin() + t * part, named.begin() + (t + 1) * part};
    std::sort(named.begin(), named.end());
    distinct += std::unique(named.begin(), named.end()) - named.begin();
  }
  table_set single(run, count, rows), joint(run, count, rows);
  const auto step_each = [&](int call) {
    ferry::ticket last;
    for (std::int64_t t = 0; t < count; ++t) {
      const auto number = static_cast<std::size_t>(t);
      last = ferry::step_bags(exec, rule, single.tables[number], single.states[number],
                              sets[call].rows_between(t * part, (t + 1) * part), offsets_each, grads_each,
                              ferry::pooling::sum{});
      if (t + 1 < count) last.detach();
    }
    return last;
  };
  const auto step_jointly = [&](int call) {
    return ferry::step_bags(exec, rule, ferry::for_each_table(joint.tables), joint.states, sets[call],
                            offsets, grads, ferry::pooling::sum{});
  };
  step_each(1).wait();
  step_jointly(1).wait();
  std::int64_t wrong = 0;
  for (std::size_t t = 0; t < count; ++t)
    wrong += count_of(exec, "ferry_bench::check", rows * width,
                      different_elements{single.tables[t].data(), joint.tables[t].data()});
  const auto time = [&](const std::string& name, const auto& step) {
    figure result;
    result.name = name;
    result.setting = {{"tables", count},         {"rows", rows},         {"bags", bags},
                      {"hotness", hotness},      {"distinct", distinct}, {"width", width},
                      {"burst", std::int64_t{4}}};
    result.counts = "read + write";
    result.ceiling = run.ceiling(in_memory().ceiling);
    result.bytes = 4.0 * static_cast<double>(6 * width * distinct + count * width * bags);
    result.time = measure(run, 4, step);
    conclude(run, result, wrong);
  };
  time("bags.step.tables.each", step_each);
  time("bags.step.tables.joint", step_jointly);
}

const registration device{"bags.device", pool_device};
const registration narrow{"bags.device.half", pool_halves};
const registration long_bags{"bags.long", pool_long};
const registration mapped{"bags.mapped", pool_mapped};
const registration trained{"job.training", train};
const registration stepped{"bags.step", step_bags};
const registration tables_stepped{"bags.step.tables", step_tables};

}  // namespace
}  // namespace ferry_bench
