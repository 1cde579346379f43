// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/kit.hpp"
#include "support/sum_in_pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Verbs on sharded tables, by ranks that are threads, have devices or are processes: each case in turns of all
/// ways to name rows, against the ordinary verb on the batches one after the other.
namespace ferry_test {

/// A sharding of one's own, for the host alone: rank 0 has no rows, the others have theirs in cyclic order from
/// the last row to the first.
struct backward {
  static constexpr std::string_view name = "backward";
  static constexpr bool replicates = false;
  void check(int) const {}
  [[nodiscard]] int owner(std::int64_t row, std::int64_t rows, int ranks) const {
    return ranks == 1 ? 0 : 1 + static_cast<int>((rows - 1 - row) % (ranks - 1));
  }
  [[nodiscard]] std::int64_t local_row(std::int64_t row, std::int64_t rows, int ranks) const {
    return (rows - 1 - row) / others(ranks);
  }
  [[nodiscard]] std::int64_t rows_of(int rank, std::int64_t rows, int ranks) const {
    if (ranks == 1) return rows;
    return rank == 0 ? 0 : (rows + others(ranks) - rank) / others(ranks);
  }
  [[nodiscard]] ferry::kernels::global_rows global_rows(int rank, std::int64_t rows, int ranks) const {
    return {rows - 1 - (ranks == 1 ? 0 : rank - 1), -others(ranks), {}};
  }

