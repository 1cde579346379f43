// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>
#include <ferry/loader/prefetcher.hpp>

#include "support/arrays.hpp"
#include "support/random.hpp"
#include "support/watchdog.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/// The prefetcher with its sources, on the default execution space.
namespace ferry_test::prefetcher_test {

namespace {

using ferry::batch_field;
using ferry::batch_request;

/// The values of a batch's array, brought to the host.
template <class Slice>
auto fetched(const exec_space& exec, const Slice& slice) {
  std::vector<typename Slice::value_type> values(slice.size());
  ferry::copy(exec, slice, values).wait();
  return values;
}

}  // namespace

TEST_CASE("an epoch has the rows of the tables in the order of the permutation", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  auto random = generator();
  constexpr std::size_t rows = 1003, width = 17;
  const auto x = values<float>(random, rows * width);
  const auto y = values<std::int32_t>(random, rows);
  const auto table = make<ferry::mapped_space>("x", rows, width, x);
  const std::uint64_t seed = random();
  ferry::prefetcher batches(exec, ferry::samples_of(table, y),
                            {.batch = 64, .workers = 3, .shuffle = seed, .epochs = 2});
  CHECK(batches.batches_per_epoch() == 16);
  CHECK(batches.depth() == 5);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const ferry::permutation order(rows, seed, static_cast<std::uint64_t>(epoch));
    std::size_t place = 0;
    std::int64_t number = 0;
    while (auto batch = batches.next()) {
      CHECK(batch->epoch() == epoch);
      CHECK(batch->number() == number++);
      const auto [features, labels] = batch->arrays();
      REQUIRE(features.rows() == batch->rows());
      REQUIRE(features.width() == width);
      REQUIRE(labels.rank() == 1);
      const auto got = fetched(exec, features);
      const auto got_labels = fetched(exec, labels);
      for (std::size_t i = 0; i < batch->rows(); ++i, ++place) {
        const auto row = static_cast<std::size_t>(order(static_cast<std::int64_t>(place)));
        REQUIRE(batch->samples()[i] == static_cast<std::int64_t>(row));
        REQUIRE(got_labels[i] == y[row]);
        REQUIRE(batch->host<1>()(i) == y[row]);
        for (std::size_t j = 0; j < width; ++j) REQUIRE(got[i * width + j] == x[row * width + j]);
      }
    }
    CHECK(number == 16);
    CHECK(place == rows);
  }
  CHECK_FALSE(batches.next().has_value());
  const auto times = batches.times();
  REQUIRE(times.size() == 2);
  CHECK(times[1].samples == rows);
  const std::string report = batches.report();
  CHECK(std::count(report.begin(), report.end(), '\n') == 3);
}

TEST_CASE("tables of every host space and rank are sources", "[prefetcher]") {
  const exec_space exec;
  ferry::tensor<double, ferry::pinned_space> cubes("cubes", 20, 2, 3);
  ferry::tensor<ferry::half_t, ferry::pageable_space> halves("halves", 20, 1);
  ferry::init::uniform(exec, cubes, 0, 1, 1);
  ferry::init::uniform(exec, halves, 0, 1, 2);
  Kokkos::View<std::int64_t**, Kokkos::LayoutRight, Kokkos::HostSpace> view("view", 20, 4);
  for (int i = 0; i < 80; ++i) view(i / 4, i % 4) = i;
  ferry::prefetcher batches(exec, ferry::samples_of(cubes, halves, view), {.batch = 8});
  std::size_t first = 0;
  while (auto batch = batches.next()) {
    const auto a = batch->get<0>();
    CHECK(a.rank() == 3);
    CHECK(a.extent(1) == 2);
    CHECK(a.extent(2) == 3);
    const auto got = fetched(exec, a);
    const auto integers = fetched(exec, batch->get<2>());
    for (std::size_t i = 0; i < batch->rows(); ++i) {
      for (std::size_t j = 0; j < 6; ++j) REQUIRE(got[6 * i + j] == cubes(first + i, j / 3, j % 3));
      for (std::size_t j = 0; j < 4; ++j)
        REQUIRE(integers[4 * i + j] == static_cast<std::int64_t>(4 * (first + i) + j));
      REQUIRE(batch->host<1>()(i, 0) == halves(first + i, 0));
    }
    first += batch->rows();
  }
  CHECK(first == 20);
}

TEST_CASE("a function makes batches on worker threads", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  const auto me = std::this_thread::get_id();
  std::atomic<int> arrivals{0};  // assertions are for the test's own thread
  auto source = ferry::made_by(
      1000,
      [&arrivals, me](const batch_request& request, std::span<float> x, std::span<std::int64_t> rows) {
        if (std::this_thread::get_id() == me) ++arrivals;
        if (x.size() != 3 * request.samples.size()) ++arrivals;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          rows[i] = request.samples[i] % 50;
          for (std::size_t j = 0; j < 3; ++j) x[3 * i + j] = static_cast<float>(request.samples[i]);
        }
      },
      batch_field<float>("x", 3), batch_field<std::int64_t>("rows"));
  ferry::tensor<float, ferry::mapped_space> table("table", 50, 3);
  ferry::init::zeros(exec, table);
  ferry::prefetcher batches(exec, std::move(source),
                            {.batch = 33, .workers = 2, .last = ferry::last_batch::drop});
  int count = 0;
  while (auto batch = batches.next()) {
    ferry::scatter_add(exec, table, batch->get<1>(), batch->get<0>()).detach();
    ++count;
  }
  CHECK(count == 30);
  CHECK(arrivals == 0);
  std::vector<float> expected(150);
  for (int sample = 0; sample < 990; ++sample)
    for (std::size_t j = 0; j < 3; ++j)
      expected[static_cast<std::size_t>(sample % 50) * 3 + j] += static_cast<float>(sample);
  exec.fence();
  CHECK(take(table) == expected);
}

