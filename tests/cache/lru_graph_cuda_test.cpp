// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"
#include "reference/lru.hpp"

#include <ferry/cache.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

/// resolve in CUDA graphs, which are launched again with other rows, next to a model of the slots.
namespace ferry_test::lru_graph_cuda_test {

constexpr std::int64_t groups = 6, slots = 40, group_rows = 300, k = 24;
constexpr std::size_t width = 20, n = groups * k, rows = groups * group_rows;
const ferry::optim::adam rule{.lr = 0.02};

void check(cudaError_t status) {
  CAPTURE(cudaGetErrorString(status));
  REQUIRE(status == cudaSuccess);
}

/// Reads rows where they lie; -1 where there is none.
struct read_slots {
  const float* hot;
  const std::int32_t* slot_of;
  float* out;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t p = i / std::int64_t{width};
    out[i] = slot_of[p] < 0 ? -1.0F : hot[slot_of[p] * std::int64_t{width} + i % std::int64_t{width}];
  }
};

std::vector<std::int64_t> draw_rows(std::mt19937_64& random) {
  std::vector<std::int64_t> list(n);
  for (std::size_t p = 0; p < n; ++p) {
    const auto first = static_cast<std::int64_t>(p) / k * group_rows;
    const auto range = static_cast<std::uint64_t>((random() & 3) != 0 ? 60 : group_rows);
    list[p] = random() % 11 == 0 ? -1 : first + static_cast<std::int64_t>(random() % range);
  }
  return list;
}

/// A table with its cache and model, and a table without a cache.
struct decoder {
  exec_space exec;
  std::mt19937_64 random = generator(91);
  std::vector<float> start = values<float>(random, rows* width);
  ferry::tensor<float, ferry::mapped_space> table = make<ferry::mapped_space>("table", rows, width, start);
  ferry::tensor<float, ferry::device_space> twin = make<ferry::device_space>("twin", rows, width, start);
  decltype(ferry::optim::make_state(rule, table)) state = ferry::optim::make_state(rule, table);
  decltype(ferry::optim::make_state(rule, twin)) twin_state = ferry::optim::make_state(rule, twin);
  ferry::tensor<float, ferry::device_space> grads =
      make<ferry::device_space>("grads", n, width, values<float>(random, n* width));
  ferry::tensor<std::int32_t, ferry::device_space> list =
      make<ferry::device_space>("list", groups, k, std::vector<std::int32_t>(n, -1));
  ferry::tensor<std::int32_t, ferry::device_space> ids =
      make<ferry::device_space>("ids", std::vector<std::int32_t>(n, 0));
  ferry::tensor<std::int32_t, ferry::device_space> slot_of =
      make<ferry::device_space>("slots", groups, k, std::vector<std::int32_t>(n, 77));
  ferry::tensor<float, ferry::device_space> out =
      make<ferry::device_space>("out", n, width, std::vector<float>(n* width, 0));
  ferry::cached_table<ferry::tensor<float, ferry::mapped_space>, ferry::cache::lru> hot;
  lru_model model{groups, slots, group_rows};

  decoder(const exec_space& instance, bool write_back)
      : exec(instance),
        hot(table, ferry::cache::lru{.slots = slots, .groups = groups, .write_back = write_back}) {}

  void read() {
    ferry::resolve(exec, hot, list, slot_of).detach();
    Kokkos::parallel_for("read",
                         Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(exec, 0, n * width),
                         read_slots{hot.device_rows().data(), slot_of.data(), out.data()});
  }
  void step() {
    ferry::step(exec, rule, hot, state, ids, grads).detach();
    ferry::step(exec, rule, twin, twin_state, ids, grads).detach();
  }
  /// The rows of the next launch, with some of them for the step.
  std::vector<std::int64_t> next_rows() {
    const auto next = draw_rows(random);
    std::vector<std::int64_t> step_rows(n);
    for (std::size_t p = 0; p < n; ++p)
      step_rows[p] = next[p] < 0 ? static_cast<std::int64_t>(random() % rows) : next[p];
    put(list, std::vector<std::int32_t>(next.begin(), next.end()));
    put(ids, std::vector<std::int32_t>(step_rows.begin(), step_rows.end()));
    std::sort(step_rows.begin(), step_rows.end());
    sorted_ids = step_rows;
    return next;
  }
  /// Slots and what was read from them. `before`: the rows before the step.
  void check_read(const std::vector<std::int64_t>& named, const std::vector<float>& before) {
    const auto expected = model.resolve(named, true, false);
    REQUIRE(expected.overflows == 0);
    const auto slots_of_rows = take(slot_of);
    REQUIRE(std::vector<std::int64_t>(slots_of_rows.begin(), slots_of_rows.end()) == expected.slots);
    const auto content = take(out);
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t c = 0; c < width; ++c)
        REQUIRE(content[p * width + c] ==
                (named[p] < 0 ? -1.0F : before[static_cast<std::size_t>(named[p]) * width + c]));
  }
  std::vector<std::int64_t> sorted_ids;
};

