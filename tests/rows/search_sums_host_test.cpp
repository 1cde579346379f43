// SPDX-License-Identifier: Apache-2.0
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/row_operations.hpp>
#include <ferry/rows/detail/search_rows.hpp>

#include <barrier>

/// The kernel that searches a small batch, run by this thread as a team of one with one lane, and by teams of threads
/// with warps of four.
namespace ferry_test::search_sums_host_test {

namespace kernels = ferry::kernels;
namespace detail = ferry::detail;

/// Memory of a team, which holds no usable value.
struct alignas(16) unit {
  unsigned char bytes[16];
};
unit* poisoned_memory(std::size_t bytes) {
  static std::vector<unit> memory;
  memory.resize(bytes / sizeof(unit) + 1);
  std::memset(static_cast<void*>(memory.data()), 0xa5, memory.size() * sizeof(unit));
  return memory.data();
}

struct one_thread {
  int rank;
  std::size_t bytes;

  static constexpr int lanes = 1;
  [[nodiscard]] int league_rank() const { return rank; }
  [[nodiscard]] static int team_rank() { return 0; }
  [[nodiscard]] static int team_size() { return 1; }
  static void team_barrier() {}
  [[nodiscard]] static std::uint32_t vote(bool bit) { return bit ? 1u : 0u; }
  static void warp_barrier() {}
  template <class T>
  [[nodiscard]] T& dynamic_shared() const {
    return *reinterpret_cast<T*>(poisoned_memory(bytes));
  }

  template <class Search>
  static void run(const Search& search) {
    for (int team = search.teams; team-- > 0;) search(one_thread{team, search.bytes()});
  }
};

/// Threads that all wait for one another wherever a device's would.
struct several_threads {
  static constexpr int lanes = 4, size = 12;

  struct meetings {
    std::barrier<> team{size};
    std::barrier<> warp[size / lanes]{std::barrier<>(lanes), std::barrier<>(lanes), std::barrier<>(lanes)};
    int passed[size] = {};
    unit* memory = nullptr;
  };
  meetings& shared_team;
  int league;
  int rank;

  [[nodiscard]] int league_rank() const { return league; }
  [[nodiscard]] int team_rank() const { return rank; }
  [[nodiscard]] static int team_size() { return size; }
  void team_barrier() const { shared_team.team.arrive_and_wait(); }
  void warp_barrier() const { shared_team.warp[rank / lanes].arrive_and_wait(); }
  [[nodiscard]] std::uint32_t lanes_with(int value, int passed) const {
    shared_team.passed[rank] = passed;
    warp_barrier();
    std::uint32_t mask = 0;
    for (int lane = 0; lane < lanes; ++lane)
      mask |= static_cast<std::uint32_t>(shared_team.passed[rank / lanes * lanes + lane] == value) << lane;
    warp_barrier();
    return mask;
  }
  [[nodiscard]] std::uint32_t vote(bool bit) const { return lanes_with(1, bit ? 1 : 0); }
  template <class T>
  [[nodiscard]] T& dynamic_shared() const {
    return *reinterpret_cast<T*>(shared_team.memory);
  }

  template <class Search>
  static void run(const Search& search) {
    for (int team = search.teams; team-- > 0;) {
      meetings shared_team{.memory = poisoned_memory(search.bytes())};
      std::vector<std::thread> threads;
      for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] { search(several_threads{shared_team, team, rank}); });
      for (auto& thread : threads) thread.join();
    }
  }
};

/// The search of a batch by a device that has so many teams at work at once.
template <class Kernel, class Named>
kernels::search_rows<Kernel, Named> search_of(const Kernel& kernel, const Named& named,
                                              std::int64_t positions, std::int64_t teams_at_once) {
  using search = kernels::search_rows<Kernel, Named>;
  const auto count = static_cast<int>(positions);
  return {kernel, named, count, search::teams_of(count, static_cast<int>(teams_at_once)),
          static_cast<int>(kernel.per_item())};
}

template <class T, class Tile, class Duplicates = ferry::duplicates::sum, class Team = one_thread>
void check_added(const std::vector<std::size_t>& counts, std::size_t width, unsigned seed,
                 std::size_t skew = 0, std::int64_t teams_at_once = 264) {
  CAPTURE(counts, width, skew, teams_at_once, Tile::elements, Tile::masked);
  auto random = generator(seed);
  std::vector<std::int32_t> indices;
  for (std::size_t row = 0; row < counts.size(); ++row)
    indices.insert(indices.end(), counts[row], static_cast<std::int32_t>(2 * row + 1));
  std::shuffle(indices.begin(), indices.end(), random);
  const std::size_t n = indices.size(), rows = 2 * counts.size() + 1;
  const auto values = ferry_test::values<T>(random, n * width);
  auto table = ferry_test::values<T>(random, rows * width + 8);
  auto sums = table;
  std::vector<std::vector<std::size_t>> places(counts.size());
  for (std::size_t p = 0; p < n; ++p) places[static_cast<std::size_t>(indices[p] / 2)].push_back(p);
  for (std::size_t row = 0; row < counts.size(); ++row)
    for (std::size_t c = 0; c < width && counts[row] != 0; ++c) {
      std::vector<T> column;
      for (const std::size_t p : places[row]) column.push_back(values[p * width + c]);
      T sum = sum_in_pieces(column);
      if (std::is_same_v<Duplicates, ferry::duplicates::mean>) sum /= static_cast<T>(counts[row]);
      sums[skew + (2 * row + 1) * width + c] += sum;
    }
  detail::index_report findings;
  unsigned int raised = 0;
  const auto columns = static_cast<std::int64_t>(width), positions = static_cast<std::int64_t>(n);
  using named_rows = kernels::index_rows<std::int32_t, ferry::bounds::check>;
  const named_rows named{indices.data(), static_cast<std::int64_t>(rows), {&findings, &raised}};
  const auto kernel =
      detail::apply_kernel<T, Tile, Duplicates>(kernels::found_rows{}, positions, values.data(), columns,
                                                columns, kernels::add_row<T>{table.data() + skew, columns});
  const auto search = search_of(kernel, named, positions, teams_at_once);
  Team::run(search);
  CHECK(table == sums);

  // A bad index at either end: nothing is written.
  for (const std::size_t place : {std::size_t{0}, n - 1}) {
    const auto index = std::exchange(indices[place], static_cast<std::int32_t>(rows));
    Team::run(search);
    CHECK(table == sums);
    CHECK(std::exchange(findings.out_of_range, 0) == 1);
    indices[place] = index;
  }
}

