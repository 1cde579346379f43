// SPDX-License-Identifier: Apache-2.0
#include "support/matrix.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

/// Batches around the pieces that pass a ring: less than one, one, as many as a worker has slots, many rounds of all.
namespace ferry_test::row_slots_test {

struct two_floats {
  float first, second;
};

constexpr std::size_t rows = 3001;

template <class T>
struct both_ways {
  std::mt19937_64 random;
  std::vector<T> content;
  std::vector<std::int64_t> ids;
  std::vector<T> poison;
  std::vector<T> expected;

  both_ways(std::size_t width, std::size_t n, bool holes)
      : random(generator(width * 31 + n)),
        content(values<T>(random, rows * width)),
        ids(indices<std::int64_t>(random, n, rows)),
        poison(values<T>(random, n * width)) {
    if (holes)
      for (std::size_t p = random() % 7; p < n; p += 1 + random() % 300) ids[p] = -1;
    expected = poison;
    for (std::size_t p = 0; p < n; ++p)
      if (ids[p] >= 0)
        std::copy_n(content.begin() + ids[p] * static_cast<std::ptrdiff_t>(width), width,
                    expected.begin() + static_cast<std::ptrdiff_t>(p * width));
  }
};

template <class T, class TableSpace, class OutSpace, class Path>
bool gathers(const exec_space& exec, std::size_t width, std::size_t n, bool holes, Path path) {
  both_ways<T> problem(width, n, holes);
  const auto table = make<TableSpace>("weights", rows, width, problem.content);
  auto out = make<OutSpace>("batch", n, width, problem.poison);
  ferry::gather(exec, table, problem.ids, out, path, ferry::bounds::skip{}).wait();
  return same_bits(take(out), problem.expected);
}

using points = product<decltype(axis<ferry::bhalf_t, float, double>)>;
TEMPLATE_LIST_TEST_CASE("batches around the pieces of slots", "[gather][scatter][slots][once]", points) {
  using element = at<0, TestType>;
  const exec_space exec;
  for (const std::size_t width : {1u, 3u, 16u, 33u, 130u})
    for (const std::size_t n : {1u, 1023u, 1024u, 1025u, 4097u, 20011u, 90001u}) {
      if (width * n > 700'000) continue;
      CAPTURE(width, n);
      const bool holes = n % 2 == 1;
      const ferry::path::staged staged;
      CHECK(gathers<element, ferry::pageable_space, ferry::device_space>(exec, width, n, holes, staged));
      CHECK(gathers<element, ferry::device_space, ferry::pageable_space>(exec, width, n, holes, staged));
      CHECK(gathers<element, ferry::pinned_space, ferry::device_space>(exec, width, n, holes,
                                                                       ferry::path::cooperative{}));
    }
}

TEMPLATE_LIST_TEST_CASE("unique rows on their way back through slots", "[scatter][slots]", points) {
  using element = at<0, TestType>;
  const exec_space exec;
  for (const std::size_t width : {1u, 5u, 32u})
    for (const std::size_t n : {1u, 1025u, 70001u}) {
      CAPTURE(width, n);
      auto random = generator(n + width);
      std::vector<std::int64_t> ids(n + 100);
      std::iota(ids.begin(), ids.end(), std::int64_t{0});
      std::shuffle(ids.begin(), ids.end(), random);
      ids.resize(n);
      const auto content = values<element>(random, n * width);
      auto expected = values<element>(random, (n + 100) * width);
      auto table = make<ferry::pageable_space>("weights", n + 100, width, expected);
      const auto batch = make<ferry::device_space>("batch", n, width, content);
      ferry::scatter(exec, table, ids, batch, ferry::path::staged{}, ferry::duplicates::assume_unique{})
          .wait();
      for (std::size_t p = 0; p < n; ++p)
        std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(p * width), width,
                    expected.begin() + ids[p] * static_cast<std::ptrdiff_t>(width));
      CHECK(same_bits(take(table), expected));
    }
}

// A view may begin wherever its elements may, which is not where a wider unit may.
TEST_CASE("elements that are aligned for less than their size", "[gather][scatter][copy][slots]") {
  static_assert(alignof(two_floats) < sizeof(two_floats));
  auto random = generator(41);
  const exec_space exec;
  const std::size_t n = 700, width = 3;
  const auto content = values<float>(random, 2 * rows * width + 1);
  const auto ids = indices<std::int64_t>(random, n, rows);
  const auto table = make<ferry::device_space>("weights", 1, content.size(), content);
  const ferry::tensor_view<const two_floats, ferry::device_space> source(
      reinterpret_cast<const two_floats*>(table.data() + 1), rows, width);
  std::vector<float> expected;
  for (const auto row : ids)
    expected.insert(expected.end(), content.begin() + 1 + 2 * row * static_cast<std::ptrdiff_t>(width),
                    content.begin() + 1 + 2 * (row + 1) * static_cast<std::ptrdiff_t>(width));
  const auto check = [&](auto space, auto path) {
    using out_space = decltype(space);
    ferry::tensor<float, out_space> block("batch", 2 * n * width + 1);
    put(block, std::vector<float>(2 * n * width + 1, -1.0f));
    ferry::tensor_view<two_floats, out_space> batch(reinterpret_cast<two_floats*>(block.data() + 1), n,
                                                    width);
    ferry::gather(exec, source, ids, batch, path).wait();
    auto got = take(block);
    CHECK(got.front() == -1.0f);
    got.erase(got.begin());
    CHECK(same_bits(got, expected));
  };
  check(ferry::device_space{}, ferry::path::direct{});
  check(ferry::pageable_space{}, ferry::path::staged{});

  ferry::tensor<float, ferry::pageable_space> block("host", 2 * rows * width + 1);
  ferry::tensor_view<two_floats, ferry::pageable_space> whole(reinterpret_cast<two_floats*>(block.data() + 1),
                                                              rows, width);
  ferry::copy(exec, source, whole, ferry::path::staged{}).wait();
  auto got = take(block);
  got[0] = content[0];
  CHECK(same_bits(got, content));
}

// Instances of their own, slots of their own, one set of host threads.
TEST_CASE("slots of several threads at once", "[gather][slots]") {
  if constexpr (ferry::HostExecutionSpace<exec_space>) SKIP("a host backend has no device to share");
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

}  // namespace ferry_test::row_slots_test
