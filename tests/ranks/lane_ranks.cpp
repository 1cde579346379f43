// SPDX-License-Identifier: Apache-2.0
#include "ranks/lane_ranks.hpp"

#include "distributed/forwarding_transport.hpp"
#include "ranks/rank_program.hpp"
#include "support/process_space.hpp"

#include <ferry/bags.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>
#include <ferry/quantized.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry_test {

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using device = ferry::device_space;
using host = ferry::mapped_space;
/// Memory of shards that kernels of other processes read.
using shared_space = std::conditional_t<ferry::HostExecutionSpace<exec_space>, process_space, device>;

template <class T, class Space>
ferry::tensor<T, Space> array_of(const exec_space& exec, const std::vector<T>& numbers, std::size_t columns) {
  ferry::tensor<T, host> plain("plain", numbers.size() / columns, columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) plain.data()[i] = numbers[i];
  ferry::tensor<T, Space> array("array", numbers.size() / columns, columns);
  ferry::copy(exec, plain, array).wait();
  return array;
}
template <class Space>
ferry::tensor<std::int64_t, Space> list_of(const exec_space& exec, const std::vector<std::int64_t>& ids) {
  ferry::tensor<std::int64_t, Space> list("list", ids.size());
  if (!ids.empty()) ferry::copy(exec, ids, list).wait();
  return list;
}
template <class Table>
std::vector<typename Table::value_type> contents(const exec_space& exec, const Table& table) {
  ferry::tensor<typename Table::value_type, host> read("read", table.rows(), table.width());
  ferry::copy(exec, table, read).wait();
  return {read.data(), read.data() + read.size()};
}

/// The batches of all ranks, which every rank makes from equal seeds, and all of them one after the other.
template <class T>
struct rank_batches {
  std::vector<std::vector<std::int64_t>> ids;
  std::vector<std::vector<T>> values;
  std::vector<std::int64_t> all_ids;
  std::vector<T> all_values;

  rank_batches(std::mt19937_64& random, int ranks, std::size_t rows, std::size_t width, std::size_t most,
               bool repeats, bool whole_numbers) {
    std::vector<std::int64_t> left(rows);
    for (std::size_t i = 0; i < rows; ++i) left[i] = static_cast<std::int64_t>(i);
    std::shuffle(left.begin(), left.end(), random);
    for (int r = 0; r < ranks; ++r) {
      auto& list = ids.emplace_back();
      auto& numbers = values.emplace_back();
      const std::size_t count = random() % 4 == 0 ? 0 : random() % (most + 1);
      const bool narrow = random() % 3 == 0;  // many positions name few rows
      for (std::size_t i = 0; i < count && (repeats || !left.empty()); ++i) {
        if (repeats) {
          list.push_back(static_cast<std::int64_t>(random() % (narrow ? 1 + rows / 20 : rows)));
        } else {
          list.push_back(left.back());
          left.pop_back();
        }
      }
      for (std::size_t i = 0; i < list.size() * width; ++i)
        numbers.push_back(whole_numbers ? static_cast<T>(static_cast<int>(random() % 9))
                                        : static_cast<T>(static_cast<float>(random() % 2001) / 1000 - 1));
    }
    join();
  }
  /// Leaves a rank without positions.
  void clear(std::size_t rank) {
    ids[rank].clear();
    values[rank].clear();
    join();
  }
  [[nodiscard]] const std::vector<std::int64_t>& own_ids() const {
    return ids[static_cast<std::size_t>(world_rank)];
  }
  [[nodiscard]] const std::vector<T>& own_values() const {
    return values[static_cast<std::size_t>(world_rank)];
  }

 private:
  void join() {
    all_ids.clear();
    all_values.clear();
    for (const auto& list : ids) all_ids.insert(all_ids.end(), list.begin(), list.end());
    for (const auto& numbers : values) all_values.insert(all_values.end(), numbers.begin(), numbers.end());
  }
};

struct batch_kind {
  bool repeats = true;
  bool whole_numbers = false;
  bool is_thorough = false;  ///< rows of several widths, and a batch that needs a larger lane than all before
};