 private:
  static std::int64_t others(int ranks) { return ranks == 1 ? 1 : ranks - 1; }
};
static_assert(ferry::Sharding<backward>);

/// A sharding of this type for a table; drawn where the type leaves a choice.
template <class Spread>
Spread draw_sharding(std::mt19937_64& random, std::size_t rows, int ranks) {
  if constexpr (std::is_same_v<Spread, ferry::sharding::dealt>) {
    std::vector<int> owners(rows);
    for (int& owner : owners) owner = static_cast<int>(random() % static_cast<std::uint64_t>(ranks));
    return Spread(owners);
  } else if constexpr (std::is_same_v<Spread, any_sharding>) {
    return {static_cast<any_sharding::kind>(random() % 4),
            static_cast<int>(random() % static_cast<std::uint64_t>(ranks))};
  } else {
    return {};
  }
}

/// As path::peer asks.
template <class Spread>
constexpr bool kernels_find_owners = Spread::replicates || requires {
  requires Spread::in_kernels;
};

/// The bounds policy of a verb.
template <class... Policies>
struct bounds_among {
  using type = ferry::bounds::check;
};
template <class First, class... More>
struct bounds_among<First, More...> {
  static constexpr bool is_bounds =
      std::is_same_v<First, ferry::bounds::skip> || std::is_same_v<First, ferry::bounds::clamp>;
  using type = std::conditional_t<is_bounds, First, typename bounds_among<More...>::type>;
};

/// Verbs with policies. state(table) is what a verb needs besides its table.
/// @{
template <class... Policies>
struct scattering {
  using bounds = typename bounds_among<Policies...>::type;
  static int state(auto&) { return 0; }
  void operator()(const auto& exec, auto& table, int, const auto& named, const auto& values, auto...) const {
    ferry::scatter(exec, table, named, values, Policies{}...).wait();
  }
};
template <class... Policies>
struct adding {
  using bounds = typename bounds_among<Policies...>::type;
  static int state(auto&) { return 0; }
  void operator()(const auto& exec, auto& table, int, const auto& named, const auto& values,
                  auto... more) const {
    ferry::scatter_add(exec, table, named, values, Policies{}..., more...).wait();
  }
};
/// A step with the rule of rule_of(rows).
template <class RuleOf, class... Policies>
struct stepping {
  using bounds = typename bounds_among<Policies...>::type;
  RuleOf rule_of;
  auto state(auto& table) const {
    auto rule = rule_of(table.rows());
    auto moments = ferry::optim::make_state(rule, table);
    moments.set_seed(99);
    return std::pair(rule, std::move(moments));
  }
  void operator()(const auto& exec, auto& table, auto& trained, const auto& named, const auto& values,
                  auto... more) const {
    ferry::step(exec, trained.first, table, trained.second, named, values, Policies{}..., more...).wait();
  }
};
template <class... Policies, class RuleOf>
stepping<RuleOf, Policies...> step_with(const RuleOf& rule_of) {
  return {rule_of};
}
template <class... Policies>
auto step_by_adam() {
  return step_with<Policies...>([](std::size_t) { return ferry::optim::adam{.lr = 0.01}; });
}
/// @}

/// The sums that ranks send under reduce::by_rank, by plain loops: for each rank its different rows, and the sum
/// of each in the documented order, in the accumulation type.
template <class V, class Index>
auto sums_of_ranks(const batches<V, Index>& batch, std::size_t columns) {
  using sum_type = ferry::accumulation_t<V>;
  std::pair<std::vector<Index>, std::vector<sum_type>> sums;
  for (std::size_t r = 0; r < batch.rows_of.size(); ++r) {
    std::map<Index, std::vector<std::size_t>> positions;
    for (std::size_t p = 0; p < batch.rows_of[r].size(); ++p) positions[batch.rows_of[r][p]].push_back(p);
    for (const auto& [row, places] : positions) {
      sums.first.push_back(row);
      for (std::size_t j = 0; j < columns; ++j) {
        std::vector<sum_type> column;
        for (const std::size_t p : places)
          column.push_back(static_cast<sum_type>(batch.parts[r].data()[p * columns + j]));
        sums.second.push_back(sum_in_pieces(column));
      }
    }
  }
  return sums;
}

/// True if a state of a sharded table is that of an ordinary one; of an int, none.
inline bool same_state(const exec_space&, int, int, const auto&) { return true; }
template <class Rule, class State, class Plain>
bool same_state(const exec_space& exec, const std::pair<Rule, State>& trained,
                const std::pair<Rule, Plain>& expected, const auto& table) {
  const auto& [state, plain] = std::pair<const State&, const Plain&>(trained.second, expected.second);
  bool same = state.steps() == plain.steps() && state.skipped() == plain.skipped();
  if constexpr (std::remove_cvref_t<decltype(plain.field(0))>::memory_space::is_host_accessible) {
    exec.fence("read");
    const int acting = table.comm().acting_rank(), ranks = table.comm().size();
    for (int r = acting < 0 ? 0 : acting; r < (acting < 0 ? ranks : acting + 1); ++r) {
      const auto& shard = state.shard(r);
      const std::size_t columns = table.width();
      for (std::int64_t i = 0; i < table.rows_of(r); ++i) {
        const auto row = static_cast<std::size_t>(table.global_row(r, i));
        for (int f = 0; f < plain.fields(); ++f)
          same = same && same_bits(shard.field(f).data() + static_cast<std::size_t>(i) * columns,
                                   plain.field(f).data() + row * columns, columns);
        for (int f = 0; f < State::shard_type::row_fields; ++f)
          same = same && same_bits(shard.row_field_at(f).data() + i, plain.row_field_at(f).data() + row, 1);
        if (plain.row_steps().size() != 0)
          same = same && shard.row_steps().data()[i] == plain.row_steps().data()[row];
      }
    }
  }
  return same;
}

struct batch_kind {
  bool repeats = true;         ///< several positions name a row
  std::size_t scale = 1;       ///< of tables and batches
  bool whole_numbers = false;  ///< sums of small ones have the same bits in any order
};

/// The types of shardings that a case compiles.
template <class... Spreads>
struct shardings {};
using one_sharding = shardings<any_sharding>;
using some_shardings = shardings<any_sharding, ferry::sharding::replicated>;
using all_shardings = shardings<any_sharding, backward, ferry::sharding::replicated, ferry::sharding::dealt>;

/// Groups that a suite of cases runs on, and what it draws from.
struct route_suite {
  std::vector<ferry::communicator> groups;
  std::mt19937_64 random;
  int cases = 0;

