// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/routes.hpp"

#include <ferry/bags.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Bags of sharded tables by ranks, and for each table those of all ranks by an ordinary one.
namespace ferry_test {

/// Bags: of several tables those of a rank, or of one table those of all ranks, by rank.
template <class V, class Index = std::int64_t, class Weight = float>
struct bag_list {
  std::size_t bags = 0;  ///< of each table of a rank
  std::vector<Index> ids, offsets{0};
  std::vector<Weight> weights;
  std::vector<V> grads;
};

/// Tables of several widths and numbers of rows, with a batch for each rank.
template <class V, class Index = std::int64_t, class Weight = float>
struct list_input {
  std::vector<std::size_t> rows, widths, first_column{0};
  std::vector<bag_list<V, Index, Weight>> ranks, tables;

  /// `outside`: some indices name no row, also of tables without rows.
  list_input(std::mt19937_64& random, int group, std::vector<std::size_t> table_rows,
             std::vector<std::size_t> table_widths, bool outside = false)
      : rows(std::move(table_rows)),
        widths(std::move(table_widths)),
        ranks(static_cast<std::size_t>(group)),
        tables(rows.size()) {
    for (const std::size_t columns : widths) first_column.push_back(first_column.back() + columns);
    for (auto& batch : ranks) {
      batch.bags = random() % 4 == 0 ? 0 : 1 + random() % (random() % 5 == 0 ? 120 : 12);
      batch.grads = values<V>(random, batch.bags * width());
      for (std::size_t t = 0; t < rows.size(); ++t)
        for (std::size_t b = 0; b < batch.bags; ++b) add_bag(random, batch, t, outside);
    }
    for (const auto& batch : ranks)
      for (std::size_t t = 0; t < rows.size(); ++t) add_to_table(batch, t);
  }

  [[nodiscard]] std::size_t width() const { return first_column.back(); }
  [[nodiscard]] const auto& of_rank(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  /// The first bag and the first position of a rank, of the only table.
  [[nodiscard]] std::pair<std::size_t, std::size_t> at(int rank) const {
    std::pair<std::size_t, std::size_t> first{0, 0};
    for (int r = 0; r < rank; ++r) first.first += of_rank(r).bags, first.second += of_rank(r).ids.size();
    return first;
  }

 private:
  void add_bag(std::mt19937_64& random, bag_list<V, Index, Weight>& batch, std::size_t t, bool outside) {
    const std::size_t length = (rows[t] == 0 && !outside) || random() % 4 == 0 ? 0 : random() % 9;
    for (std::size_t k = 0; k < length; ++k) {
      const bool misses = rows[t] == 0 || (outside && random() % 4 == 0);
      if (k % 3 == 2)
        batch.ids.push_back(batch.ids.back());
      else
        batch.ids.push_back(misses ? static_cast<Index>(random() % 2 == 0 ? rows[t] + random() % 40 : ~0U)
                                   : static_cast<Index>(random() % rows[t]));
      batch.weights.push_back(static_cast<Weight>(static_cast<double>(random() % 9) / 4.0 - 1.0));
    }
    batch.offsets.push_back(static_cast<Index>(batch.ids.size()));
  }
  void add_to_table(const bag_list<V, Index, Weight>& batch, std::size_t t) {
    auto& table = tables[t];
    for (std::size_t b = 0; b < batch.bags; ++b) {
      const auto begin = static_cast<std::size_t>(batch.offsets[t * batch.bags + b]);
      const auto end = static_cast<std::size_t>(batch.offsets[t * batch.bags + b + 1]);
      for (std::size_t p = begin; p < end; ++p) {
        table.ids.push_back(batch.ids[p]);
        table.weights.push_back(batch.weights[p]);
      }
      table.offsets.push_back(static_cast<Index>(table.ids.size()));
      for (std::size_t c = first_column[t]; c < first_column[t + 1]; ++c)
        table.grads.push_back(batch.grads[b * width() + c]);
    }
  }
};

/// Results of verbs on bags.
template <class V, class WeightGrad, class Position, class Space>
struct bag_results {
  ferry::tensor<V, Space> pooled, second;         ///< the second with weights, or with maxima
  ferry::tensor<Position, Space> maxima;          ///< under pooling::max
  ferry::tensor<WeightGrad, Space> weight_grads;  ///< else