/// make_verb(table) gives verb(list, values): on a sharded table by all ranks, on an ordinary one by all
/// batches. In turns with indices and values in several spaces, with plans of both kinds, and with batches
/// that make the lanes grow.
template <class T, class Space, class Spread, class MakeVerb>
void compare(const exec_space& exec, const ferry::communicator& comm, Spread spread, const std::string& name,
             const MakeVerb& make_verb, batch_kind kind = {}) {
  std::mt19937_64 random(static_cast<unsigned>(name.size()) + static_cast<unsigned>(comm.size()));
  for (const std::size_t width : {std::size_t{1}, std::size_t{7}, std::size_t{36}}) {
    if (width != 7 && !kind.is_thorough) continue;
    const std::size_t rows = 1 + random() % 300;
    ferry::sharded_table<T, Space, Spread> big("w", comm, rows, width, spread);
    ferry::tensor<T, Space> table("w", rows, width);
    if (kind.whole_numbers) {  // sums of small ones have the same bits in any order
      ferry::init::constant(exec, big, 1);
      ferry::init::constant(exec, table, 1);
    } else {
      ferry::init::uniform(exec, big, -1, 1, 3);
      ferry::init::uniform(exec, table, -1, 1, 3);
    }
    auto sharded_verb = make_verb(big);
    auto plain_verb = make_verb(table);
    for (int turn = 0; turn < 6; ++turn) {
      const rank_batches<T> batch(random, comm.size(), rows, width,
                                  turn == 3 && kind.is_thorough ? 20000
                                  : turn == 1                   ? 900
                                                                : 40,
                                  kind.repeats, kind.whole_numbers);
      const auto& ids = batch.own_ids();
      const auto near = list_of<device>(exec, ids);
      auto values = array_of<T, device>(exec, batch.own_values(), width);
      if (turn < 2)
        sharded_verb(near, values);
      else if (turn == 2)
        sharded_verb(ferry::make_plan(exec, near, rows), values);
      else if (turn == 3)
        sharded_verb(ferry::make_plan(exec, near, big), values);
      else if (world_rank % 2 == 0)
        sharded_verb(ids, array_of<T, ferry::pinned_space>(exec, batch.own_values(), width));
      else
        sharded_verb(list_of<host>(exec, ids), values);
      // Memory that others read was given back: it may be overwritten.
      ferry::init::constant(exec, values, 77);
      plain_verb(batch.all_ids, array_of<T, host>(exec, batch.all_values, width));
      expect(contents(exec, big) == contents(exec, table), name + ", " + std::string(Spread::name) +
                                                               ", width " + std::to_string(width) +
                                                               ", turn " + std::to_string(turn));
    }
  }
}

/// Each policy with one sharding, the default ones with all.
template <class T, class Space, class MakeVerb>
void compare_on(const exec_space& exec, const ferry::communicator& comm, const std::string& name,
                const MakeVerb& make_verb, batch_kind kind = {}) {
  compare<T, Space>(exec, comm, ferry::sharding::cyclic{}, name, make_verb, kind);
}

template <class... Policies>
auto scattering(const exec_space& exec) {
  return [&exec](auto& table) {
    return [&exec, &table](const auto& named, const auto& values) {
      ferry::scatter(exec, table, named, values, Policies{}...).wait();
    };
  };
}
template <class... Policies>
auto adding(const exec_space& exec) {
  return [&exec](auto& table) {
    return [&exec, &table](const auto& named, const auto& values) {
      ferry::scatter_add(exec, table, named, values, Policies{}...).wait();
    };
  };
}
template <class... Policies>
auto stepping(const exec_space& exec) {
  return [&exec](auto& table) {
    const ferry::optim::adam rule{.lr = 0.01};
    using state_type = decltype(ferry::optim::make_state(rule, table));
    auto state = std::make_shared<state_type>(ferry::optim::make_state(rule, table));
    return [&exec, &table, rule, state](const auto& named, const auto& values) {
      ferry::step(exec, rule, table, *state, named, values, Policies{}...).wait();
    };
  };
}
/// reduce::by_rank is of sharded tables alone.
auto adding_by_rank(const exec_space& exec) {
  return [&exec](auto& table) {
    return [&exec, &table](const auto& named, const auto& values) {
      using table_type = std::remove_reference_t<decltype(table)>;
      if constexpr (ferry::detail::is_sharded_rows<table_type>)
        ferry::scatter_add(exec, table, named, values, ferry::reduce::by_rank{}).wait();
      else
        ferry::scatter_add(exec, table, named, values).wait();
    };
  };
}

void writes(const exec_space& exec, const ferry::communicator& comm) {
  namespace dup = ferry::duplicates;
  compare<float, device>(exec, comm, ferry::sharding::cyclic{}, "scatter", scattering<>(exec),
                         {.is_thorough = true});
  compare<float, device>(exec, comm, ferry::sharding::block{}, "scatter", scattering<>(exec));
  compare<float, device>(exec, comm, ferry::sharding::hashed<5>{}, "step", stepping<>(exec),
                         {.is_thorough = true});
  compare<float, device>(exec, comm, ferry::sharding::table_wise{.rank = comm.size() - 1}, "step",
                         stepping<>(exec));
  compare_on<double, device>(exec, comm, "scatter of doubles", scattering<>(exec));
  compare_on<float, host>(exec, comm, "scatter into host memory", scattering<>(exec));
  compare_on<float, device>(exec, comm, "scatter, first", scattering<dup::first>(exec));
  compare_on<float, host>(exec, comm, "scatter, mean", scattering<dup::mean>(exec));
  compare_on<float, device>(exec, comm, "scatter, reject", scattering<dup::reject>(exec), {.repeats = false});
  compare_on<float, device>(exec, comm, "scatter, unique", scattering<dup::assume_unique>(exec),
                            {.repeats = false});
  compare_on<float, device>(exec, comm, "scatter_add", adding<>(exec));
  compare_on<float, device>(exec, comm, "scatter_add, any order", adding<dup::sum_any_order>(exec),
                            {.whole_numbers = true});
  compare_on<float, device>(exec, comm, "scatter_add by rank", adding_by_rank(exec), {.whole_numbers = true});
  compare_on<float, host>(exec, comm, "step in host memory", stepping<>(exec));
  compare_on<float, device>(exec, comm, "step, reject", stepping<ferry::nonfinite::reject>(exec));
}

