// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::scatter_bounds_test {

template <class Index>
std::vector<Index> with_bad_ones(std::mt19937_64& random, std::size_t n, std::size_t rows) {
  auto ids = unique_indices<Index>(random, n, rows);
  // The lowest value of an unsigned type is a row like any other.
  const Index low =
      std::is_signed_v<Index> ? std::numeric_limits<Index>::min() : static_cast<Index>(rows + 1);
  const Index bad[] = {static_cast<Index>(rows), std::numeric_limits<Index>::max(), static_cast<Index>(-1),
                       low};
  for (std::size_t p = 3; p < n; p += 5) ids[p] = bad[(p / 5) % 4];
  return ids;
}

// A guard region on both sides of the table: nothing outside of it may change, whatever the index. An index becomes a row
// before anyone asks where the rows are, and one of a plan before the paths part: each type and policy with one space, on
// one of its paths.
using bounds_points = rotated<decltype(index_types), decltype(bounds), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("verbs that write, with bad indices", "[scatter][bounds]", bounds_points) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = at<2, TestType>;
  auto random = generator(31);
  const std::size_t guard = 40, rows = 61, width = 12, n = 57;
  const auto whole = values<float>(random, (rows + 2 * guard) * width);
  const std::vector<float> content(whole.begin() + static_cast<std::ptrdiff_t>(guard * width),
                                   whole.end() - static_cast<std::ptrdiff_t>(guard * width));
  auto ids = with_bad_ones<index>(random, n, rows);
  const auto batch = values<float>(random, n * width);
  constexpr bool clamps = std::is_same_v<policy, ferry::bounds::clamp>;
  [[maybe_unused]] const auto treat = clamps ? on_bad::clamp : on_bad::leave;
  const exec_space exec;

  const auto run = [&](const auto& sources, auto path, auto duplicates, auto adds) {
    constexpr bool add = decltype(adds)::value;
    CAPTURE(space::name, path.name, policy::name, duplicates.name, add);
    auto memory = make<space>("memory", rows + 2 * guard, width, whole);
    ferry::shape<ferry::dynamic_rank> extents = ferry::shape<ferry::dynamic_rank>::make(
        std::array<std::size_t, 2>{rows, width}, "weights", sizeof(float));
    ferry::tensor_view<float, space> table(memory.data() + guard * width, extents);
    ferry::ticket ticket;
    if constexpr (add)
      ticket = ferry::scatter_add(exec, table, ids, sources, policy{}, path, duplicates);
    else
      ticket = ferry::scatter(exec, table, ids, sources, policy{}, path, duplicates);
    auto expected = whole;
    if constexpr (policy::reports) {
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    } else {
      CHECK_NOTHROW(ticket.wait());
      const auto inside = scattered(content, width, ids, batch, add, duplicates.name, treat);
      for (std::size_t i = 0; i < inside.size(); ++i)
        expected[guard * width + i] = static_cast<float>(inside[i]);
    }
    CHECK(same_bits(take(memory), expected));
  };
  const auto device = make<ferry::device_space>("values", n, width, batch);
  const auto host = make<ferry::pageable_space>("values", n, width, batch);
  const ferry::path::direct direct;
  const ferry::path::staged staged;
  const ferry::duplicates::last last;
  const ferry::duplicates::sum sum;
  const ferry::duplicates::assume_unique unique;
  const std::false_type replace;
  const std::true_type add;
  if constexpr (std::is_same_v<space, ferry::device_space>) {
    run(device, direct, last, replace);
    run(host, staged, sum, add);
  } else if constexpr (std::is_same_v<space, ferry::pinned_space>) {
    run(device, staged, last, replace);
    run(device, direct, sum, add);
  } else if constexpr (std::is_same_v<space, ferry::mapped_space>) {
    run(device, direct, last, replace);
    run(host, staged, sum, add);
  } else {
    run(host, staged, last, replace);
    run(device, staged, sum, add);
  }
  if constexpr (clamps) {
    // clamp makes duplicates of the first and the last row, but for indices that leave each of them to one bad one.
    ids = unique_indices<index>(random, n, rows - 2);
    for (auto& row : ids) ++row;
    ids[3] = std::numeric_limits<index>::max();
    if constexpr (std::is_signed_v<index>) ids[8] = -1;
    run(host, staged, unique, replace);
  } else if constexpr (std::is_same_v<policy, ferry::bounds::skip>) {
    if (direct_runs<space>()) run(device, direct, unique, replace);
  } else if constexpr (space::is_host_accessible) {
    run(device, staged, unique, replace);
  } else {
    run(host, staged, unique, replace);
  }
}

}  // namespace ferry_test::scatter_bounds_test
