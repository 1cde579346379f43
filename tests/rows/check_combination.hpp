// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/random.hpp"

#include <catch2/catch_test_macros.hpp>

#include <type_traits>

namespace ferry_test {

/// Which of the two verbs takes path::direct; the other one takes path::staged.
enum class goes_direct { scatter, scatter_add };
template <goes_direct... Verbs>
inline constexpr auto in_turn = axis<std::integral_constant<goes_direct, Verbs>...>;

/// scatter and scatter_add under a policy that combines. One row is named by a third of the batch, so that
/// long segments are combined too.
template <class T, class policy, goes_direct Verb>
void check_combination() {
  auto random = generator(21);
  const std::size_t rows = 53, n = 300;
  const exec_space exec;
  for (const std::size_t width : {1u, 4u, 7u, 64u, 68u}) {
    const auto content = values<T>(random, rows * width);
    const auto batch = values<T>(random, n * width);
    auto ids = indices<std::int32_t>(random, n, rows);
    for (std::size_t p = 0; p < n; p += 3) ids[p] = 17;
    const auto replaced_by = scattered(content, width, ids, batch, false, policy::name);
    const auto added_by = scattered(content, width, ids, batch, true, policy::name);
    const auto values_here = make<ferry::device_space>("values", n, width, batch);
    const auto replace = [&](auto space, auto path) {
      CAPTURE(width, policy::name, space.name, path.name);
      auto replaced = make<decltype(space)>("weights", rows, width, content);
      ferry::scatter(exec, replaced, ids, values_here, policy{}, path).wait();
      CHECK(close(take(replaced), replaced_by));
    };
    const auto add = [&](auto space, auto path) {
      CAPTURE(width, policy::name, space.name, path.name);
      auto added = make<decltype(space)>("weights", rows, width, content);
      ferry::scatter_add(exec, added, ids, values_here, policy{}, path).wait();
      // The mean is rounded before it is added.
      CHECK(close(take(added), added_by, 13.0));
    };
    if constexpr (Verb == goes_direct::scatter) {
      replace(ferry::device_space{}, ferry::path::direct{});
      add(ferry::pageable_space{}, ferry::path::staged{});
    } else {
      replace(ferry::pageable_space{}, ferry::path::staged{});
      add(ferry::device_space{}, ferry::path::direct{});
    }
  }
}

}  // namespace ferry_test
