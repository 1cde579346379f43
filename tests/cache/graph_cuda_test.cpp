// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

/// Verbs on cached tables in CUDA graphs, launched while rows are exchanged, next to graphs of the same verbs on
/// a table without a cache.
namespace ferry_test::graph_cuda_test {

constexpr std::size_t rows = 2000, width = 32, n = 500;
const ferry::optim::adam rule{.lr = 0.02};

void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

/// A graph of the verbs that `enqueue` enqueues, and their tickets.
class recorded {
 public:
  template <class Enqueue>
  recorded(cudaStream_t stream, const Enqueue& enqueue) : stream_(stream) {
    cudaGraph_t captured = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    check(cudaStreamEndCapture(stream, &captured));
    check(cudaGraphInstantiate(&graph_, captured, 0));
    check(cudaGraphDestroy(captured));
  }
  recorded(const recorded&) = delete;
  recorded& operator=(const recorded&) = delete;
  ~recorded() { static_cast<void>(cudaGraphExecDestroy(graph_)); }
  void launch() const { check(cudaGraphLaunch(graph_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
};

void replay(int capture_at, std::uint64_t salt) {
  CAPTURE(capture_at);
  auto random = generator(salt);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream));
  {
    const exec_space instance(stream);
    const auto start = values<float>(random, rows * width);
    auto table = make<ferry::mapped_space>("table", rows, width, start);
    auto twin = make<ferry::mapped_space>("twin", rows, width, start);
    auto state = ferry::optim::make_state(rule, table);
    auto twin_state = ferry::optim::make_state(rule, twin);
    auto grads = make<ferry::device_space>("grads", n, width, values<float>(random, n * width));
    auto mine = make<ferry::device_space>("mine", n, width, std::vector<float>(n * width, -1.0f));
    auto twin_out = make<ferry::device_space>("its", n, width, std::vector<float>(n * width, -2.0f));
    const auto plan_of = [&](int batch) {
      return ferry::make_plan(
          instance, skewed<std::int32_t>(random, n, rows, static_cast<std::size_t>(batch) * 60, 200), rows);
    };
    const auto captured_plan = plan_of(3);
    static_cast<void>(captured_plan.unique_count());
    {
      ferry::cached_table hot(table, ferry::cache::frequency{.rows = 220, .refresh = 16});
      const auto train = [&](int batch) {
        const auto plan = plan_of(batch);
        ferry::gather(instance, hot, plan, mine).detach();
        ferry::gather(instance, twin, plan, twin_out).detach();
        ferry::step(instance, rule, hot, state, plan, grads).detach();
        ferry::step(instance, rule, twin, twin_state, plan, grads).detach();
      };
      for (int b = 0; b < capture_at; ++b) train(b);
      instance.fence("before the capture");
      const recorded cached(stream, [&] {
        ferry::gather(instance, hot, captured_plan, mine).detach();
        ferry::step(instance, rule, hot, state, captured_plan, grads).detach();
      });
      const recorded plain(stream, [&] {
        ferry::gather(instance, twin, captured_plan, twin_out).detach();
        ferry::step(instance, rule, twin, twin_state, captured_plan, grads).detach();
      });
      for (int b = capture_at; b < capture_at + 24; ++b) {
        CAPTURE(b);
        cached.launch();
        plain.launch();
        if (b % 5 == 0) {
          instance.fence("launches");
          REQUIRE(same_bits(take(mine), take(twin_out)));
        }
        train(b);
        if (b % 3 == 0) cached.launch();
        if (b % 3 == 0) plain.launch();
      }
      hot.flush(instance).wait();
      CHECK(same_bits(take(table), take(twin)));
      cached.launch();
      plain.launch();
      hot.flush(instance).wait();
    }
    instance.fence("end");
    CHECK(same_bits(take(table), take(twin)));
    CHECK(same_bits(take(state.field(1)), take(twin_state.field(1))));
  }
  check(cudaStreamDestroy(stream));
}

TEST_CASE("graphs on cached tables see the rows that are cached at each launch", "[cache][graph]") {
  std::uint64_t salt = 8800;
  for (const int capture_at : {2, 9, 17, 20, 33}) replay(capture_at, ++salt);
}

}  // namespace ferry_test::graph_cuda_test