/// step_bags with indices and with plans; also with weights, and with gradients of the weights, or under
/// pooling::max with the positions of the maxima.
template <class Space, class Pooling>
void bags(const exec_space& exec, const ferry::communicator& comm, Pooling pooling) {
  std::mt19937_64 random(5);
  constexpr std::size_t rows = 211, width = 12;
  const std::string name = "bags in " + std::string(Space::name) + ", " + std::string(Pooling::name);
  ferry::sharded_table<float, Space> big("w", comm, rows, width);
  ferry::tensor<float, Space> table("w", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::init::uniform(exec, table, -1, 1, 3);
  const ferry::optim::adam rule{.lr = 0.01};
  auto state = ferry::optim::make_state<device>(rule, big);
  auto plain = ferry::optim::make_state<device>(rule, table);
  for (int turn = 0; turn < 6; ++turn) {
    std::vector<std::int64_t> ids, offsets{0}, all_ids, all_offsets{0};
    std::vector<float> grads, all_grads, weights, all_weights;
    std::size_t first = 0;  // position of this rank's among all
    for (int r = 0; r < comm.size(); ++r) {
      const std::size_t count = random() % 3 == 0 ? 0 : random() % (turn == 2 ? 3000 : 50);
      if (r == world_rank) first = all_ids.size();
      for (std::size_t b = 0; b < count; ++b) {
        for (std::size_t p = random() % 9; p > 0; --p) {
          all_ids.push_back(static_cast<std::int64_t>(random() % rows));
          all_weights.push_back(static_cast<float>(random() % 17) / 8 - 1);
          if (r == world_rank) ids.push_back(all_ids.back());
          if (r == world_rank) weights.push_back(all_weights.back());
        }
        all_offsets.push_back(static_cast<std::int64_t>(all_ids.size()));
        if (r == world_rank) offsets.push_back(static_cast<std::int64_t>(ids.size()));
        for (std::size_t c = 0; c < width; ++c) {
          all_grads.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
          if (r == world_rank) grads.push_back(all_grads.back());
        }
      }
    }
    const auto near = list_of<device>(exec, ids);
    auto values = array_of<float, device>(exec, grads, width);
    const auto all_values = array_of<float, device>(exec, all_grads, width);
    ferry::tensor<float, host> weight_grads("weight_grads", weights.size()),
        all_weight_grads("weight_grads", all_weights.size());
    const auto step_by = [&](const auto& named) {
      ferry::step_bags(exec, rule, big, state, named, offsets, values, pooling).wait();
      if constexpr (Pooling::selects) {
        ferry::tensor<float, device> out("out", offsets.size() - 1, width);
        ferry::tensor<std::int64_t, device> maxima("maxima", offsets.size() - 1, width);
        ferry::gather_bags(exec, big, named, offsets, out, maxima, pooling).wait();
        ferry::step_bags(exec, rule, big, state, named, offsets, values, maxima, pooling).wait();
      } else {
        ferry::step_bags(exec, rule, big, state, named, offsets, values, weights, pooling).wait();
        ferry::step_bags(exec, rule, big, state, named, offsets, values, weights, weight_grads, pooling)
            .wait();
      }
    };
    if (turn % 2 == 0)
      step_by(near);
    else
      step_by(ferry::make_plan(exec, near, big));
    ferry::init::constant(exec, values, 77);
    ferry::step_bags(exec, rule, table, plain, all_ids, all_offsets, all_values, pooling).wait();
    if constexpr (Pooling::selects) {
      ferry::step_bags(exec, rule, table, plain, all_ids, all_offsets, all_values, pooling).wait();
    } else {
      ferry::step_bags(exec, rule, table, plain, all_ids, all_offsets, all_values, all_weights, pooling)
          .wait();
      ferry::step_bags(exec, rule, table, plain, all_ids, all_offsets, all_values, all_weights,
                       all_weight_grads, pooling)
          .wait();
      expect(std::equal(weight_grads.data(), weight_grads.data() + weight_grads.size(),
                        all_weight_grads.data() + first),
             name + ", gradients of weights");
    }
    expect(contents(exec, big) == contents(exec, table), name + ", turn " + std::to_string(turn));
  }
}

/// Bags of several sharded tables, which are pooled and stepped together, against those of each.
template <class Space, class Spread>
void bags_of_tables(const exec_space& exec, const ferry::communicator& comm, const Spread& spread) {
  std::mt19937_64 random(37);
  const std::vector<std::size_t> rows{60, 1, 211, 7}, widths{8, 12, 3, 4};
  const std::string name = "bags of tables in " + std::string(Space::name) + ", ";
  constexpr std::size_t columns = 27;
  std::vector<ferry::sharded_table<float, Space, Spread>> big;
  std::vector<ferry::tensor<float, Space>> tables;
  const ferry::optim::adam rule{.lr = 0.01};
  std::vector<decltype(ferry::optim::make_state<device>(rule, big.front()))> states;
  std::vector<decltype(ferry::optim::make_state<device>(rule, tables.front()))> plain;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    big.emplace_back("w", comm, rows[t], widths[t], spread);
    tables.emplace_back("w", rows[t], widths[t]);
    ferry::init::uniform(exec, big.back(), -1, 1, t);
    ferry::init::uniform(exec, tables.back(), -1, 1, t);
    states.push_back(ferry::optim::make_state<device>(rule, big.back()));
    plain.push_back(ferry::optim::make_state<device>(rule, tables.back()));
  }
  for (int turn = 0; turn < 4; ++turn) {
    // Of each rank: the bags of all tables, three for each.
    std::vector<std::vector<std::int64_t>> ids, offsets;
    std::vector<std::vector<float>> grads, weights;
    for (int r = 0; r < comm.size(); ++r) {
      const std::size_t count = r == turn ? 0 : 3;
      ids.emplace_back();
      offsets.push_back({0});
      weights.emplace_back();
      grads.emplace_back();
      for (std::size_t t = 0; t < rows.size(); ++t)
        for (std::size_t b = 0; b < count; ++b) {
          for (std::size_t p = random() % 5; p > 0; --p) {
            ids.back().push_back(static_cast<std::int64_t>(random() % rows[t]));
            weights.back().push_back(static_cast<float>(random() % 17) / 8 - 1);
          }
          offsets.back().push_back(static_cast<std::int64_t>(ids.back().size()));
        }
      for (std::size_t i = 0; i < count * columns; ++i)
        grads.back().push_back(static_cast<float>(random() % 2001) / 1000 - 1);
    }
    const auto mine = static_cast<std::size_t>(world_rank);
    const auto list = ferry::for_each_table(big);
    const auto named = list_of<Space>(exec, ids[mine]);
    const auto values = array_of<float, Space>(exec, grads[mine], columns);
    ferry::tensor<float, Space> pooled("pooled", values.rows(), columns),
        same("same", values.rows(), columns);
    ferry::gather_bags(exec, ferry::for_each_table(tables), ids[mine], offsets[mine], same).wait();
    ferry::gather_bags(exec, list, named, offsets[mine], pooled).wait();
    expect(contents(exec, pooled) == contents(exec, same), name + "pooled");
    ferry::step_bags(exec, rule, list, states, named, offsets[mine], values).wait();
    ferry::step_bags(exec, rule, list, states, named, offsets[mine], values, weights[mine],
                     ferry::pooling::sum{})
        .wait();
    std::size_t first_column = 0;
    for (std::size_t t = 0; t < rows.size(); first_column += widths[t++]) {
      std::vector<std::int64_t> table_ids, table_offsets{0};
      std::vector<float> table_weights, table_grads;
      for (std::size_t r = 0; r < ids.size(); ++r) {
        const std::size_t count = (offsets[r].size() - 1) / rows.size();
        for (std::size_t b = 0; b < count; ++b) {
          for (auto p = offsets[r][t * count + b]; p < offsets[r][t * count + b + 1]; ++p) {
            table_ids.push_back(ids[r][static_cast<std::size_t>(p)]);
            table_weights.push_back(weights[r][static_cast<std::size_t>(p)]);
          }
          table_offsets.push_back(static_cast<std::int64_t>(table_ids.size()));
          for (std::size_t c = 0; c < widths[t]; ++c)
            table_grads.push_back(grads[r][b * columns + first_column + c]);
        }
      }
      const auto of_table = array_of<float, Space>(exec, table_grads, widths[t]);
      ferry::step_bags(exec, rule, tables[t], plain[t], table_ids, table_offsets, of_table).wait();
      ferry::step_bags(exec, rule, tables[t], plain[t], table_ids, table_offsets, of_table, table_weights,
                       ferry::pooling::sum{})
          .wait();
      expect(contents(exec, big[t]) == contents(exec, tables[t]),
             name + "table " + std::to_string(t) + ", turn " + std::to_string(turn));
    }
  }
  // A bad index of one rank for one table: all ranks get it, and nothing is written.
  const auto untouched = contents(exec, big[0]);
  const bool last = world_rank == comm.size() - 1;
  const std::vector<std::int64_t> bad{1, 0, last ? 999 : 3, 2};
  ferry::tensor<float, Space> ones("ones", 1, columns);
  ferry::init::constant(exec, ones, 1);
  const auto text = said<ferry::out_of_range>(
      [&] { ferry::step_bags(exec, rule, ferry::for_each_table(big), states, bad, 1, ones).wait(); });
  expect(has(text, "index 999 at position 2, in bag 0 of 'w' [211 x 3]") &&
             (comm.size() == 1 || has(text, "rank " + std::to_string(comm.size() - 1))),
         name + text);
  expect(contents(exec, big[0]) == untouched, name + "a bad index");
}