  bag_results(const exec_space& exec, ferry::device target, std::size_t bags, std::size_t positions,
              std::size_t columns)
      : pooled("pooled", target, bags, columns),
        second("second", target, bags, columns),
        maxima("maxima", target, bags, columns),
        weight_grads("weight_grads", target, positions) {
    ferry::init::constant(exec, pooled, -7);
    ferry::init::constant(exec, second, -7);
    ferry::init::constant(exec, weight_grads, -7);
  }
};

/// gather_bags and step_bags: with nothing else; then with weights and gradients of these, or with maxima.
template <class Pooling, class Bounds, class... Path>
void run_bag_verbs(const exec_space& exec, const auto& rule, auto& table, auto& state, const auto& named,
                   const auto& offsets, const auto& grads, const auto& weights, auto& results,
                   Pooling pooling, Bounds bounds, Path... path) {
  ferry::gather_bags(exec, table, named, offsets, results.pooled, pooling, bounds, path...).wait();
  if constexpr (Pooling::selects) {
    ferry::gather_bags(exec, table, named, offsets, results.second, results.maxima, pooling, bounds, path...)
        .wait();
    ferry::step_bags(exec, rule, table, state, named, offsets, grads, pooling, bounds).wait();
    ferry::step_bags(exec, rule, table, state, named, offsets, grads, results.maxima, pooling, bounds).wait();
  } else {
    ferry::gather_bags(exec, table, named, offsets, results.second, weights, pooling, bounds, path...).wait();
    ferry::step_bags(exec, rule, table, state, named, offsets, grads, pooling, bounds).wait();
    ferry::step_bags(exec, rule, table, state, named, offsets, grads, weights, pooling, bounds).wait();
    ferry::step_bags(exec, rule, table, state, named, offsets, grads, weights, results.weight_grads, pooling,
                     bounds)
        .wait();
  }
}

/// The bags of one table, in turns of all ways to name rows.
template <class T, class V, class Index, class Weight, class Space, class Shardings, class Pooling,
          class Bounds, class Rule>
void compare_bags(route_suite& suite, const std::string& label, const Rule& rule, Pooling pooling,
                  Bounds bounds) {
  using weight_grad = std::conditional_t<std::is_same_v<Weight, double>, double, float>;
  const exec_space first;
  auto& random = suite.random;
  const auto compare = [&](const auto& comm, std::size_t rows, auto spread, const std::string& words) {
    static constexpr std::size_t widths[] = {1, 3, 4, 6, 31, 64, 130};
    const std::size_t columns = widths[random() % 7];
    const bool has_all_ranks = comm.acting_rank() < 0;
    ferry::tensor<T, Space> table("w", rows, columns);
    ferry::sharded_table<T, Space, decltype(spread)> big("w", comm, rows, columns, spread);
    ferry::init::uniform(first, table, -1, 1, 5);
    ferry::init::uniform(first, big, -1, 1, 5);
    auto plain_state = ferry::optim::make_state(rule, table);
    auto state = ferry::optim::make_state(rule, big);
    for (int turn = 0; turn < (has_all_ranks ? 6 : 5); ++turn) {
      const std::string turn_words = words + ", turn " + std::to_string(turn) + ", ";
      const list_input<V, Index, Weight> input(random, comm.size(), {rows}, {columns},
                                               !std::is_same_v<Bounds, ferry::bounds::check>);
      const auto& whole = input.tables.front();
      const auto whole_grads = tensor_of(whole.grads, columns);
      bag_results<V, weight_grad, std::int64_t, host> expected(first, {}, whole.offsets.size() - 1,
                                                               whole.ids.size(), columns);
      run_bag_verbs(first, rule, table, plain_state, whole.ids, whole.offsets, whole_grads, whole.weights,
                    expected, pooling, bounds);
      const auto check = [&](const exec_space& exec, auto& results, std::size_t bag, std::size_t position) {
        const auto same = [&](const auto& result, const auto& right, std::size_t begin, const char* name) {
          const auto numbers = contents(exec, result);
          expect(same_bits(numbers.data(), right.data() + begin, numbers.size()), turn_words + name);
        };
        same(results.pooled, expected.pooled, bag * columns, "pooled rows");
        same(results.second, expected.second, bag * columns, "pooled rows again");
        if constexpr (Pooling::selects) {
          const auto maxima = contents(exec, results.maxima);
          for (std::size_t i = 0; i < maxima.size(); ++i) {
            const std::int64_t right = expected.maxima.data()[bag * columns + i];
            expect(maxima[i] == (right < 0 ? -1 : right - static_cast<std::int64_t>(position)),
                   turn_words + "positions of maxima");
          }
        } else {
          std::vector<weight_grad> result(results.weight_grads.rows());
          if (!result.empty()) ferry::copy(exec, results.weight_grads, result).wait();
          expect(same_bits(result.data(), expected.weight_grads.data() + position, result.size()),
                 turn_words + "gradients of weights");
        }
      };
      if (turn == 5) {
        bag_results<V, weight_grad, std::int64_t, host> results(first, {}, whole.offsets.size() - 1,
                                                                whole.ids.size(), columns);
        run_bag_verbs(first, rule, big, state, whole.ids, whole.offsets, whole_grads, whole.weights, results,
                      pooling, bounds);
        check(first, results, 0, 0);
      } else {
        run_ranks(comm, [&](int rank, const auto& exec) {
          const auto& mine = input.of_rank(rank);
          const auto target = comm.device(rank);
          const auto [bag, position] = input.at(rank);
          const auto named = on_device(exec, target, mine.ids),
                     offsets = on_device(exec, target, mine.offsets);
          auto grads = on_device(exec, target, mine.grads, columns);
          const auto weights = on_device(exec, target, mine.weights);
          bag_results<V, weight_grad, std::int32_t, device> results(exec, target, mine.bags, mine.ids.size(),
                                                                    columns);
          const auto act = [&](const auto& list, const auto& bags, const auto& rows_of_bags,
                               const auto& factors, auto... path) {
            run_bag_verbs(exec, rule, big, state, list, bags, rows_of_bags, factors, results, pooling, bounds,
                          path...);
          };
          constexpr ferry::path::exchange exchange{};
          if (turn == 0) {
            ferry::gather_bags(exec, big, ferry::make_plan(exec, named, rows, bounds), offsets,
                               results.pooled, pooling, bounds)
                .wait();
            expect(same_bits(contents(exec, results.pooled).data(), expected.pooled.data() + bag * columns,
                             results.pooled.size()),
                   turn_words + "row_plan");
          }
          if (turn == 2 || turn == 3) {
            const auto plan = ferry::make_plan(exec, named, big, bounds);
            if (turn == 2)
              act(plan, offsets, grads, weights);
            else
              act(plan, offsets, grads, weights, exchange);
          } else if (turn == 0 || (turn == 4 && rank % 2 == 0)) {
            act(mine.ids, mine.offsets, tensor_of(mine.grads, columns), mine.weights);
          } else if (turn == 1) {
            act(named, offsets, grads, weights, exchange);
          } else {
            act(named, offsets, grads, weights);
          }
          ferry::init::constant(exec, grads, 77);
          check(exec, results, bag, position);
        });
      }
      const auto result = contents(first, big), right = contents(first, table);
      expect(same_bits(result.data(), right.data(), right.size()) && state.steps() == plain_state.steps(),
             turn_words + "the table");
    }
  };
  suite.for_groups(Shardings{}, label, 90, compare);
}

/// A state for each of several tables.
template <class Rule, class Tables, class... More>
auto states_of(const Rule& rule, Tables& tables, const More&... more) {
  std::vector<decltype(ferry::optim::make_state(rule, tables.front(), more...))> states;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    states.push_back(ferry::optim::make_state(rule, tables[t], more...));
    states.back().set_seed(40 + t);
    if constexpr (sizeof...(More) == 0) states.back().set_steps(static_cast<std::int64_t>(t % 3));
  }
  return states;
}
template <class Rule, class Tables>
auto states_of(const Rule& rule, Tables& tables, ferry::rounding::stochastic) {
  return states_of(rule, tables);
}

/// Numbers of rows and widths of several tables; some tables may have no rows.
inline auto draw_tables(std::mt19937_64& random, bool may_lack_rows) {
  static constexpr std::size_t widths[] = {1, 3, 4, 8, 31, 64, 132};
  const bool whole_packets = random() % 2 == 0;
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> tables;
  for (std::size_t count = 1 + random() % 6; count > 0; --count) {
    const bool lacks = may_lack_rows && random() % 6 == 0;
    tables.first.push_back(lacks ? 0 : 1 + random() % (random() % 3 == 0 ? 3 : 60));
    tables.second.push_back(whole_packets ? 4 + 4 * (random() % 9) : widths[random() % 7]);
  }
  return tables;
}

/// The bags of several tables, with weights and without, by arrays on devices and in host memory, against those
/// of each ordinary table.
template <class T, class V, class Index, class Space, class Shardings, class Rule, class Pooling,
          class Bounds, class... Policies>
void compare_lists(route_suite& suite, const std::string& label, const Rule& rule, Pooling pooling,
                   Bounds bounds, Policies... policies) {
  const exec_space first;
  auto& random = suite.random;
  const auto compare = [&](const auto& comm, std::size_t, auto sample, const std::string& words) {
    using spread_type = decltype(sample);
    const auto [rows, widths] = draw_tables(random, !std::is_same_v<Bounds, ferry::bounds::clamp>);
    const list_input<V, Index> input(random, comm.size(), rows, widths,
                                     !std::is_same_v<Bounds, ferry::bounds::check>);
    std::vector<ferry::tensor<T, host>> plain;
    std::vector<ferry::sharded_table<T, Space, spread_type>> sharded;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      const std::string name = "table" + std::to_string(t);
      plain.emplace_back(name.c_str(), rows[t], widths[t]);
      sharded.emplace_back(name, comm, rows[t], widths[t],
                           draw_sharding<spread_type>(random, rows[t], comm.size()));
      ferry::init::uniform(first, plain.back(), -1, 1, 5 + t);
      ferry::init::uniform(first, sharded.back(), -1, 1, 5 + t);
    }
    auto plain_states = states_of(rule, plain, policies...);
    auto states = states_of(rule, sharded, policies...);
    const auto act = [&](const exec_space& exec, ferry::device target, const auto& batch, bool weighs,
                         const auto& named, const auto& offsets, const auto& grads, const auto& weights) {
      const auto list = ferry::for_each_table(sharded);
      // The bags of this batch, pooled from ordinary tables one by one.
      ferry::tensor<V, host> expected("expected", batch.bags, input.width());
      for (std::size_t t = 0; t < plain.size(); ++t) {
        const auto begin = batch.offsets.begin() + static_cast<std::ptrdiff_t>(t * batch.bags);
        std::vector<Index> bags(begin, begin + static_cast<std::ptrdiff_t>(batch.bags) + 1);
        const auto start = static_cast<std::ptrdiff_t>(bags.front()),
                   last = static_cast<std::ptrdiff_t>(bags.back());
        for (Index& offset : bags) offset = static_cast<Index>(offset - static_cast<Index>(start));
        const std::vector<Index> ids(batch.ids.begin() + start, batch.ids.begin() + last);
        const std::vector<float> factors(batch.weights.begin() + start, batch.weights.begin() + last);
        ferry::tensor<V, host> part("part", batch.bags, widths[t]);
        ferry::init::constant(exec, part, -7);
        if constexpr (!Pooling::selects)
          if (weighs) ferry::gather_bags(exec, plain[t], ids, bags, part, factors, pooling, bounds).wait();
        if (Pooling::selects || !weighs)
          ferry::gather_bags(exec, plain[t], ids, bags, part, pooling, bounds).wait();
        for (std::size_t b = 0; b < batch.bags; ++b)
          for (std::size_t c = 0; c < widths[t]; ++c) expected(b, input.first_column[t] + c) = part(b, c);
      }
      ferry::tensor<V, device> out("out", target, batch.bags, input.width());
      ferry::init::constant(exec, out, -7);
      if constexpr (Pooling::selects) {
        ferry::gather_bags(exec, list, named, offsets, out, pooling, bounds, ferry::path::direct{}).wait();
      } else if (weighs) {
        ferry::gather_bags(exec, list, named, offsets, out, weights, pooling, bounds).wait();
      } else {
        ferry::gather_bags(exec, list, named, offsets, out, pooling, bounds).wait();
      }
      expect(same_bits(contents(exec, out).data(), expected.data(), out.size()), words + ", pooled rows");
      if constexpr (!Pooling::selects) {
        if (weighs)
          ferry::step_bags(exec, rule, list, states, named, offsets, grads, weights, pooling, bounds,
                           policies...)
              .wait();
        else
          ferry::step_bags(exec, rule, list, states, named, offsets, grads, pooling, bounds, policies...)
              .wait();
      }
    };
    const auto end_turn = [&](bool weighs, const char* turn) {
      if constexpr (!Pooling::selects) {  // nvcc loses its way in a discarded loop without braces
        for (std::size_t t = 0; t < rows.size(); ++t) {
          const auto& bags = input.tables[t];
          const auto grads = tensor_of(bags.grads, widths[t]);
          if (weighs)
            ferry::step_bags(first, rule, plain[t], plain_states[t], bags.ids, bags.offsets, grads,
                             bags.weights, pooling, bounds, policies...)
                .wait();
          else
            ferry::step_bags(first, rule, plain[t], plain_states[t], bags.ids, bags.offsets, grads, pooling,
                             bounds, policies...)
                .wait();
          expect(same_table(first, sharded[t], plain[t]) && states[t].steps() == plain_states[t].steps(),
                 words + turn + std::to_string(t) + " of " + std::to_string(rows.size()));
        }
      }
    };
    for (const bool weighs : {true, false}) {
      run_ranks(comm, [&](int rank, const auto& exec) {
        const auto& mine = input.of_rank(rank);
        const auto target = comm.device(rank);
        if (rank % 2 == 1)
          act(exec, target, mine, weighs, mine.ids, mine.offsets, tensor_of(mine.grads, input.width()),
              mine.weights);
        else
          act(exec, target, mine, weighs, on_device(exec, target, mine.ids),
              on_device(exec, target, mine.offsets), on_device(exec, target, mine.grads, input.width()),
              on_device(exec, target, mine.weights));
      });
      end_turn(weighs, ", table ");
    }
    if (comm.size() > 1) return;  // one thread for the group, whose batch is that of the only rank
    const auto& mine = input.of_rank(0);
    act(first, {}, mine, true, mine.ids, mine.offsets, tensor_of(mine.grads, input.width()), mine.weights);
    end_turn(true, ", by one thread, table ");
  };
  suite.for_groups(Shardings{}, label, 1, compare);
}

}  // namespace ferry_test
