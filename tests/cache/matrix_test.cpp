// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "support/test.hpp"

#include <ferry/cache.hpp>

/// Verbs, policies and element types on cached tables. Each path meets each policy of duplicates; bounds take
/// turns. An ordinary table on path::automatic is the oracle.
namespace ferry_test::matrix_test {

namespace bounds = ferry::bounds;
namespace duplicates = ferry::duplicates;
namespace path = ferry::path;
using kernel_paths = std::tuple<path::automatic, path::direct, path::ordered>;
using all_bounds = std::tuple<bounds::check, bounds::skip, bounds::clamp, bounds::unchecked>;

/// Calls visit(policy, number) with the number as a constant.
template <class Policies, class Visit>
void for_each_policy(const Visit& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(std::tuple_element_t<I, Policies>{}, std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Policies>>{});
}
template <class Policies, std::size_t Number>
using policy_in_turn = std::tuple_element_t<Number % std::tuple_size_v<Policies>, Policies>;

/// An ordinary table and a cached one, of which some cached rows are newer than the table.
template <class T, class Space = ferry::mapped_space>
struct twins {
  using value = T;
  static constexpr std::size_t rows = 90, width = 6, n = 70;

  exec_space exec;
  std::mt19937_64 random;
  ferry::tensor<T, Space> backing, plain;
  ferry::cached_table<ferry::tensor<T, Space>, ferry::cache::frequency> hot;
  ferry::tensor<float, ferry::device_space> batch;
  std::vector<std::int32_t> repeated, different, faulty;