/// Gathers by kernels of all ranks, where processes share the shards.
template <class Space>
void gathers(const exec_space& exec, const ferry::communicator& comm) {
  std::mt19937_64 random(17);
  constexpr std::size_t rows = 150, width = 9;
  ferry::sharded_table<float, Space> big("w", comm, rows, width);
  ferry::tensor<float, Space> table("w", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 3);
  ferry::init::uniform(exec, table, -1, 1, 3);
  const std::string name(Space::name);
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::int64_t> ids(world_rank == turn ? 0 : 1 + random() % 200), offsets{0};
    for (auto& id : ids)
      id = static_cast<std::int64_t>((random() + static_cast<unsigned>(world_rank)) % rows);
    while (offsets.back() < static_cast<std::int64_t>(ids.size()))
      offsets.push_back(std::min<std::int64_t>(offsets.back() + 3, static_cast<std::int64_t>(ids.size())));
    const auto read = [&](const auto& out) {
      ferry::tensor<float, host> plain("read", out.rows(), out.width());
      ferry::copy(exec, out, plain).wait();
      return std::vector<float>(plain.data(), plain.data() + plain.size());
    };
    ferry::tensor<float, Space> out("out", ids.size(), width), same("same", ids.size(), width),
        pooled("pooled", offsets.size() - 1, width), same_pooled("pooled", offsets.size() - 1, width);
    ferry::gather(exec, table, ids, same).wait();
    ferry::gather_bags(exec, table, ids, offsets, same_pooled, ferry::pooling::sum{}).wait();
    const auto check = [&](const std::string& way, const auto& named, auto... policies) {
      ferry::init::constant(exec, out, -5);
      ferry::gather(exec, big, named, out, policies...).wait();
      expect(read(out) == read(same), "a gather of all ranks, " + way + ", " + name);
      ferry::init::constant(exec, pooled, -5);
      ferry::gather_bags(exec, big, named, offsets, pooled, ferry::pooling::sum{}, policies...).wait();
      expect(read(pooled) == read(same_pooled), "bags of all ranks, " + way + ", " + name);
    };
    check("indices", ids);
    check("indices, each row once", ids, ferry::path::exchange{});
    check("a row_plan", ferry::make_plan(exec, ids, rows));
    const auto plan = ferry::make_plan(exec, ids, big);
    check("a sharded_plan", plan);
    check("a sharded_plan, each row once", plan, ferry::path::exchange{});
    // Writes follow the reads of all ranks.
    const double next = turn + 1;
    ferry::init::constant(exec, big, next);
    ferry::init::constant(exec, table, next);
  }
}

