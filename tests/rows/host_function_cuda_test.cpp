// SPDX-License-Identifier: Apache-2.0
#include "support/graph_cuda.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

/// Verbs that occupy host threads, while the device waits for host code of the user's: that code must get
/// what it needs.
namespace ferry_test::host_function_cuda_test {

struct ones {
  std::int64_t* target;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { target[i] = 1; }
};

/// Adds numbers up on the default host instance.
std::int64_t compute_on_host() {
  const Kokkos::DefaultHostExecutionSpace host;
  std::vector<std::int64_t> whole(1000);
  Kokkos::parallel_for("ferry_test::ones",
                       Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(host, 0, 1000),
                       ones{whole.data()});
  host.fence("ferry_test::ones");
  std::int64_t sum = 0;
  for (const auto number : whole) sum += number;
  return sum;
}

/// Begins late enough for a verb that was called after it was enqueued to have its workers at work.
void CUDART_CB compute_late(void* sum) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  *static_cast<std::atomic<std::int64_t>*>(sum) = compute_on_host();
}
/// Waits for a word of the host's.
void CUDART_CB wait_for_word(void* word) {
  while (!*static_cast<std::atomic<bool>*>(word)) std::this_thread::yield();
}

constexpr std::size_t rows = 60000, width = 32, n = 100000;

template <class Space>
struct operands {
  std::vector<float> content;
  std::vector<std::int64_t> ids;
  std::vector<float> expected;
  ferry::tensor<float, Space> table;
  ferry::tensor<std::int64_t, ferry::device_space> device_ids{"which", n};
  ferry::tensor<float, ferry::device_space> batch{"batch", n, width};

  explicit operands(std::uint64_t seed) {
    auto random = generator(seed);
    content = values<float>(random, rows * width);
    ids = indices<std::int64_t>(random, n, rows);
    expected = gathered(content, width, ids, std::vector<float>(n * width));
    table = make<Space>("weights", rows, width, content);
    put(device_ids, ids);
    put(batch, std::vector<float>(n * width, -1.0f));
  }
};

TEST_CASE("a host function that computes, before a cooperative gather of its stream",
          "[slots][host_function]") {
  const watchdog dog("a host function before a cooperative gather");
  operands<ferry::pinned_space> problem(91);
  const stream queue(cudaStreamNonBlocking);
  ferry::gather(queue.exec(), problem.table, problem.device_ids, problem.batch, ferry::path::cooperative{})
      .wait();
  for (int round = 0; round < 3; ++round) {
    put(problem.batch, std::vector<float>(n * width, -1.0f));
    std::atomic<std::int64_t> sum{0};
    check(cudaLaunchHostFunc(queue.handle(), compute_late, &sum));
    ferry::gather(queue.exec(), problem.table, problem.device_ids, problem.batch, ferry::path::cooperative{})
        .wait();
    CHECK(sum == 1000);
    CHECK(same_bits(take(problem.batch), problem.expected));
  }
}

TEST_CASE("a host function that computes, before a staged gather of its stream", "[slots][host_function]") {
  const watchdog dog("a host function before a staged gather");
  operands<ferry::pageable_space> problem(92);
  const stream queue(cudaStreamNonBlocking);
  for (int round = 0; round < 3; ++round) {
    put(problem.batch, std::vector<float>(n * width, -1.0f));
    std::atomic<std::int64_t> sum{0};
    check(cudaLaunchHostFunc(queue.handle(), compute_late, &sum));
    ferry::gather(queue.exec(), problem.table, problem.ids, problem.batch, ferry::path::staged{}).wait();
    CHECK(sum == 1000);
    CHECK(same_bits(take(problem.batch), problem.expected));
  }
}

TEST_CASE("a staged gather into what another stream reads after a host function", "[slots][host_function]") {
  const watchdog dog("a staged gather after another stream's host function");
  operands<ferry::pageable_space> problem(93);
  const stream a(cudaStreamNonBlocking), b(cudaStreamNonBlocking);
  const std::vector<float> before(n * width, 2.0f);
  ferry::tensor<float, ferry::device_space> result("seen", n, width);
  for (int round = 0; round < 3; ++round) {
    put(problem.batch, before);
    std::atomic<std::int64_t> sum{0};
    check(cudaLaunchHostFunc(b.handle(), compute_late, &sum));
    auto read = ferry::copy(b.exec(), problem.batch, result);
    ferry::gather(a.exec(), problem.table, problem.ids, problem.batch, ferry::path::staged{}).wait();
    read.wait();
    CHECK(sum == 1000);
    CHECK(same_bits(take(result), before));
    CHECK(same_bits(take(problem.batch), problem.expected));
  }
}

TEST_CASE("a cooperative scatter after a host function that computes", "[slots][host_function]") {
  const watchdog dog("a cooperative scatter after a host function");
  operands<ferry::pinned_space> problem(94);
  const stream queue(cudaStreamNonBlocking);
  const auto plan = ferry::make_plan(queue.exec(), problem.ids, rows);
  static_cast<void>(plan.unique_count());
  put(problem.batch, problem.expected);
  put(problem.table, std::vector<float>(rows * width, -1.0f));
  std::atomic<std::int64_t> sum{0};
  check(cudaLaunchHostFunc(queue.handle(), compute_late, &sum));
  ferry::scatter(queue.exec(), problem.table, plan, problem.batch, ferry::path::cooperative{}).wait();
  CHECK(sum == 1000);
  auto expected = std::vector<float>(rows * width, -1.0f);
  for (const auto row : problem.ids)
    for (std::size_t c = 0; c < width; ++c) {
      const auto element = static_cast<std::size_t>(row) * width + c;
      expected[element] = problem.content[element];
    }
  CHECK(same_bits(take(problem.table), expected));
}

TEST_CASE("other threads compute while a verb waits for its stream", "[slots][host_function]") {
  const watchdog dog("host kernels next to a gather that waits");
  operands<ferry::pageable_space> problem(95);
  const stream queue(cudaStreamNonBlocking);
  std::atomic<bool> word{false};
  check(cudaLaunchHostFunc(queue.handle(), wait_for_word, &word));
  std::thread computes([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (int kernel = 0; kernel < 100; ++kernel) static_cast<void>(compute_on_host());
    word = true;
  });
  ferry::gather(queue.exec(), problem.table, problem.ids, problem.batch, ferry::path::staged{}).wait();
  computes.join();
  CHECK(same_bits(take(problem.batch), problem.expected));
}

}  // namespace ferry_test::host_function_cuda_test