  /// Calls test(comm, rows, sharding, words) for each group and each type of sharding: for any_sharding alone with
  /// one of its kinds in turn, else with all of them.
  template <class... Spreads, class Test>
  void for_groups(shardings<Spreads...>, const std::string& label, std::size_t most_rows, const Test& test) {
    int turn = ++cases;
    for (const auto& comm : groups) {
      const int ranks = comm.size();
      ++turn;
      const auto draw = [&]<class Spread>(const Spread& spread, std::size_t rows) {
        test(comm, rows, spread,
             label + ", " + std::string(Spread::name) + ", " + std::to_string(ranks) + " ranks, device " +
                 std::to_string(comm.device(ranks - 1).id) + ", " + std::to_string(rows) + " rows");
      };
      const auto draw_all = [&]<class Spread>(std::type_identity<Spread>) {
        if constexpr (std::is_same_v<Spread, any_sharding>) {
          for (int kind = 0; kind < 4; ++kind)
            if (sizeof...(Spreads) > 1 || kind == turn % 4)
              draw(any_sharding{static_cast<any_sharding::kind>(kind), ranks - 1}, 1 + random() % most_rows);
        } else {
          const std::size_t rows = 1 + random() % most_rows;
          draw(draw_sharding<Spread>(random, rows, ranks), rows);
        }
      };
      (draw_all(std::type_identity<Spreads>{}), ...);
    }
  }
};

/// A verb that writes, on a sharded table by all ranks and by one thread for them, and on an ordinary table.
template <class T, class V = T, class Index = std::int64_t, class Space = host,
          class Shardings = one_sharding, bool ByRank = false, class Verb>
void compare_writes(route_suite& suite, const std::string& label, const Verb& verb, batch_kind kind = {}) {
  using bounds = typename Verb::bounds;
  const exec_space first;
  auto& random = suite.random;
  const auto compare = [&](const auto& comm, std::size_t rows, auto spread, const std::string& words) {
    static constexpr std::size_t widths[] = {1, 6, 7, 36};
    const std::size_t columns = kind.scale > 1 ? 6 : widths[random() % 4];
    const bool has_all_ranks = comm.acting_rank() < 0;
    ferry::tensor<T, Space> table("w", rows, columns);
    ferry::sharded_table<T, Space, decltype(spread)> big("w", comm, rows, columns, spread);
    if (kind.whole_numbers) {
      ferry::init::constant(first, table, 1);
      ferry::init::constant(first, big, 1);
    } else {
      ferry::init::uniform(first, table, -100, 100, 5);
      ferry::init::uniform(first, big, -100, 100, 5);
    }
    auto plain_state = verb.state(table);
    auto state = verb.state(big);
    const auto by_ranks = [&](const auto& exec, const auto& named, const auto& values) {
      if constexpr (ByRank)
        verb(exec, big, state, named, values, ferry::reduce::by_rank{});
      else
        verb(exec, big, state, named, values);
    };
    for (int turn = 0; turn < (kind.scale > 1 ? 3 : 6); ++turn) {
      if (turn == 5 && !has_all_ranks) continue;
      batches<V, Index> batch(random, turn == 5 ? 1 : comm.size(), rows,
                              kind.scale * (turn == 1 ? 700U : 40U), kind.repeats, columns);
      if (!kind.whole_numbers) batch.make_uneven();
      if (!std::is_same_v<bounds, ferry::bounds::check>) batch.spoil(random);
      const auto write_plain = [&] {
        if constexpr (ByRank) {
          const auto sums = sums_of_ranks(batch, columns);
          verb(first, table, plain_state, sums.first, tensor_of(sums.second, columns));
        } else {
          verb(first, table, plain_state, batch.rows, batch.whole);
        }
      };
      write_plain();
      if (turn == 3 || turn == 5) write_plain();
      if (turn == 5) {  // one thread for the group
        by_ranks(first, batch.rows, batch.whole);
        by_ranks(first, ferry::make_plan(first, batch.rows, rows, bounds{}), batch.whole);
      } else {
        run_ranks(comm, [&](int rank, const auto& exec) {
          const auto& mine = batch.indices_of(rank);
          const auto target = comm.device(rank);
          const auto named = on_device(exec, target, mine);
          ferry::tensor<V, device> values("values", target, mine.size(), columns);
          ferry::copy(exec, batch.values_of(rank), values).wait();
          if (turn == 0) {
            by_ranks(exec, mine, batch.values_of(rank));
          } else if (turn == 1) {
            by_ranks(exec, named, values);
          } else if (turn == 2) {
            by_ranks(exec, ferry::make_plan(exec, named, rows, bounds{}), values);
          } else if (turn == 3) {
            const auto plan = ferry::make_plan(exec, named, big, bounds{});
            by_ranks(exec, plan, values);
            by_ranks(exec, plan, values);
          } else if (rank % 2 == 0) {
            by_ranks(exec, named, batch.values_of(rank));
          } else {
            by_ranks(exec, mine, values);
          }
          // Memory of this rank that the others read was given back: it may be overwritten.
          ferry::init::constant(exec, values, 77);
        });
      }
      const auto result = contents(first, big), expected = contents(first, table);
      expect(same_bits(result.data(), expected.data(), expected.size()) &&
                 same_state(first, state, plain_state, big),
             words + ", turn " + std::to_string(turn));
    }
  };
  suite.for_groups(Shardings{}, label, 150 * kind.scale, compare);
}

/// gather by all ranks, by one thread for them, and by each rank alone where kernels reach all shards.
template <class T, class Out = T, class Index = std::int64_t, class Space = host,
          class Bounds = ferry::bounds::check, class Shardings = all_shardings>
void compare_gathers(route_suite& suite, const std::string& label) {
  const exec_space first;
  auto& random = suite.random;
  constexpr Bounds bounds{};
  constexpr bool strict = std::is_same_v<Bounds, ferry::bounds::check>;
  const auto compare = [&](const auto& comm, std::size_t rows, auto spread, const std::string& words) {
    static constexpr std::size_t widths[] = {1, 3, 6, 32, 37};
    const std::size_t columns = widths[random() % 5];
    const bool has_all_ranks = comm.acting_rank() < 0;
    ferry::tensor<T, Space> table("w", rows, columns);
    ferry::sharded_table<T, Space, decltype(spread)> big("w", comm, rows, columns, spread);
    ferry::init::normal(first, table, 0, 3, 77);
    ferry::init::normal(first, big, 0, 3, 77);
    batches<T, Index> batch(random, comm.size(), rows, 200, true, columns);
    if (!strict) batch.spoil(random);
    ferry::tensor<Out, host> whole("expected", batch.rows.size(), columns);
    ferry::init::constant(first, whole, -7);
    ferry::gather(first, table, batch.rows, whole, bounds).wait();
    const auto bad_rank = static_cast<int>(random() % static_cast<unsigned>(comm.size()));
    const auto check_on = [&](const exec_space& exec, ferry::device target, std::size_t begin,
                              std::size_t count, auto space) {
      return [&exec, &big, &whole, &words, target, begin, count, columns, space](
                 const char* way, const auto& named, auto... policies) {
        ferry::tensor<Out, decltype(space)> out("out", target, count, columns);
        ferry::init::constant(exec, out, -7);
        ferry::gather(exec, big, named, out, policies..., Bounds{}).wait();
        expect(same_bits(contents(exec, out).data(), whole.data() + begin * columns, out.size()),
               words + ", " + way);
      };
    };
    constexpr ferry::path::exchange exchange{};
    run_ranks(comm, [&](int rank, const auto& exec) {
      const auto& mine = batch.indices_of(rank);
      const auto target = comm.device(rank);
      const auto named = on_device(exec, target, mine);
      const auto check = check_on(exec, target, batch.at(rank), mine.size(), device{});
      check("indices of a device", named);
      check_on(exec, target, batch.at(rank), mine.size(), host{})("indices", mine);
      check("exchange", named, exchange);
      if (rank % 2 == 0)
        check("exchange of some ranks", named, exchange);
      else
        check("exchange of some ranks", named);
      check("row_plan", ferry::make_plan(exec, named, rows, bounds));
      const auto plan = ferry::make_plan(exec, mine, big, bounds);
      expect(plan.positions() == static_cast<std::int64_t>(mine.size()), words + ", positions");
      check("sharded_plan", plan);
      for (int turn = 0; turn < 2; ++turn) check("sharded_plan, exchange", plan, exchange);
      if constexpr (kernels_find_owners<std::remove_cvref_t<decltype(spread)>>)
        if (has_all_ranks || ferry::detail::shares_memory<Space>()) {
          check("peer", named, ferry::path::peer{});
          check("peer, row_plan", ferry::make_plan(exec, named, rows, bounds), ferry::path::peer{});
        }
      if constexpr (strict) {
        // A bad index throws on its own rank alone; the rows of good positions come.
        auto some = mine;
        some.push_back(rank == bad_rank ? static_cast<Index>(rows) : Index{0});
        ferry::tensor<Out, device> more("more", target, some.size(), columns);
        const auto text = said<ferry::out_of_range>(
            [&] { ferry::gather(exec, big, on_device(exec, target, some), more).wait(); });
        expect(text.empty() == (rank != bad_rank), words + ", the rank of a bad index");
        expect(same_bits(contents(exec, more).data(), whole.data() + batch.at(rank) * columns,
                         mine.size() * columns),
               words + ", good positions");
      }
    });
    if (!has_all_ranks) return;
    const auto check = check_on(first, {}, 0, batch.rows.size(), host{});
    check("one thread", batch.rows);
    check("one thread, exchange", batch.rows, exchange);
    check("one thread, row_plan", ferry::make_plan(first, batch.rows, rows, bounds));
    if constexpr (kernels_find_owners<std::remove_cvref_t<decltype(spread)>>)
      check("one thread, peer", batch.rows, ferry::path::peer{});
  };
  suite.for_groups(Shardings{}, label, 150, compare);
}

}  // namespace ferry_test