/// Gathers of quantized rows, whose codes and scales kernels read in the shards of all ranks.
template <class Quantization, class Space>
void gathers_of_codes(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 90, width = 64;
  std::mt19937_64 random(23);
  ferry::tensor<float, host> values("values", rows, width);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] = static_cast<float>(random() % 4001) / 500 - 4;
  ferry::sharded_quantized_table<Quantization, Space> big("q", comm, rows, width);
  ferry::quantized_tensor<Quantization, host> table("q", rows, width);
  ferry::quantize(exec, values, big).wait();
  ferry::quantize(exec, values, table).wait();
  std::vector<std::int64_t> ids(40 + static_cast<std::size_t>(world_rank));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % rows);
  ferry::tensor<float, Space> out("out", ids.size(), width);
  ferry::tensor<float, host> read("read", ids.size(), width), same("same", ids.size(), width);
  ferry::gather(exec, table, ids, same).wait();
  const auto check = [&](const auto& named, auto... policies) {
    ferry::init::constant(exec, out, -5);
    ferry::gather(exec, big, named, out, policies...).wait();
    ferry::copy(exec, out, read).wait();
    expect(std::equal(read.data(), read.data() + read.size(), same.data()),
           "rows of codes, " + std::string(Space::name));
  };
  check(ids);
  check(ids, ferry::path::exchange{});
  check(ferry::make_plan(exec, ids, big));
}

/// Norms by the lists of a plan that kernels of all ranks have made.
void norms(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 80, width = 6;
  std::mt19937_64 random(29);
  const ferry::sharded_table<float, device> big("w", comm, rows, width);
  const rank_batches<float> batch(random, comm.size(), rows, width, 200, true, false);
  const auto plan = ferry::make_plan(exec, batch.own_ids(), big);
  const auto whole = ferry::make_plan(exec, batch.all_ids, rows);
  const auto mine = array_of<float, device>(exec, batch.own_values(), width);
  const auto whole_values = array_of<float, device>(exec, batch.all_values, width);
  const double norm = ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(plan, mine)).wait();
  const double expected =
      ferry::optim::grad_norm(exec, ferry::optim::sparse_grads(whole, whole_values)).wait();
  expect(std::abs(norm - expected) <= 1e-6 * expected, "the norm of the ranks' gradients");
}

