// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::path_kind_test {

using ferry::path_kind;
using ferry::verb;
using ferry::detail::candidate_paths;
using ferry::detail::path_set;

TEST_CASE("a set of routes", "[path_kind]") {
  constexpr path_set none;
  static_assert(none.empty() && none.size() == 0 && !none.contains(path_kind::direct));
  constexpr path_set two{path_kind::direct, path_kind::staged};
  static_assert(two.size() == 2 && two.contains(path_kind::staged) && !two.contains(path_kind::ordered));
  static_assert(two.including(path_kind::ordered).size() == 3 && two.including(path_kind::direct) == two);
  static_assert(two.without(path_kind::direct) == path_set{path_kind::staged} &&
                two.without(path_kind::cooperative) == two);
  CHECK(name(path_kind::cooperative) == ferry::path::cooperative::name);
  CHECK(name(path_kind::ordered) == ferry::path::ordered::name);
  CHECK(name(path_kind::staged) == ferry::path::staged::name);
  CHECK(name(path_kind::direct) == ferry::path::direct::name);
  CHECK(name(verb::scatter_add) == "scatter_add");
}

TEMPLATE_TEST_CASE("candidates by space", "[path_kind]", ferry::device_space, ferry::pinned_space,
                   ferry::mapped_space, ferry::pageable_space) {
  using exec = ferry_test::exec_space;
  const std::vector<verb> verbs{verb::gather, verb::scatter, verb::scatter_add, verb::step, verb::copy};
  for (const verb action : verbs) {
    CAPTURE(name(action));
    const path_set to_device = candidate_paths<exec, TestType, ferry::device_space>(action);
    const path_set to_pageable = candidate_paths<exec, TestType, ferry::pageable_space>(action);
    if constexpr (ferry::HostExecutionSpace<exec>) {
      CHECK(to_device == path_set{path_kind::direct});
      CHECK(to_pageable == path_set{path_kind::direct});
    } else {
      constexpr bool pinned = std::is_same_v<TestType, ferry::pinned_space>;
      constexpr bool pageable = std::is_same_v<TestType, ferry::pageable_space>;
      const bool moves = action == verb::gather || action == verb::scatter;
      const bool by_rows = action != verb::copy;
      CHECK(to_pageable == path_set{path_kind::staged});
      CHECK(to_device.contains(path_kind::direct) == !pageable);
      CHECK(to_device.contains(path_kind::staged) == (pageable || (pinned && by_rows)));
      constexpr bool mapped = std::is_same_v<TestType, ferry::mapped_space>;
      CHECK(to_device.contains(path_kind::ordered) ==
            (((pinned || mapped) && by_rows) || (!pageable && action == verb::gather)));
      CHECK(to_device.contains(path_kind::cooperative) ==
            ((pinned && moves) || (mapped && action == verb::gather)));
    }
  }
  CHECK(candidate_paths<Kokkos::DefaultHostExecutionSpace, TestType, ferry::pageable_space>(verb::gather) ==
        path_set{path_kind::direct});
}

TEST_CASE("the facts of a call", "[path_kind]") {
  const ferry::tensor<double, ferry::mapped_space> table("table", 1000, 3, 5);
  const auto facts = ferry::detail::facts_of<Kokkos::DefaultHostExecutionSpace, ferry::pinned_space>(
      verb::step, make_ref(table), 17, true);
  CHECK(facts.action == verb::step);
  CHECK(facts.table_space == "mapped_space");
  CHECK(facts.batch_space == "pinned_space");
  CHECK(facts.table_bytes == 1000 * 15 * 8);
  CHECK(facts.row_bytes == 15 * 8);
  CHECK(facts.positions == 17);
  CHECK(facts.planned);
  CHECK(facts.on_host);
}

}  // namespace ferry_test::path_kind_test
