#include <ferry/ferry.hpp>

#include "support/arrays.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

using ferry::route;
using ferry::verb;
using ferry::detail::candidate_routes;
using ferry::detail::route_set;

TEST_CASE("a set of routes", "[route]") {
  constexpr route_set none;
  static_assert(none.empty() && none.size() == 0 && !none.contains(route::direct));
  constexpr route_set two{route::direct, route::staged};
  static_assert(two.size() == 2 && two.contains(route::staged) && !two.contains(route::ordered));
  static_assert(two.with(route::ordered).size() == 3 && two.with(route::direct) == two);
  static_assert(two.without(route::direct) == route_set{route::staged} &&
                two.without(route::cooperative) == two);
  CHECK(name(route::cooperative) == ferry::path::cooperative::name);
  CHECK(name(route::ordered) == ferry::path::ordered::name);
  CHECK(name(route::staged) == ferry::path::staged::name);
  CHECK(name(route::direct) == ferry::path::direct::name);
  CHECK(name(verb::scatter_add) == "scatter_add");
}

TEMPLATE_TEST_CASE("candidates by space", "[route]", ferry::device_space, ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  using exec = ferry_test::exec_space;
  const std::vector<verb> verbs{verb::gather, verb::scatter, verb::scatter_add, verb::step, verb::copy};
  for (const verb what : verbs) {
    CAPTURE(name(what));
    const route_set to_device = candidate_routes<exec, TestType, ferry::device_space>(what);
    const route_set to_pageable = candidate_routes<exec, TestType, ferry::pageable_space>(what);
    if constexpr (ferry::HostExecutionSpace<exec>) {
      CHECK(to_device == route_set{route::direct});
      CHECK(to_pageable == route_set{route::direct});
    } else {
      constexpr bool pinned = std::is_same_v<TestType, ferry::pinned_space>;
      constexpr bool pageable = std::is_same_v<TestType, ferry::pageable_space>;
      const bool moves = what == verb::gather || what == verb::scatter;
      const bool by_rows = what != verb::copy;
      CHECK(to_pageable == route_set{route::staged});
      CHECK(to_device.contains(route::direct) == !pageable);
      CHECK(to_device.contains(route::staged) == (pageable || (pinned && by_rows)));
      constexpr bool mapped = std::is_same_v<TestType, ferry::mapped_space>;
      CHECK(to_device.contains(route::cooperative) ==
            ((pinned && moves) || (mapped && what == verb::gather)));
    }
  }
  CHECK(candidate_routes<Kokkos::DefaultHostExecutionSpace, TestType, ferry::pageable_space>(verb::gather) ==
        route_set{route::direct});
}

TEST_CASE("the facts of a call", "[route]") {
  const ferry::tensor<double, ferry::mapped_space> table("table", 1000, 3, 5);
  const auto facts = ferry::detail::facts_of<Kokkos::DefaultHostExecutionSpace, ferry::pinned_space>(
      verb::step, make_ref(table), 17, true);
  CHECK(facts.what == verb::step);
  CHECK(facts.table_space == "mapped_space");
  CHECK(facts.batch_space == "pinned_space");
  CHECK(facts.table_bytes == 1000 * 15 * 8);
  CHECK(facts.row_bytes == 15 * 8);
  CHECK(facts.positions == 17);
  CHECK(facts.planned);
  CHECK(facts.on_host);
}