/// Errors of one rank reach all, nothing is written, and the lanes serve on.
void errors(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 50, width = 4;
  const bool last = world_rank == comm.size() - 1;
  const std::string name = "rank " + std::to_string(comm.size() - 1);
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::init::constant(exec, big, 2);
  const auto untouched = contents(exec, big);
  ferry::tensor<float, device> values("values", 3, width), wide("wide", 3, width + 1);
  ferry::init::constant(exec, values, 1);
  const std::vector<std::int64_t> good{world_rank, 10 + world_rank, 20 + world_rank},
      bad{1, last ? 999 : 2, 3}, twice{7, 20 + world_rank, 30 + world_rank};
  for (int turn = 0; turn < 2; ++turn) {
    std::string text = said<ferry::out_of_range>([&] { ferry::scatter(exec, big, bad, values).wait(); });
    expect(has(text, "index 999 at position 1") && (comm.size() == 1 || has(text, name)),
           "a bad index: " + text);
    text = said<ferry::out_of_range>([&] {
      const auto plan = ferry::make_plan(exec, bad, big);
      ferry::scatter_add(exec, big, plan, values).wait();
    });
    expect(has(text, "index 999"), "a bad index in a plan: " + text);
    if (comm.size() > 1) {
      text = said<ferry::invalid_argument>(
          [&] { ferry::scatter(exec, big, twice, values, ferry::duplicates::reject{}).wait(); });
      expect(has(text, "row 7"), "a row of two ranks: " + text);
      text = last ? said<ferry::invalid_argument>([&] { ferry::scatter(exec, big, good, wide).wait(); })
                  : said<ferry::peer_error>([&] { ferry::scatter(exec, big, good, values).wait(); });
      expect(has(text, "'wide'"), "wrong shapes: " + text);
    }
    const ferry::optim::sgd rule{.lr = 1};
    auto state = ferry::optim::make_state(rule, big);
    ferry::tensor<float, device> infinite("values", 3, width);
    ferry::init::constant(exec, infinite, last ? std::numeric_limits<double>::infinity() : 1);
    text = said<ferry::invalid_argument>(
        [&] { ferry::step(exec, rule, big, state, good, infinite, ferry::nonfinite::reject{}).wait(); });
    expect(has(text, "infinite"), "a gradient that is no number: " + text);
    expect(contents(exec, big) == untouched && state.steps() == 0, "tables after refused batches");
  }
  ferry::scatter(exec, big, good, values).wait();
  expect(contents(exec, big) != untouched, "a scatter after errors");
}

/// A group whose rank pauses after a meeting.
class pausing_group final : public forwarding_transport {
 public:
  using forwarding_transport::forwarding_transport;
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    inner().all_gather(rank, note, mine, theirs);
    if (const auto act = std::exchange(pause, nullptr)) act();
  }
  std::function<void()> pause;
};

/// The last rank pauses before it reads the batches of the others. They give up, and write other batches: it
/// still reads those of its verb.
void leave_early(const exec_space& exec, const group_maker& make_group) {
  const auto ends = make_group({.deadline = std::chrono::seconds(30)});
  const auto group =
      std::make_shared<pausing_group>(make_group({.deadline = std::chrono::milliseconds(2000)}));
  const ferry::communicator comm(group);
  constexpr std::size_t rows = 120, width = 4;
  const bool last = world_rank == comm.size() - 1;
  ferry::sharded_table<float, device> big("w", comm, rows, width), small("small", comm, rows, width);
  ferry::init::zeros(exec, big);
  std::vector<std::int64_t> ids;  // a row of each owner for each rank
  for (int owner = 0; owner < comm.size(); ++owner) ids.push_back(owner + world_rank * comm.size());
  ferry::tensor<float, device> values("values", ids.size(), width);
  const auto write = [&](auto& table, float value) {
    ferry::init::constant(exec, values, value);
    ferry::scatter_add(exec, table, ids, values).wait();
  };
  write(big, 1);  // opens the lanes
  if (last) group->pause = [&] { ends.barrier(); };
  const auto text = said<ferry::communication_error>([&] { write(big, 4); });
  if (!last) {
    expect(has(text, "2000 ms"), "a rank that pauses: " + text);
    for (int turn = 0; turn < 2; ++turn)
      expect(!said<ferry::communication_error>([&] { write(small, 7); }).empty(), "a broken group");
    ends.barrier();
  }
  if (last) {
    const auto shard = contents(exec, big.shard(world_rank));
    const auto named = static_cast<std::ptrdiff_t>(width) * comm.size();
    expect(std::count(shard.begin(), shard.end(), 5.F) == named &&
               std::count(shard.begin(), shard.end(), 0.F) == std::ssize(shard) - named,
           "batches of ranks that have left the verb");
  }
  ends.barrier();
}

/// A group that counts its meetings.
class counting_group final : public forwarding_transport {
 public:
  using forwarding_transport::forwarding_transport;
  int meetings = 0;
  void all_gather(int rank, const ferry::detail::call_note& note, std::span<const std::byte> mine,
                  std::byte* theirs) override {
    ++meetings;
    inner().all_gather(rank, note, mine, theirs);
  }
  void exchange(int rank, const ferry::detail::call_note& note,
                std::span<const ferry::detail::outgoing_part> targets,
                std::span<const ferry::detail::incoming_part> sources) override {
    ++meetings;
    inner().exchange(rank, note, targets, sources);
  }
};

