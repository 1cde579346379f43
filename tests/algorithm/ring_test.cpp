#include "support/arrays.hpp"
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/paths.hpp"
#include "support/random.hpp"

#include <catch2/catch_template_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

/// Batches around the pieces that pass a ring: less than one, one, as many as a worker has slots, many rounds of all.
namespace ferry_test {
namespace {

constexpr std::size_t rows = 3001;

template <class T>
struct both_ways {
  std::mt19937_64 random;
  std::vector<T> content;
  std::vector<std::int64_t> which;
  std::vector<T> poison;
  std::vector<T> expected;

  both_ways(std::size_t width, std::size_t n, bool holes)
      : random(generator(width * 31 + n)),
        content(values<T>(random, rows * width)),
        which(indices<std::int64_t>(random, n, rows)),
        poison(values<T>(random, n * width)) {
    if (holes)
      for (std::size_t p = random() % 7; p < n; p += 1 + random() % 300) which[p] = -1;
    expected = poison;
    for (std::size_t p = 0; p < n; ++p)
      if (which[p] >= 0)
        std::copy_n(content.begin() + which[p] * static_cast<std::ptrdiff_t>(width), width,
                    expected.begin() + static_cast<std::ptrdiff_t>(p * width));
  }
};

template <class T, class TableSpace, class OutSpace, class Path>
bool gathers(const exec_space& exec, std::size_t width, std::size_t n, bool holes, Path path) {
  both_ways<T> of(width, n, holes);
  const auto table = make<TableSpace>("weights", rows, width, of.content);
  auto out = make<OutSpace>("batch", n, width, of.poison);
  ferry::gather(exec, table, of.which, out, path, ferry::bounds::skip{}).wait();
  return same_bits(take(out), of.expected);
}

}  // namespace

using points = product<decltype(axis<ferry::bhalf_t, float, double>)>;
TEMPLATE_LIST_TEST_CASE("batches around the pieces of a ring", "[gather][scatter][ring]", points) {
  using element = at<0, TestType>;
  const exec_space exec;
  for (const std::size_t width : {1u, 3u, 16u, 33u, 130u})
    for (const std::size_t n : {1u, 1023u, 1024u, 1025u, 4097u, 20011u, 90001u}) {
      if (width * n > 4'000'000) continue;
      CAPTURE(width, n);
      const bool holes = n % 2 == 1;
      const ferry::path::staged staged;
      CHECK(gathers<element, ferry::pageable_space, ferry::device_space>(exec, width, n, holes, staged));
      CHECK(gathers<element, ferry::device_space, ferry::pageable_space>(exec, width, n, holes, staged));
      CHECK(gathers<element, ferry::pinned_space, ferry::device_space>(exec, width, n, holes,
                                                                       ferry::path::cooperative{}));
    }
}

TEMPLATE_LIST_TEST_CASE("unique rows on their way back through a ring", "[scatter][ring]", points) {
  using element = at<0, TestType>;
  const exec_space exec;
  for (const std::size_t width : {1u, 5u, 32u})
    for (const std::size_t n : {1u, 1025u, 70001u}) {
      CAPTURE(width, n);
      auto random = generator(n + width);
      std::vector<std::int64_t> which(n + 100);
      std::iota(which.begin(), which.end(), std::int64_t{0});
      std::shuffle(which.begin(), which.end(), random);
      which.resize(n);
      const auto content = values<element>(random, n * width);
      auto expected = values<element>(random, (n + 100) * width);
      auto table = make<ferry::pageable_space>("weights", n + 100, width, expected);
      const auto batch = make<ferry::device_space>("batch", n, width, content);
      ferry::scatter(exec, table, which, batch, ferry::path::staged{}, ferry::duplicates::assume_unique{})
          .wait();
      for (std::size_t p = 0; p < n; ++p)
        std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(p * width), width,
                    expected.begin() + which[p] * static_cast<std::ptrdiff_t>(width));
      CHECK(same_bits(take(table), expected));
    }
}

// Instances of their own, one ring each, one set of host threads.
TEST_CASE("rings of several threads at once", "[gather][ring]") {
  if constexpr (ferry::HostExecutionSpace<exec_space>) SKIP("a host backend has no ring to share");
  constexpr int callers = 3;
  const auto instances = Kokkos::Experimental::partition_space(exec_space{}, 1, 1, 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] {
      const exec_space& exec = instances[static_cast<std::size_t>(caller)];
      for (int round = 0; round < 6; ++round) {
        const std::size_t n = 500 + 7001 * static_cast<std::size_t>(round);
        const bool good = (round + caller) % 2 == 0
                              ? gathers<float, ferry::pageable_space, ferry::device_space>(
                                    exec, 32, n, true, ferry::path::staged{})
                              : gathers<float, ferry::pinned_space, ferry::device_space>(
                                    exec, 32, n, false, ferry::path::cooperative{});
        if (!good) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace ferry_test
