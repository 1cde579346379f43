// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Indices that name neighbouring rows, in runs, mixed with rows at
/// random.
namespace ferry_test::runs_test {

constexpr std::size_t run_bytes = std::size_t{1} << 16;
// Larger than a slot. A host fills none, nor has it so many runs in turn.
constexpr bool on_host = ferry::HostExecutionSpace<exec_space>;
constexpr std::size_t widest = on_host ? 40000 : 300000, many_runs = on_host ? 5 : 20;

/// Pieces of 1 to 3 times `usual` neighbours, every other one cut into rows at random; no row twice where `unique`.
std::vector<std::int64_t> runs_of_rows(std::mt19937_64& random, std::size_t n, std::size_t rows,
                                       std::size_t usual, bool unique) {
  std::vector<std::int64_t> ids;
  std::size_t piece = 0, next = random() % usual;
  while (ids.size() < n) {
    const std::size_t length = std::max<std::size_t>(1, usual / 2 + random() % (2 * usual));
    if (!unique) next = random() % rows;
    std::vector<std::int64_t> run;
    for (std::size_t i = 0; i < length && next < rows; ++i) run.push_back(static_cast<std::int64_t>(next++));
    if (unique && run.empty()) break;
    if (++piece % 2 == 0) std::shuffle(run.begin(), run.end(), random);
    ids.insert(ids.end(), run.begin(), run.end());
  }
  ids.resize(std::min(ids.size(), n));
  return ids;
}

using tables = product<decltype(axis<ferry::pinned_space, ferry::pageable_space, ferry::mapped_space>)>;
TEMPLATE_LIST_TEST_CASE("gather of neighbouring rows", "[gather][once]", tables) {
  using space = at<0, TestType>;
  auto random = generator(11);
  const exec_space exec;
  // 128, 4, 2 and 1 row make a run.
  for (const std::size_t width :
       {std::size_t{128}, std::size_t{4096}, std::size_t{8192}, std::size_t{16384}, widest}) {
    const std::size_t usual = std::max<std::size_t>(1, run_bytes / (4 * width));
    const std::size_t rows = width == widest ? 7 : many_runs * (usual + 3);
    const std::size_t n = width == widest ? 12 : 3 * rows;
    CAPTURE(width, rows, n);
    const auto content = values<float>(random, rows * width);
    const auto table = make<space>("weights", rows, width, content);
    auto ids = runs_of_rows(random, n, rows, usual, false);
    const auto poison = values<float>(random, ids.size() * width);
    auto out = make<ferry::device_space>("batch", ids.size(), width, poison);
    ferry::gather(exec, table, ids, out, ferry::path::staged{}).wait();
    CHECK(same_bits(take(out), gathered(content, width, ids, poison)));

    // Positions without a row lie between the runs and within them.
    for (std::size_t p = 0; p < ids.size(); p += 1 + random() % 50) ids[p] = -1;
    put(out, poison);
    ferry::gather(exec, table, ids, out, ferry::path::staged{}, ferry::bounds::skip{}).wait();
    auto expected = poison;
    for (std::size_t p = 0; p < ids.size(); ++p)
      for (std::size_t c = 0; ids[p] >= 0 && c < width; ++c)
        expected[p * width + c] = content[static_cast<std::size_t>(ids[p]) * width + c];
    CHECK(same_bits(take(out), expected));

    put(out, poison);
    const auto plan = ferry::make_plan(exec, ids, table.rows(), ferry::bounds::skip{});
    ferry::gather(exec, table, plan, out, ferry::path::staged{}).wait();
    CHECK(same_bits(take(out), expected));
  }
}

TEMPLATE_LIST_TEST_CASE("scatter of neighbouring rows", "[scatter][once]", tables) {
  using space = at<0, TestType>;
  auto random = generator(12);
  const exec_space exec;
  for (const std::size_t width :
       {std::size_t{128}, std::size_t{4096}, std::size_t{8192}, std::size_t{16384}, widest}) {
    const std::size_t usual = std::max<std::size_t>(1, run_bytes / (4 * width));
    const std::size_t rows = width == widest ? 7 : many_runs * (2 * usual + 3);
    CAPTURE(width, rows);
    const auto before = values<float>(random, rows * width);
    auto table = make<space>("weights", rows, width, before);
    const auto ids = runs_of_rows(random, rows, rows, usual, true);
    const auto content = values<float>(random, ids.size() * width);
    const auto batch = make<ferry::device_space>("batch", ids.size(), width, content);
    auto expected = before;
    for (std::size_t p = 0; p < ids.size(); ++p)
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(p * width), width,
                  expected.begin() + ids[p] * static_cast<std::ptrdiff_t>(width));
    const auto check = [&](auto... policies) {
      put(table, before);
      ferry::scatter(exec, table, ids, batch, ferry::path::staged{}, policies...).wait();
      CHECK(same_bits(take(table), expected));
    };
    check();
    check(ferry::duplicates::assume_unique{});
    check(ferry::duplicates::sum{});
    put(table, before);
    ferry::scatter_add(exec, table, ids, batch, ferry::path::staged{}).wait();
    for (std::size_t p = 0; p < ids.size(); ++p)
      for (std::size_t c = 0; c < width; ++c) {
        const auto element = static_cast<std::size_t>(ids[p]) * width + c;
        expected[element] = before[element] + content[p * width + c];
      }
    CHECK(same_bits(take(table), expected));
  }
}

// A view of some columns: rows that are runs only by themselves.
TEST_CASE("neighbouring rows that lie apart", "[gather]") {
  auto random = generator(13);
  const exec_space exec;
  for (const std::size_t width : {128u, 8192u, 16384u}) {
    const std::size_t rows = 40, wide = width + 16;
    const auto content = values<float>(random, rows * wide);
    const auto table = make<ferry::pinned_space>("weights", rows, wide, content);
    const Kokkos::View<const float**, Kokkos::LayoutRight, ferry::detail::kokkos_space_t<ferry::pinned_space>,
                       Kokkos::MemoryTraits<Kokkos::Unmanaged>>
        whole(table.data(), rows, wide);
    const auto columns = Kokkos::subview(whole, Kokkos::ALL, Kokkos::make_pair(std::size_t{4}, width + 4));
    const auto ids = runs_of_rows(random, 100, rows, 5, false);
    const auto poison = values<float>(random, ids.size() * width);
    auto out = make<ferry::device_space>("batch", ids.size(), width, poison);
    ferry::gather(exec, columns, ids, out, ferry::path::staged{}).wait();
    std::vector<float> expected(ids.size() * width);
    for (std::size_t p = 0; p < ids.size(); ++p)
      for (std::size_t c = 0; c < width; ++c)
        expected[p * width + c] = content[static_cast<std::size_t>(ids[p]) * wide + 4 + c];
    CHECK(same_bits(take(out), expected));
  }
}

}  // namespace ferry_test::runs_test
