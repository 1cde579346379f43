// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

namespace ferry_test::gather_indices_test {

/// Indices of which about a fifth lie outside of the table, in every way that the type allows.
template <class Index>
std::vector<Index> with_bad_ones(std::mt19937_64& random, std::size_t n, std::size_t rows) {
  auto ids = indices<Index>(random, n, rows);
  const Index bad[] = {static_cast<Index>(rows), static_cast<Index>(rows + 1),
                       std::numeric_limits<Index>::max(), static_cast<Index>(-1),
                       std::numeric_limits<Index>::min()};
  for (std::size_t p = 3; p < n; p += 5) ids[p] = bad[(p / 5) % 5];
  return ids;
}

template <class Index>
std::size_t bad_count(const std::vector<Index>& ids, std::size_t rows) {
  std::size_t count = 0;
  for (const auto index : ids) count += row_of(index, rows, on_bad::leave) < 0 ? 1 : 0;
  return count;
}

template <class Index>
std::size_t first_bad(const std::vector<Index>& ids, std::size_t rows) {
  std::size_t p = 0;
  while (row_of(ids[p], rows, on_bad::leave) >= 0) ++p;
  return p;
}

template <class Space, class Path>
struct table_and_path {
  using space = Space;
  using path = Path;
};
inline constexpr auto third_paths = axis<table_and_path<ferry::device_space, ferry::path::automatic>,
                                         table_and_path<ferry::pinned_space, ferry::path::ordered>,
                                         table_and_path<ferry::mapped_space, ferry::path::cooperative>,
                                         table_and_path<ferry::pageable_space, ferry::path::automatic>,
                                         table_and_path<ferry::device_space, ferry::path::ordered>,
                                         table_and_path<ferry::pinned_space, ferry::path::cooperative>>;

// An index becomes a row before anyone asks where the rows are: each type and policy with one space, direct, staged and
// on one more path, of which each type and each policy sees all.
using points_1 = rotated<decltype(index_types), decltype(bounds), decltype(third_paths)>;
TEMPLATE_LIST_TEST_CASE("gather with bad indices, every index type and bounds policy", "[gather][bounds]",
                        points_1) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  using space = typename at<2, TestType>::space;
  using third_path = typename at<2, TestType>::path;
  auto random = generator(11);
  const std::size_t rows = 61, width = 36, n = 403;
  const auto content = values<float>(random, rows * width);
  const auto ids = with_bad_ones<index>(random, n, rows);
  const auto poison = values<float>(random, n * width);
  const auto table = make<space>("weights", rows, width, content);
  const bool clamps = std::is_same_v<policy, ferry::bounds::clamp>;
  const auto expected = gathered(content, width, ids, poison, clamps ? on_bad::clamp : on_bad::leave);
  const exec_space exec;
  const auto run = [&](auto path, auto out_space) {
    CAPTURE(space::name, path.name, policy::name);
    auto out = make<decltype(out_space)>("batch", n, width, poison);
    auto ticket = ferry::gather(exec, table, ids, out, policy{}, path);
    if constexpr (policy::reports) {
      const std::string message =
          std::to_string(bad_count(ids, rows)) + " of 403 indices are outside of 'weights' " +
          "[61 x 36] in " + std::string(space::name) + "; the first is index " +
          std::to_string(ids[first_bad(ids, rows)]) + " at position " + std::to_string(first_bad(ids, rows));
      CHECK_THROWS_MATCHES(ticket.wait(), ferry::out_of_range, MessageMatches(ContainsSubstring(message)));
    } else {
      CHECK_NOTHROW(ticket.wait());
    }
    CHECK(same_bits(take(out), expected));
  };
  for_each_path<space, ferry::device_space, work::moves>([&](auto path) {
    using ferry::path::direct, ferry::path::staged;
    constexpr bool is_third = std::is_same_v<decltype(path), third_path>;
    if constexpr (is_third || std::is_same_v<decltype(path), direct> ||
                  std::is_same_v<decltype(path), staged>)
      run(path, ferry::device_space{});
  });
  if constexpr (std::is_same_v<space, ferry::device_space>)
    run(ferry::path::staged{}, ferry::pageable_space{});