/// Kernels find the maxima of bags in the shards of other processes, and show the shares: with as few meetings
/// as between threads. A rank with a bad index looks for none.
template <class Space>
void finds_maxima(const exec_space& exec, const group_maker& make_group) {
  const auto group = std::make_shared<counting_group>(make_group({.deadline = std::chrono::seconds(30)}));
  const ferry::communicator comm(group);
  constexpr std::size_t rows = 40, width = 4;
  ferry::sharded_table<float, Space> big("w", comm, rows, width);
  ferry::tensor<float, Space> table("w", rows, width);
  ferry::init::uniform(exec, big, -1, 1, 9);
  ferry::init::uniform(exec, table, -1, 1, 9);
  const ferry::optim::sgd rule{.lr = 0.5};
  auto state = ferry::optim::make_state<device>(rule, big);
  auto plain = ferry::optim::make_state<device>(rule, table);
  std::vector<std::int64_t> ids, all_ids;
  for (int r = 0; r < comm.size(); ++r)
    for (std::int64_t p = 0; p < 12; ++p) {
      all_ids.push_back((p * 11 + r * 5) % static_cast<std::int64_t>(rows));
      if (r == world_rank) ids.push_back(all_ids.back());
    }
  const auto grads = array_of<float, device>(exec, std::vector<float>(3 * width, 0.25F), width);
  const auto all_grads = array_of<float, device>(
      exec, std::vector<float>(3 * width * static_cast<std::size_t>(comm.size()), 0.25F), width);
  const auto step_by = [&](const auto& named) {
    ferry::step_bags(exec, rule, big, state, named, 4, grads, ferry::pooling::max{}).wait();
  };
  const auto near = list_of<device>(exec, ids);
  const auto plan = ferry::make_plan(exec, near, big);
  for (int turn = 0; turn < 4; ++turn) {
    const int before = group->meetings;
    if (turn % 2 == 0)
      step_by(near);
    else
      step_by(plan);
    const int meetings = group->meetings - before;
    if (comm.size() > 1 && turn > 1)  // lanes are open
      expect(meetings == 3, "meetings of a step that finds maxima: " + std::to_string(meetings));
    ferry::step_bags(exec, rule, table, plain, all_ids, 4, all_grads, ferry::pooling::max{}).wait();
    expect(contents(exec, big) == contents(exec, table), "maxima found, turn " + std::to_string(turn));
  }
  auto bad = ids;
  if (world_rank == comm.size() - 1) bad.back() = static_cast<std::int64_t>(rows);
  const auto text = said<ferry::out_of_range>([&] { step_by(list_of<device>(exec, bad)); });
  expect(has(text, "index 40 at position 11"), "a bad index of bags: " + text);
  expect(contents(exec, big) == contents(exec, table) && state.steps() == 4, "bags after a refused batch");
}

/// A limit of this process is lower for a while.
template <auto Resource>
struct lower_limit {
  explicit lower_limit(rlim_t limit) {
    ::getrlimit(Resource, &before);
    const rlimit low{limit, before.rlim_max};
    ::setrlimit(Resource, &low);
  }
  lower_limit(const lower_limit&) = delete;
  lower_limit& operator=(const lower_limit&) = delete;
  ~lower_limit() { ::setrlimit(Resource, &before); }
  rlimit before{};
};
/// No more files: the process can neither make nor open a lane in host memory.
using few_files = lower_limit<RLIMIT_NOFILE>;
/// The number of the first file that this process would open. MPI polls those that it has.
rlim_t files_in_use() {
  const int file = ::dup(STDIN_FILENO);
  if (file >= 0) ::close(file);
  return file < 0 ? 4 : static_cast<rlim_t>(file);
}
/// Small files: the process can't make a lane. A write beyond the limit would end it.
using small_files = lower_limit<RLIMIT_FSIZE>;

enum class lack { none, files, bytes };

/// Scatters in a new group, the second of them while rank 0 lacks files; without positions there, if `reads`,
/// so that it needs no lane of its own. Returns the group.
ferry::communicator scatter_without(const exec_space& exec, const group_maker& make_group, lack lacking,
                                    bool reads) {
  const auto comm = make_group({.deadline = std::chrono::seconds(30)});
  constexpr std::size_t rows = 97, width = 5;
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::tensor<float, device> table("w", rows, width);
  ferry::init::zeros(exec, big);
  ferry::init::zeros(exec, table);
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 3; ++turn) {
    // The first one needs no lanes, the second larger ones than those that a group has at first.
    const std::size_t most = turn == 0 ? 0 : 60000;
    rank_batches<float> batch(random, comm.size(), rows, width, most, true, false);
    while (turn == 1 && std::any_of(batch.ids.begin(), batch.ids.end(),
                                    [](const auto& list) { return list.size() < 1000; }))
      batch = rank_batches<float>(random, comm.size(), rows, width, most, true, false);
    if (turn == 1 && reads) batch.clear(0);
    auto values = array_of<float, device>(exec, batch.own_values(), width);
    const auto near = list_of<device>(exec, batch.own_ids());
    comm.barrier();
    {
      std::optional<few_files> few;
      std::optional<small_files> small;
      if (turn == 1 && world_rank == 0 && lacking == lack::files) few.emplace(files_in_use());
      if (turn == 1 && world_rank == 0 && lacking == lack::bytes) small.emplace(4096);
      ferry::scatter(exec, big, near, values).wait();
    }
    ferry::scatter(exec, table, batch.all_ids, array_of<float, device>(exec, batch.all_values, width)).wait();
    expect(contents(exec, big) == contents(exec, table), "a rank that lacks lanes");
  }
  return comm;
}

/// The lanes of a communicator of processes; null before it has any.
ferry::detail::rank_lanes* lanes_of(const ferry::communicator& comm) {
  return static_cast<ferry::detail::rank_lanes*>(comm.group()->lanes().get());
}