/// The nodes of a graph run on the device alone: none calls the host, none takes memory.
void check_nodes(cudaGraph_t graph) {
  std::size_t count = 0;
  check(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  check(cudaGraphGetNodes(graph, nodes.data(), &count));
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type));
    CHECK(type != cudaGraphNodeTypeHost);
    CHECK(type != cudaGraphNodeTypeMemAlloc);
    CHECK(type != cudaGraphNodeTypeMemFree);
  }
}

void replay(bool write_back) {
  CAPTURE(write_back);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    decoder set(exec_space(stream), write_back);
    const auto turn = [&](const auto& run) {
      const auto named = set.next_rows();
      const auto before = take(set.twin);
      run();
      check(cudaStreamSynchronize(stream));
      set.check_read(named, before);
      set.model.resolve(set.sorted_ids, false, true);  // of the step
    };
    const auto decode = [&] {
      set.read();
      set.step();
    };
    turn(decode);  // caches the state and loads the kernels
    cudaGraph_t captured = nullptr;
    cudaGraphExec_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    decode();
    check(cudaStreamEndCapture(stream, &captured));
    check_nodes(captured);
    check(cudaGraphInstantiate(&graph, captured, 0));
    const auto allocations = ferry::memory_statistics<ferry::device_space>().total_count;
    const auto pinned = ferry::memory_statistics<ferry::pinned_space>().total_count;
    for (int launch = 0; launch < 1000; ++launch) {
      CAPTURE(launch);
      turn([&] { check(cudaGraphLaunch(graph, stream)); });
      if (!write_back && launch % 50 == 0) {
        REQUIRE(same_bits(take(set.table), take(set.twin)));
        REQUIRE(same_bits(take(set.state.field(1)), take(set.twin_state.field(1))));
      }
    }
    CHECK(ferry::memory_statistics<ferry::device_space>().total_count == allocations);
    CHECK(ferry::memory_statistics<ferry::pinned_space>().total_count == pinned);
    set.hot.flush(set.exec).wait();
    CHECK(same_bits(take(set.table), take(set.twin)));
    CHECK(same_bits(take(set.state.field(1)), take(set.twin_state.field(1))));
    check(cudaGraphExecDestroy(graph));
    check(cudaGraphDestroy(captured));
  }
  check(cudaStreamDestroy(stream));
}

TEST_CASE("graphs with resolve follow rows that change", "[cache][lru][graph]") {
  replay(false);
  replay(true);
}

TEST_CASE("verbs of two streams on a cache of the rows used last are in order", "[cache][lru]") {
  cudaStream_t streams[2] = {};
  cudaEvent_t has_read = nullptr;
  for (cudaStream_t& stream : streams) check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&has_read, cudaEventDisableTiming));
  {
    decoder set(exec_space(streams[0]), false);
    const exec_space side(streams[1]);
    auto next_list = make<ferry::device_space>("next", groups, k, std::vector<std::int32_t>(n, -1));
    for (int batch = 0; batch < 300; ++batch) {
      CAPTURE(batch);
      const auto named = set.next_rows(), prefetched = draw_rows(set.random);
      put(next_list, std::vector<std::int32_t>(prefetched.begin(), prefetched.end()));
      const auto before = take(set.twin);
      set.read();
      check(cudaEventRecord(has_read, streams[0]));
      check(cudaStreamWaitEvent(streams[1], has_read, 0));
      set.hot.prefetch(side, next_list, ferry::occupancy::blocks<4>{}).detach();
      set.step();
      if (batch % 7 == 0) set.hot.forget(side, batch % groups).detach();
      check(cudaDeviceSynchronize());
      set.check_read(named, before);
      REQUIRE(set.model.resolve(prefetched, true, false).overflows == 0);
      set.model.resolve(set.sorted_ids, false, true);
      if (batch % 7 == 0) set.model.forget(batch % groups);
      if (batch % 20 == 0) REQUIRE(same_bits(take(set.table), take(set.twin)));
    }
  }
  check(cudaEventDestroy(has_read));
  for (const cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
}

}  // namespace ferry_test::lru_graph_cuda_test