  // A report that was raised is clean for its next user.
  if constexpr (policy::reports) {
    auto out = make<ferry::device_space>("batch", n, width, poison);
    const auto good = indices<index>(random, n, rows);
    CHECK_NOTHROW(ferry::gather(exec, table, good, out).wait());
    CHECK_NOTHROW(ferry::gather(exec, table, good, out, ferry::bounds::unchecked{}).wait());
    CHECK(same_bits(take(out), gathered(content, width, good, poison)));
  }
}

// A plan's type no longer tells the arrays that it was made of.
using points_2 = zipped<decltype(index_types), decltype(bounds), 0>;
TEMPLATE_LIST_TEST_CASE("gather with a plan, every bounds policy", "[gather][plan]", points_2) {
  using index = at<0, TestType>;
  using policy = at<1, TestType>;
  auto random = generator(12);
  const std::size_t rows = 61, width = 5, n = 403;
  const auto content = values<float>(random, rows * width);
  const auto ids = with_bad_ones<index>(random, n, rows);
  const auto poison = values<float>(random, n * width);
  const bool clamps = std::is_same_v<policy, ferry::bounds::clamp>;
  const auto expected = gathered(content, width, ids, poison, clamps ? on_bad::clamp : on_bad::leave);
  const exec_space exec;
  const auto plan = ferry::make_plan(exec, ids, rows, policy{});
  const auto run = [&](const auto& table, auto path) {
    CAPTURE(path.name, policy::name);
    auto out = make<ferry::device_space>("batch", n, width, poison);
    auto ticket = ferry::gather(exec, table, plan, out, path, policy{});
    if constexpr (policy::reports)
      CHECK_THROWS_AS(ticket.wait(), ferry::out_of_range);
    else
      CHECK_NOTHROW(ticket.wait());
    CHECK(same_bits(take(out), expected));
  };
  const auto mapped = make<ferry::mapped_space>("weights", rows, width, content);
  const auto pageable = make<ferry::pageable_space>("weights", rows, width, content);
  run(mapped, ferry::path::direct{});
  run(mapped, ferry::path::staged{});
  run(pageable, ferry::path::automatic{});
  run(pageable, ferry::path::staged{});
}

TEST_CASE("gather takes its indices from every kind of array", "[gather]") {
  auto random = generator(13);
  const std::size_t rows = 40, width = 12, n = 77;
  const auto content = values<float>(random, rows * width);
  const auto ids = indices<std::int32_t>(random, n, rows);
  const auto table = make<ferry::mapped_space>("weights", rows, width, content);
  const auto host = make<ferry::pageable_space>("weights", rows, width, content);
  const auto poison = values<float>(random, n * width);
  const auto expected = gathered(content, width, ids, poison);
  const exec_space exec;
  const auto direct = [&](const auto& list) {
    auto out = make<ferry::device_space>("batch", n, width, poison);
    ferry::gather(exec, table, list, out, ferry::path::direct{}).wait();
    CHECK(same_bits(take(out), expected));
  };
  const auto staged = [&](const auto& list) {
    auto out = make<ferry::device_space>("batch", n, width, poison);
    ferry::gather(exec, host, list, out, ferry::path::staged{}).wait();
    CHECK(same_bits(take(out), expected));
  };
  const auto run = [&](const auto& list) {
    direct(list);
    staged(list);
  };
  run(ids);
  run(make<ferry::device_space>("indices", ids));
  run(make<ferry::pinned_space>("indices", ids));
  run(make<ferry::mapped_space>("indices", ids));
  run(make<ferry::pageable_space>("indices", ids));
  // Arrays of other kinds are the same reference before the paths part.
  staged(std::span<const std::int32_t>(ids));
  const auto owned = make<ferry::device_space>("indices", ids);
  direct(owned.view());
  staged(ferry::to_kokkos<1>(owned));
  Kokkos::View<std::int32_t*> view("indices", n);
  Kokkos::deep_copy(view, host_view<const std::int32_t>(ids.data(), n));
  direct(view);
  ferry::tensor<std::int32_t, ferry::device_space, ferry::extents<ferry::dyn>> fixed("indices", n);
  put(fixed, ids);
  staged(fixed);
}

