#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <limits>

namespace ferry_test {
namespace {

template <class Index>
std::vector<Index> with_bad_ones(std::mt19937_64& random, std::size_t n, std::size_t rows) {
  auto made = unique_indices<Index>(random, n, rows);
  // The lowest value of an unsigned type is a row like any other.
  const Index low =
      std::is_signed_v<Index> ? std::numeric_limits<Index>::min() : static_cast<Index>(rows + 1);
  const Index bad[] = {static_cast<Index>(rows), std::numeric_limits<Index>::max(), static_cast<Index>(-1),
                       low};
  for (std::size_t p = 3; p < n; p += 5) made[p] = bad[(p / 5) % 4];
  return made;
}

}  // namespace

// A guard region on both sides of the table: nothing outside of it may change, whatever the index.
using bounds_points = product<decltype(index_types), decltype(bounds), decltype(spaces)>;
TEMPLATE_LIST_TEST_CASE("verbs that write, with bad indices", "[scatter][bounds]", bounds_points) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = at<2, TestType>;
  auto random = generator(31);
  const std::size_t guard = 40, rows = 61, width = 12, n = 57;
  const auto whole = values<float>(random, (rows + 2 * guard) * width);
  const std::vector<float> content(whole.begin() + static_cast<std::ptrdiff_t>(guard * width),
                                   whole.end() - static_cast<std::ptrdiff_t>(guard * width));
  const auto which = with_bad_ones<index>(random, n, rows);
  const auto batch = values<float>(random, n * width);
  const bool clamps = std::is_same_v<policy, ferry::bounds::clamp>;
  [[maybe_unused]] const auto treat = clamps ? on_bad::clamp : on_bad::leave;
  const exec_space exec;

  const auto run = [&](const auto& sources, auto path, auto duplicates, bool add) {
    CAPTURE(space::name, path.name, policy::name, duplicates.name, add);
    auto memory = make<space>("memory", rows + 2 * guard, width, whole);
    ferry::shape<ferry::dynamic_rank> extents = ferry::shape<ferry::dynamic_rank>::make(
        std::array<std::size_t, 2>{rows, width}, "weights", sizeof(float));
    ferry::tensor_view<float, space> table(memory.data() + guard * width, extents);
    auto ticket = add ? ferry::scatter_add(exec, table, which, sources, policy{}, path, duplicates)
                      : ferry::scatter(exec, table, which, sources, policy{}, path, duplicates);
    auto expected = whole;
    if constexpr (policy::reports) {
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    } else {
      CHECK_NOTHROW(ticket.wait());
      const auto inside = scattered(content, width, which, batch, add, duplicates.name, treat);
      for (std::size_t i = 0; i < inside.size(); ++i)
        expected[guard * width + i] = static_cast<float>(inside[i]);
    }
    CHECK(same_bits(take(memory), expected));
  };
  const auto run_all = [&](auto duplicates, bool add) {
    const auto device = make<ferry::device_space>("values", n, width, batch);
    const auto host = make<ferry::pageable_space>("values", n, width, batch);
    if (direct_runs<space>()) run(device, ferry::path::direct{}, duplicates, add);
    if constexpr (space::is_host_accessible) run(device, ferry::path::staged{}, duplicates, add);
    run(host, ferry::path::staged{}, duplicates, add);
  };
  run_all(ferry::duplicates::last{}, false);
  run_all(ferry::duplicates::sum{}, true);
  // clamp makes duplicates of the first and the last row, so only the others may promise that there are none.
  if (!clamps) run_all(ferry::duplicates::assume_unique{}, false);
}

}  // namespace ferry_test