/// A plan whose lists kernels have made, when the lanes cease to serve: on one rank, then on all.
void scatter_after_lanes(const exec_space& exec, const ferry::communicator& comm) {
  constexpr std::size_t rows = 97, width = 5;
  std::mt19937_64 random(41);
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::tensor<float, device> table("w", rows, width);
  ferry::init::zeros(exec, big);
  ferry::init::zeros(exec, table);
  const rank_batches<float> batch(random, comm.size(), rows, width, 300, true, false);
  const auto values = array_of<float, device>(exec, batch.own_values(), width);
  const auto whole_values = array_of<float, device>(exec, batch.all_values, width);
  const auto plan = ferry::make_plan(exec, batch.own_ids(), big);
  for (int turn = 0; turn < 3; ++turn) {
    if (turn == 2 || (turn == 1 && world_rank == 0)) lanes_of(comm)->close("the test closes them");
    ferry::scatter_add(exec, big, plan, values).wait();
    ferry::scatter_add(exec, table, batch.all_ids, whole_values).wait();
    expect(contents(exec, big) == contents(exec, table), "a plan that is older than the end of lanes");
  }
}

void lacks(const exec_space& exec, const group_maker& make_group) {
  const auto served = scatter_without(exec, make_group, lack::none, false);
  const auto* const lanes = lanes_of(served);
  if (served.size() == 1) {
    expect(lanes == nullptr, "a group of one has no lanes");
    return;
  }
  expect(lanes != nullptr && lanes->serve(), "lanes of processes of one machine");
  bool is_open = lanes != nullptr;
  for (int r = 0; is_open && r < served.size(); ++r) is_open = r == world_rank || lanes->data(r) != nullptr;
  expect(is_open, "the lanes of all others are open");
  scatter_after_lanes(exec, served);
  expect(lanes->data(0) == nullptr && lanes->data(1) == nullptr, "memory of lanes that have ended");
  leave_early(exec, make_group);
  if constexpr (ferry::HostExecutionSpace<exec_space>) {
    const auto words = [&](const ferry::communicator& comm) {
      const ferry::sharded_table<float, device> big("w", comm, 10, 2);
      return ferry::explain(exec, big, std::vector<std::int64_t>{1, 2}).to_string();
    };
    std::string text;
    for (const lack lacking : {lack::files, lack::bytes}) {
      text = words(scatter_without(exec, make_group, lacking, false));
      expect(has(text, "writes: kernels of the owners"),
             "lanes after a rank had no memory for its own: " + text);
    }
    text = words(scatter_without(exec, make_group, lack::files, true));
    expect(has(text, "packed messages") && has(text, "rank 0 can't read the memory of the others"),
           "lanes that rank 0 could not open: " + text);
  }
}

}  // namespace

void batches_in_lanes(const ferry::communicator& comm, const group_maker& make_group) {
  const exec_space exec;
  writes(exec, comm);
  bags<device>(exec, comm, ferry::pooling::sum{});
  bags<shared_space>(exec, comm, ferry::pooling::mean{});
  bags<shared_space>(exec, comm, ferry::pooling::max{});
  finds_maxima<shared_space>(exec, make_group);
  bags_of_tables<shared_space>(exec, comm, ferry::sharding::cyclic{});
  bags_of_tables<host>(exec, comm, ferry::sharding::block{});
  bags_of_tables<device>(exec, comm, ferry::sharding::replicated{});
  norms(exec, comm);
  gathers<shared_space>(exec, comm);
  gathers_of_codes<ferry::quantization::mxfp8, shared_space>(exec, comm);
  gathers_of_codes<ferry::quantization::rowwise_int8, shared_space>(exec, comm);
  errors(exec, comm);
  lacks(exec, make_group);
}

void write_until_killed(const ferry::communicator& comm, int killed) {
  const exec_space exec;
  constexpr std::size_t rows = 5000, width = 32, count = 20000;
  ferry::sharded_table<float, device> big("w", comm, rows, width);
  ferry::sharded_table<float, shared_space> read("read", comm, rows, width);
  ferry::init::zeros(exec, big);
  ferry::init::uniform(exec, read, -1, 1, 3);
  const ferry::optim::adam rule{.lr = 0.01};
  auto state = ferry::optim::make_state(rule, big);
  auto state_of_read = ferry::optim::make_state<device>(rule, read);
  std::vector<std::int64_t> ids(count);
  std::mt19937_64 random(static_cast<unsigned>(world_rank));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % rows);
  const auto near = list_of<device>(exec, ids);
  ferry::tensor<float, device> values("values", count, width);
  ferry::init::constant(exec, values, 0.5);
  ferry::tensor<float, device> grads("grads", count / 4, width);
  ferry::init::constant(exec, grads, 0.25);
  const auto write = [&] {
    ferry::scatter(exec, big, near, values).wait();
    ferry::step(exec, rule, big, state, near, values).wait();
    ferry::step_bags(exec, rule, read, state_of_read, near, 4, grads, ferry::pooling::max{}).wait();
  };
  for (int turn = 0; turn < 3; ++turn) write();
  if (world_rank == killed)
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::microseconds(20000 + ::getpid() % 97 * 311));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  const auto text = said<ferry::communication_error>([&] {
    for (;;) write();
  });
  expect(!text.empty(), "a rank killed while it wrote");
}

}  // namespace ferry_test
