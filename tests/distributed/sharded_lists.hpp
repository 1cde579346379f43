// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/any_sharding.hpp"
#include "distributed/forwarding_transport.hpp"
#include "distributed/kit.hpp"

#include <ferry/bags.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Bags of several sharded tables: the batches of ranks, and for each table those of all ranks.
namespace ferry_test {

/// The bags of several tables: those of a rank.
template <class V, class Index = std::int64_t>
struct list_batch {
  std::size_t bags = 0;  ///< of each table
  std::vector<Index> ids, offsets{0};
  std::vector<float> weights;
  std::vector<V> grads;
};
/// The bags of one table: those of all ranks, by rank.
template <class V, class Index = std::int64_t>
struct table_bags {
  std::vector<Index> ids, offsets{0};
  std::vector<float> weights;
  std::vector<V> grads;
};

/// Tables of several widths and numbers of rows, with a batch for each rank.
template <class V, class Index = std::int64_t>
struct list_input {
  std::vector<std::size_t> rows, widths, first_column{0};
  std::vector<list_batch<V, Index>> ranks;
  std::vector<table_bags<V, Index>> tables;

  /// `outside`: some indices name no row, also of tables without rows.
  list_input(std::mt19937_64& random, int group, std::vector<std::size_t> table_rows,
             std::vector<std::size_t> table_widths, bool outside = false)
      : rows(std::move(table_rows)),
        widths(std::move(table_widths)),
        ranks(static_cast<std::size_t>(group)),
        tables(rows.size()) {
    for (const std::size_t width : widths) first_column.push_back(first_column.back() + width);
    for (auto& batch : ranks) {
      batch.bags = random() % 4 == 0 ? 0 : 1 + random() % (random() % 5 == 0 ? 90 : 12);
      batch.grads = values<V>(random, batch.bags * width());
      for (std::size_t t = 0; t < rows.size(); ++t)
        for (std::size_t b = 0; b < batch.bags; ++b) add_bag(random, batch, t, outside);
    }
    for (const auto& batch : ranks)
      for (std::size_t t = 0; t < rows.size(); ++t) add_to_table(batch, t);
  }

  [[nodiscard]] std::size_t width() const { return first_column.back(); }

 private:
  void add_bag(std::mt19937_64& random, list_batch<V, Index>& batch, std::size_t t, bool outside) {
    const std::size_t length = (rows[t] == 0 && !outside) || random() % 4 == 0 ? 0 : random() % 7;
    for (std::size_t k = 0; k < length; ++k) {
      const bool misses = rows[t] == 0 || (outside && random() % 4 == 0);
      batch.ids.push_back(misses ? static_cast<Index>(random() % 2 == 0 ? rows[t] + random() % 40 : ~0U)
                                 : static_cast<Index>(random() % rows[t]));
      batch.weights.push_back(static_cast<float>(random() % 9) / 4.0F - 1.0F);
    }
    batch.offsets.push_back(static_cast<Index>(batch.ids.size()));
  }
  void add_to_table(const list_batch<V, Index>& batch, std::size_t t) {
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

/// Sharded tables and ordinary ones of the same elements. `spread(t)` is the sharding of table t.
template <class T, class Space, class Spread>
struct list_of_tables {
  std::vector<ferry::tensor<T, host>> plain;
  std::vector<ferry::sharded_table<T, Space, Spread>> sharded;

  template <class Exec, class Input, class SpreadOf>
  list_of_tables(const Exec& exec, const ferry::communicator& comm, const Input& input,
                 const SpreadOf& spread) {
    for (std::size_t t = 0; t < input.rows.size(); ++t) {
      const std::string label = "table" + std::to_string(t);
      plain.emplace_back(label.c_str(), input.rows[t], input.widths[t]);
      sharded.emplace_back(label, comm, input.rows[t], input.widths[t], spread(t));
      ferry::init::uniform(exec, plain.back(), -1, 1, 5 + t);
      ferry::init::uniform(exec, sharded.back(), -1, 1, 5 + t);
    }
  }
  /// The first table that differs, or none.
  template <class Exec>
  [[nodiscard]] int first_difference(const Exec& exec) const {
    for (std::size_t t = 0; t < plain.size(); ++t)
      if (!same_table(exec, sharded[t], plain[t])) return static_cast<int>(t);
    return -1;
  }
};

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

/// A group of threads, or one whose ranks only send messages.
inline ferry::communicator group_by(int ranks, bool messages) {
  if (!messages) return group_of(ranks);
  return ferry::communicator(std::make_shared<forwarding_transport>(ranks, std::chrono::seconds(30)));
}

/// Calls test(ranks, messages, spread_of_table) for groups, transports and shardings.
template <class Test>
void for_each_list_group(const Test& test) {
  using kind = any_sharding::kind;
  for (const int ranks : {1, 2, 3, 4})
    for (const bool messages : {false, true}) {
      INFO(ranks << " ranks, " << (messages ? "messages" : "threads"));
      constexpr kind kinds[] = {kind::cyclic, kind::block, kind::hashed};
      test(ranks, messages, [&](std::size_t t) { return any_sharding{kinds[t % 3]}; });
      test(ranks, messages, [&](std::size_t t) {
        return ferry::sharding::table_wise{static_cast<int>(t % static_cast<std::size_t>(ranks))};
      });
      test(ranks, messages, [](std::size_t) { return host_sharding{{kind::hashed}}; });
      test(ranks, messages, [](std::size_t) { return ferry::sharding::replicated{}; });
    }
}

}  // namespace ferry_test