/// An operation that a batch with a number that is not finite refuses.
template <class T>
struct refused_addition : kernels::add_row<T> {
  [[nodiscard]] static bool is_refused() { return true; }
};

TEST_CASE("a team that searches leaves refused rows as they are", "[sum_order]") {
  for (const std::size_t count : {1u, 63u, 64u, 65u, 300u}) {
    CAPTURE(count);
    const std::vector<std::int32_t> indices(count, 1);
    const std::vector<float> values(count * 4, 1.0F);
    std::vector<float> table(12, 5.0F);
    const auto positions = static_cast<std::int64_t>(count);
    using named_rows = kernels::index_rows<std::int32_t, ferry::bounds::unchecked>;
    const named_rows named{indices.data(), 3, {}};
    const auto kernel = detail::apply_kernel<float, kernels::packed_tile, ferry::duplicates::sum>(
        kernels::found_rows{}, positions, values.data(), 4, 4, refused_addition<float>{{table.data(), 4}});
    one_thread::run(search_of(kernel, named, positions, 264));
    CHECK(table == std::vector<float>(12, 5.0F));
  }
}

TEST_CASE("a team that searches sums long segments", "[sum_order][once]") {
  using packed = kernels::packed_tile;
  using masked = kernels::masked_tile;
  check_added<float, packed>({64}, 4, 1);
  check_added<float, packed>({4096}, 8, 2);
  check_added<float, packed>({1, 63, 2, 5}, 128, 3);
  check_added<float, packed>({63, 65, 1, 64, 31, 32, 95, 96, 97, 128, 129, 0, 3}, 128, 4);
  check_added<float, packed>({2000, 70, 1, 1000, 900}, 12, 5);
  check_added<double, packed>({300, 2, 64, 700}, 260, 6);
  check_added<float, packed>({100, 1, 64}, 2052, 7);
  check_added<float, kernels::wide_packed_tile>({200, 1, 64}, 24, 8);
  check_added<float, packed, ferry::duplicates::mean>({70, 3, 300, 2}, 8, 9);
  for (std::size_t skew = 0; skew < 4; ++skew)
    for (const std::size_t width : {1u, 2u, 3u, 4u, 5u, 7u, 131u, 1031u})
      check_added<float, masked>({70, 3, 200}, width, 10, skew);
  check_added<double, masked, ferry::duplicates::mean>({70, 3, 200}, 5, 11, 1);
#if !defined(KOKKOS_ENABLE_CUDA)  // nvcc warns that a device takes it for double
  check_added<long double, masked>({70, 3, 200}, 5, 12, 1);
#endif
}

TEST_CASE("the lanes and warps of a team that searches agree on the places of positions",
          "[sum_order][once]") {
  using packed = kernels::packed_tile;
  using sum = ferry::duplicates::sum;
  check_added<float, packed, sum, several_threads>({1}, 4, 21);
  check_added<float, packed, sum, several_threads>({5, 1, 7, 2}, 8, 22);
  check_added<float, packed, sum, several_threads>(std::vector<std::size_t>(53, 1), 8, 23);
  check_added<float, packed, sum, several_threads>({70, 3, 1, 64, 1, 1, 2, 30}, 128, 24);
  check_added<double, kernels::masked_tile, ferry::duplicates::mean, several_threads>({66, 3, 40}, 5, 25, 1);
}

TEST_CASE("teams of many items find the rows that several of them name", "[sum_order][once]") {
  using packed = kernels::packed_tile;
  using sum = ferry::duplicates::sum;
  std::vector<std::size_t> counts(900, 1);
  counts.insert(counts.end(), {2, 3, 7, 8, 9, 63, 64, 65});
  // A team has at most 16 items, whatever the number of teams at once.
  for (const std::int64_t teams : {264, 3}) {
    check_added<float, packed>(counts, 4, 26, 0, teams);
    check_added<float, kernels::masked_tile>(counts, 3, 27, 2, teams);
  }
  check_added<float, packed, sum, several_threads>(counts, 4, 28, 0, 9);
  check_added<double, packed>({4096}, 4, 29, 0, 40);
}

}  // namespace ferry_test::search_sums_host_test