TEST_CASE("gather from Kokkos views and rows of one element", "[gather]") {
  auto random = generator(14);
  const std::size_t rows = 40, width = 6, n = 33;
  const auto content = values<double>(random, rows * width);
  const auto ids = indices<std::uint32_t>(random, n, rows);
  const auto expected = gathered(content, width, ids, std::vector<double>(n * width));
  const exec_space exec;

  Kokkos::View<double**, Kokkos::LayoutRight> table("weights", rows, width);
  Kokkos::deep_copy(
      Kokkos::View<double*, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(table.data(), table.size()),
      host_view<const double>(content.data(), content.size()));
  ferry::tensor<double, ferry::device_space> batch("batch", n, width);
  ferry::gather(exec, table, ids, batch).wait();
  CHECK(same_bits(take(batch), expected));

  // A batch whose rows lie further apart than they are long.
  Kokkos::View<double**, Kokkos::LayoutRight> wide("wide", n, width + 3);
  auto padded = Kokkos::subview(wide, Kokkos::ALL, Kokkos::make_pair(std::size_t{0}, width));
  if constexpr (ferry::is_row_major_v<decltype(padded)>) {
    ferry::gather(exec, table, ids, padded).wait();
    auto mirror = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, wide);
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t c = 0; c < width; ++c) CHECK(mirror(p, c) == expected[p * width + c]);
      CHECK(mirror(p, width) == 0.0);
    }
  }

  const auto flat = make<ferry::mapped_space>("flat", content);
  ferry::tensor<double, ferry::device_space> picked("picked", n);
  ferry::gather(exec, flat, ids, picked).wait();
  CHECK(same_bits(take(picked), gathered(content, 1, ids, std::vector<double>(n))));
}

struct particle {
  float position[3];
  bool operator==(const particle&) const = default;
};
struct record {
  double mass;
  std::int64_t id;
  std::int64_t flags;
};

TEMPLATE_TEST_CASE("rows of structs move through every path", "[gather][scatter]", particle, record) {
  auto random = generator(15);
  const std::size_t rows = 50, width = 4, n = 60;
  std::vector<TestType> content(rows * width);
  for (auto& value : content) {
    const auto bytes = values<std::int32_t>(random, sizeof(TestType) / 4);
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof(TestType));
  }
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto expected = gathered(content, width, ids, std::vector<TestType>(n * width));
  const exec_space exec;
  const auto mapped = make<ferry::mapped_space>("weights", rows, width, content);
  const auto pageable = make<ferry::pageable_space>("weights", rows, width, content);
  ferry::tensor<TestType, ferry::device_space> batch("batch", n, width);
  ferry::gather(exec, mapped, ids, batch).wait();
  CHECK(same_bits(take(batch), expected));
  ferry::tensor<TestType, ferry::device_space> staged("batch", n, width);
  ferry::gather(exec, pageable, ids, staged, ferry::path::staged{}).wait();
  CHECK(same_bits(take(staged), expected));

  // Rows gathered and scattered back where they came from leave the table as it was.
  auto back = make<ferry::mapped_space>("weights", rows, width, content);
  ferry::scatter(exec, back, ids, batch).wait();
  CHECK(same_bits(take(back), content));
}

// All pairs of types are converted by copy, in the tiles that gather has as well.
using points_3 = zipped<decltype(elements), decltype(axis<float, ferry::bhalf_t, double>), 2>;
TEMPLATE_LIST_TEST_CASE("gather converts between number types", "[gather]", points_3) {
  using from = at<0, TestType>;
  using to = at<1, TestType>;
  auto random = generator(16);
  const std::size_t rows = 30, width = 20, n = 45;
  const auto content = values<from>(random, rows * width);
  const auto ids = indices<std::int64_t>(random, n, rows);
  std::vector<double> expected;
  for (const auto index : ids)
    for (std::size_t c = 0; c < width; ++c)
      expected.push_back(number(element<to>(number(content[static_cast<std::size_t>(index) * width + c]))));
  const exec_space exec;
  const auto run = [&](const auto& table, auto path) {
    ferry::tensor<to, ferry::device_space> out("batch", n, width);
    ferry::gather(exec, table, ids, out, path).wait();
    const auto got = take(out);
    bool equal = true;
    for (std::size_t i = 0; i < got.size(); ++i) equal = equal && number(got[i]) == expected[i];
    CHECK(equal);
  };
  run(make<ferry::mapped_space>("weights", rows, width, content), ferry::path::direct{});
  run(make<ferry::pageable_space>("weights", rows, width, content), ferry::path::staged{});
}

}  // namespace ferry_test::gather_indices_test