  explicit twins(std::uint64_t salt)
      : random(generator(salt)),
        backing("table", rows, width),
        plain("twin", rows, width),
        hot(backing, ferry::cache::frequency{.rows = 64, .refresh = 2}),
        batch("batch", n, width),
        repeated(skewed<std::int32_t>(random, n, rows, 5, 12)),
        different(unique_indices<std::int32_t>(random, n, rows)),
        faulty(repeated) {
    faulty[3] = -1;
    faulty[40] = rows + 2;
    const auto start = values<T>(random, rows * width);
    put(backing, start);
    put(plain, start);
    fill();
    both([&](auto& table) { ferry::scatter(exec, table, repeated, batch).wait(); });
    both([&](auto& table) { ferry::scatter_add(exec, table, different, batch).wait(); });
  }
  void fill() {
    const auto numbers = values<float>(random, n * width);
    ferry::copy(exec, make<ferry::device_space>("values", n, width, numbers), batch).wait();
  }
  /// Indices that the policies allow.
  template <class Bounds, class Duplicates>
  const std::vector<std::int32_t>& indices() const {
    if constexpr (std::is_same_v<Duplicates, duplicates::assume_unique> ||
                  std::is_same_v<Duplicates, duplicates::reject>)
      return different;
    else if constexpr (std::is_same_v<Bounds, bounds::skip> || std::is_same_v<Bounds, bounds::clamp>)
      return faulty;
    else
      return repeated;
  }
  template <class Verb>
  void both(const Verb& verb) {
    verb(hot);
    verb(plain);
  }
  void agree(const std::string& combination) {
    CAPTURE(combination);
    hot.flush(exec).wait();
    CHECK(same_bits(take(backing), take(plain)));
  }
};

template <class... Policies>
std::string names_of() {
  std::string names;
  ((names += std::string(Policies::name) + " "), ...);
  return names;
}

/// write(table, indices, policies...) on the cached table by each path, on the ordinary one by none.
template <class Duplicates, class Tables, class Write>
void written_alike(Tables& tables, const std::string& verb, const Write& write) {
  for_each_policy<kernel_paths>([&](auto path_policy, auto turn) {
    using path_type = decltype(path_policy);
    using bounds_type = policy_in_turn<all_bounds, decltype(turn)::value>;
    tables.fill();
    const auto& indices = tables.template indices<bounds_type, Duplicates>();
    write(tables.hot, indices, path_policy, bounds_type{}, Duplicates{});
    write(tables.plain, indices, bounds_type{}, Duplicates{});
    tables.agree(verb + " " + names_of<path_type, bounds_type, Duplicates>());
    tables.fill();
    const auto plan = ferry::make_plan(tables.exec, tables.template indices<bounds::skip, Duplicates>(),
                                       tables.rows, bounds::skip{});
    write(tables.hot, plan, path_policy, Duplicates{});
    write(tables.plain, plan, Duplicates{});
    tables.agree(verb + " by a plan " + names_of<path_type, Duplicates>());
  });
}

template <class Tables, class... Duplicates>
void scatters(std::uint64_t salt) {
  Tables tables(salt);
  const auto scatter = [&](auto& table, const auto& indices, auto... policies) {
    ferry::scatter(tables.exec, table, indices, tables.batch, policies...).wait();
  };
  (written_alike<Duplicates>(tables, "scatter", scatter), ...);
}
template <class Tables, class... Duplicates>
void sums(std::uint64_t salt) {
  Tables tables(salt);
  const auto add = [&](auto& table, const auto& indices, auto... policies) {
    ferry::scatter_add(tables.exec, table, indices, tables.batch, policies...).wait();
  };
  (written_alike<Duplicates>(tables, "scatter_add", add), ...);
}

/// Steps on both tables with policies; the path is that of the cached table alone.
template <class Duplicates, class Path, class Tables, class Rule, class... Policies>
void steps_alike(Tables& tables, const Rule& rule, Policies... policies) {
  using count = typename ferry::detail::chosen_policies<Policies...>::template get<ferry::step_count_category,
                                                                                   ferry::step_count::global>;
  auto state = ferry::optim::make_state(rule, tables.plain, count{});
  auto second = ferry::optim::make_state(rule, tables.plain, count{});
  const auto& indices = tables.template indices<bounds::skip, Duplicates>();
  const auto plan = ferry::make_plan(tables.exec, indices, tables.rows, bounds::skip{});
  for (int turn = 0; turn < 2; ++turn) {
    tables.fill();
    ferry::step(tables.exec, rule, tables.hot, state, indices, tables.batch, Path{}, bounds::skip{},
                Duplicates{}, policies...)
        .wait();
    ferry::step(tables.exec, rule, tables.plain, second, indices, tables.batch, bounds::skip{}, Duplicates{},
                policies...)
        .wait();
    ferry::step(tables.exec, rule, tables.hot, state, plan, tables.batch, Path{}, Duplicates{}, policies...)
        .wait();
    ferry::step(tables.exec, rule, tables.plain, second, plan, tables.batch, Duplicates{}, policies...)
        .wait();
  }
  if constexpr (std::is_same_v<count, ferry::step_count::catch_up>) {
    ferry::catch_up(tables.exec, rule, tables.hot, state).wait();
    ferry::catch_up(tables.exec, rule, tables.plain, second).wait();
  }
  tables.agree("step " + names_of<Path, Duplicates, Policies...>());
  tables.both(
      [&](auto& table) { ferry::scatter(tables.exec, table, tables.different, tables.batch).wait(); });
}

/// gather(table, batch, path...) must leave equal batches; the path is that of the cached table alone.
template <class Out, class Tables, class Gather, class... Path>
void read_alike(Tables& tables, const Gather& gather, Path... path_policy) {
  CAPTURE(names_of<Path...>());
  const auto start = values<Out>(tables.random, tables.n * tables.width);
  auto batch = make<ferry::device_space>("out", tables.n, tables.width, start);
  auto second = make<ferry::device_space>("other", tables.n, tables.width, start);
  gather(tables.hot, batch, path_policy...);
  gather(tables.plain, second);
  CHECK(same_bits(take(batch), take(second)));
}

template <class Tables, class Out>
void gathers(std::uint64_t salt) {
  Tables tables(salt);
  for_each_policy<all_bounds>([&](auto bounds_policy, auto turn) {
    using bounds_type = decltype(bounds_policy);
    const auto& indices = tables.template indices<bounds_type, duplicates::last>();
    const auto plan = ferry::make_plan(tables.exec, indices, tables.rows, bounds_policy);
    const auto gather = [&](const auto& table, auto& out, auto... path_policy) {
      ferry::gather(tables.exec, table, indices, out, path_policy..., bounds_policy).wait();
    };
    const auto gather_planned = [&](const auto& table, auto& out, auto... path_policy) {
      ferry::gather(tables.exec, table, plan, out, path_policy...).wait();
    };
    // Two paths for each kind of bounds, so that every path meets two of them.
    using gather_paths = std::tuple<path::automatic, path::direct, path::ordered, path::staged>;
    using path_type = policy_in_turn<gather_paths, decltype(turn)::value>;
    using next_path = policy_in_turn<gather_paths, decltype(turn)::value + 1>;
    read_alike<Out>(tables, gather, path_type{});
    read_alike<Out>(tables, gather, next_path{});
    read_alike<Out>(tables, gather_planned, path_type{});
    read_alike<Out>(tables, [&](const auto& table, auto& out) {
      ferry::gather_unique(tables.exec, table, indices, out, bounds_policy).wait();
    });
    read_alike<Out>(tables, [&](const auto& table, auto& out) {
      ferry::gather_unique(tables.exec, table, plan, out).wait();
    });
  });
  const auto uses = tables.hot.statistics();
  CHECK(uses.hits > 0);
  CHECK(uses.misses > 0);
}

TEST_CASE("reads of cached tables with every path and policy", "[cache][matrix]") {
  gathers<twins<float>, float>(61000);
  gathers<twins<ferry::half_t, ferry::pinned_space>, double>(61010);
  if (direct_runs<ferry::pageable_space>())
    gathers<twins<std::int32_t, ferry::pageable_space>, std::int64_t>(61020);
}

TEST_CASE("scatters into cached tables with every path and policy", "[cache][matrix]") {
  scatters<twins<float>, duplicates::last, duplicates::first, duplicates::mean, duplicates::sum,
           duplicates::assume_unique, duplicates::reject>(62000);
  scatters<twins<ferry::bhalf_t, ferry::pinned_space>, duplicates::last, duplicates::sum>(62010);
  if (direct_runs<ferry::pageable_space>())
    scatters<twins<double, ferry::pageable_space>, duplicates::first, duplicates::assume_unique>(62020);
}

TEST_CASE("sums into cached tables with every path and policy", "[cache][matrix]") {
  sums<twins<float>, duplicates::sum, duplicates::mean, duplicates::assume_unique, duplicates::reject>(63000);
  sums<twins<ferry::half_t, ferry::pinned_space>, duplicates::sum>(63010);
  if (direct_runs<ferry::pageable_space>())
    sums<twins<double, ferry::pageable_space>, duplicates::sum>(63020);
}

TEST_CASE("steps on cached tables with every path and policy", "[cache][matrix]") {
  const ferry::optim::adam adam;
  const ferry::optim::sgd sgd{.lr = 0.1, .momentum = 0.9};
  twins<float> floats(64000);
  steps_alike<duplicates::sum, path::automatic>(floats, adam, ferry::step_count::per_row{});
  steps_alike<duplicates::mean, path::ordered>(floats, adam, ferry::step_count::catch_up{});
  steps_alike<duplicates::assume_unique, path::ordered>(floats, sgd, ferry::nonfinite::skip{});
  steps_alike<duplicates::reject, path::direct>(floats, sgd, ferry::nonfinite::reject{});
  twins<ferry::bhalf_t, ferry::pinned_space> halves(64010);
  steps_alike<duplicates::sum, path::ordered>(halves, adam, ferry::rounding::stochastic{});
  steps_alike<duplicates::assume_unique, path::direct>(halves, adam, ferry::step_count::per_row{});
  if (!direct_runs<ferry::pageable_space>()) return;
  twins<double, ferry::pageable_space> doubles(64020);
  steps_alike<duplicates::sum, path::ordered>(doubles, adam, ferry::nonfinite::reject{});
}

TEST_CASE("repeated rows that are rejected leave cached tables unchanged", "[cache][matrix]") {
  twins<float> tables(65000);
  const auto refuse = [&](auto& table, auto path_policy) {
    CHECK_THROWS_AS(
        ferry::scatter(tables.exec, table, tables.repeated, tables.batch, path_policy, duplicates::reject{})
            .wait(),
        ferry::invalid_argument);
    CHECK_THROWS_AS(ferry::scatter_add(tables.exec, table, tables.repeated, tables.batch, path_policy,
                                       duplicates::reject{})
                        .wait(),
                    ferry::invalid_argument);
  };
  refuse(tables.hot, path::direct{});
  refuse(tables.hot, path::ordered{});
  tables.agree("after rejected batches");
}

}  // namespace ferry_test::matrix_test