TEST_CASE("an exception of the source is thrown in order", "[prefetcher]") {
  const exec_space exec;
  ferry::prefetcher batches(exec,
                            ferry::made_by(
                                100,
                                [](const batch_request& request, std::span<int>) {
                                  if (request.number == 6) throw std::runtime_error("sample 60 is broken");
                                },
                                batch_field<int>("x")),
                            {.batch = 10, .workers = 3});
  for (int k = 0; k < 6; ++k) REQUIRE(batches.next().has_value());
  for (int repeat = 0; repeat < 2; ++repeat)
    CHECK_THROWS_MATCHES(batches.next(), std::runtime_error, Catch::Matchers::Message("sample 60 is broken"));
}

TEST_CASE("the loop may end by an exception", "[prefetcher]") {
  const watchdog dog("prefetcher");
  const exec_space exec;
  const std::vector<float> table(1000);
  for (int stop = 0; stop < 20; ++stop) {
    const auto loop = [&] {
      ferry::prefetcher batches(exec, ferry::samples_of(table), {.batch = 5, .workers = 2});
      for (int k = 0; batches.next(); ++k)
        if (k == stop) throw std::logic_error("enough");
    };
    CHECK_THROWS_AS(loop(), std::logic_error);
  }
}

TEST_CASE("prefetchers move, and several live at once", "[prefetcher]") {
  const exec_space exec;
  std::vector<std::int32_t> table(100);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::int32_t>(i);
  using loader = ferry::prefetcher<exec_space, decltype(ferry::samples_of(table))>;
  std::vector<loader> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(exec, ferry::samples_of(table),
                       ferry::prefetch_options{.batch = 4, .shuffle = 1, .rank = rank, .ranks = 3});
  std::vector<int> result(100);
  for (std::int64_t k = 0; k < ranks[0].batches_per_epoch(); ++k)
    for (auto& rank : ranks) {
      const auto batch = rank.next();
      REQUIRE(batch.has_value());
      for (const auto value : fetched(exec, batch->get<0>())) ++result[static_cast<std::size_t>(value)];
    }
  CHECK(std::count(result.begin(), result.end(), 1) == 100);
  ranks.front() = std::move(ranks.back());
  CHECK_FALSE(ranks.front().next().has_value());
}

TEST_CASE("tables that do not fit together are refused", "[prefetcher]") {
  const exec_space exec;
  const std::vector<float> long_one(10), short_one(9);
  CHECK_THROWS_AS(ferry::samples_of(long_one, short_one), ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::prefetcher(exec, ferry::samples_of(long_one), {.batch = 0}),
                  ferry::invalid_argument);
  CHECK_THROWS_AS(ferry::prefetcher(exec, ferry::samples_of(long_one), {.workers = 0}),
                  ferry::invalid_argument);
}

TEST_CASE("a batch may have no bytes", "[prefetcher]") {
  const exec_space exec;
  ferry::tensor<float, ferry::pinned_space> thin("thin", 10, 0);
  ferry::prefetcher batches(exec, ferry::samples_of(thin), {.batch = 4});
  std::size_t rows = 0;
  while (const auto batch = batches.next()) rows += batch->get<0>().rows();
  CHECK(rows == 10);
}

TEST_CASE("next() throws the errors of detached work on the instance, each once", "[prefetcher]") {
  const exec_space exec;
  const auto table = make<ferry::mapped_space>("table", 3, 1, std::vector<float>{5, 6, 7});
  ferry::tensor<float, ferry::device_space> rows("rows", 4, 1);
  const std::vector<std::int32_t> indices{0, 1, 2, 2, 1, 3, 0, 0, 9, 1, 1, 1, 2, 2, 2, 2};
  ferry::prefetcher batches(exec, ferry::samples_of(indices), {.batch = 4});
  int served = 0, errors = 0;
  for (bool goes_on = true; goes_on;) {
    try {
      const auto batch = batches.next();
      goes_on = batch.has_value();
      if (!goes_on) break;
      ++served;
      ferry::gather(exec, table, batch->get<0>(), rows).detach();
      exec.fence("ferry_test::gathered");
    } catch (const ferry::out_of_range&) {
      ++errors;
    }
  }
  CHECK(served == 4);
  CHECK(errors == 2);
}

#if !defined(__SANITIZE_THREAD__)
// A child has none of the threads: next() says so, and neither the destructor nor exit hangs.
TEST_CASE("a child process is refused", "[prefetcher]") {
  const watchdog dog("fork");
  const exec_space exec;
  const std::vector<float> table(1000);
  std::optional<ferry::prefetcher<exec_space, decltype(ferry::samples_of(table))>> batches;
  batches.emplace(exec, ferry::samples_of(table), ferry::prefetch_options{.batch = 5});
  REQUIRE(batches->next().has_value());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int status = 1;
    try {
      static_cast<void>(batches->next());
    } catch (const ferry::invalid_argument& refused) {
      status = std::string(refused.what()).find("forked") != std::string::npos ? 0 : 2;
    }
    batches.reset();
    _exit(status);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(batches->next().has_value());
}
#endif

}  // namespace ferry_test::prefetcher_test
