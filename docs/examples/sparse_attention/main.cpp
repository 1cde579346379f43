// SPDX-License-Identifier: Apache-2.0
// Sparse attention over a store of keys and values in host memory: each step of each request reads the k tokens that score
// highest, of which most were read by the step before.
//
//   sparse_attention [STEPS [TOKENS]]
//
// A stand-in for an indexer names the tokens on the device. ferry::resolve finds their slots, fetches those that are missing,
// and the attention kernel reads the slots in place. On a CUDA device one graph holds the three of them and is launched for
// each step. The program compares every sum with one over the store itself, and prints hit rate and times.
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifdef KOKKOS_ENABLE_CUDA
#include <cuda_runtime.h>
#endif

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using index_array = ferry::tensor<std::int32_t, ferry::device_space>;

constexpr std::int64_t requests = 8, chosen = 256, slots = 1024, width = 128;

/// The numbers of a token's row: small whole numbers, whose sums floats hold exactly.
KOKKOS_FUNCTION float element_of(std::int64_t token, std::int64_t column) {
  return static_cast<float>((token * 37 + column * 11) % 64);
}
struct fill_store {
  KOKKOS_FUNCTION float operator()(std::int64_t token, std::int64_t column) const {
    return element_of(token, column);
  }
};

/// Stand-in for an indexer: a window of neighbours that moves with the step, and some tokens from anywhere. The step is in
/// device memory, so each launch of a graph has the next one.
struct choose_tokens {
  std::int32_t* rows;
  const std::int64_t* step;
  std::int64_t tokens;

  KOKKOS_FUNCTION static std::int64_t token(std::int64_t step, std::int64_t request, std::int64_t k,
                                            std::int64_t tokens) {
    const std::int64_t recent = (step * 3 + request * 101 + k) % tokens;
    const std::int64_t far = (step / 4 * 7919 + request * 4243 + k * 104729) % tokens;
    return k % 8 == 0 ? far : recent;
  }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t request = i / chosen, k = i - request * chosen;
    rows[i] =
        k % 50 == 49 ? -1 : static_cast<std::int32_t>(request * tokens + token(*step, request, k, tokens));
  }
};

/// Stand-in for attention: sums the rows of each request, by column.
struct attend {
  const float* hot;
  const std::int32_t* slot_of;
  float* out;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t request = i / width, column = i - request * width;
    float sum = 0.0F;
    for (std::int64_t k = 0; k < chosen; ++k)
      if (const std::int32_t slot = slot_of[request * chosen + k]; slot >= 0)
        sum += hot[slot * width + column];
    out[i] = sum;
  }
};
struct next_step {
  std::int64_t* step;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { ++*step; }
};

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;

template <class Hot>
void decode(const exec_space& exec, Hot& hot, index_array& rows, index_array& slot_of,
            ferry::tensor<std::int64_t, ferry::device_space>& step,
            ferry::tensor<float, ferry::device_space>& out, std::int64_t tokens) {
  Kokkos::parallel_for("choose", range(exec, 0, requests * chosen),
                       choose_tokens{rows.data(), step.data(), tokens});
  ferry::resolve(exec, hot, rows, slot_of).detach();
  Kokkos::parallel_for("attend", range(exec, 0, requests * width),
                       attend{hot.device_rows().data(), slot_of.data(), out.data()});
  Kokkos::parallel_for("next", range(exec, 0, 1), next_step{step.data()});
}

std::int64_t wrong_sums(const exec_space& exec, const ferry::tensor<float, ferry::device_space>& out,
                        std::int64_t step, std::int64_t tokens) {
  ferry::tensor<float, ferry::pageable_space> sums("sums", requests, width);
  ferry::copy(exec, out, sums).wait();
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < requests; ++r)
    for (std::int64_t c = 0; c < width; ++c) {
      float sum = 0.0F;
      for (std::int64_t k = 0; k < chosen; ++k)
        if (k % 50 != 49) sum += element_of(r * tokens + choose_tokens::token(step, r, k, tokens), c);
      wrong += sum == sums(r, c) ? 0 : 1;
    }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 400;
  const std::int64_t tokens = argc > 2 ? std::atoll(argv[2]) : 50000;
  if (steps < 2 || tokens < 2 * slots) {
    std::fprintf(stderr, "usage: %s [STEPS [TOKENS of a request (from %lld on)]]\n", argv[0],
                 static_cast<long long>(2 * slots));
    return 2;
  }
  Kokkos::ScopeGuard kokkos(argc, argv);
  int status = 0;
  {
#ifdef KOKKOS_ENABLE_CUDA
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    const exec_space exec(stream);
#else
    const exec_space exec;
#endif
    {
      ferry::tensor<float, ferry::mapped_space> store("store", requests * tokens, width);
      ferry::init::custom(exec, store, fill_store{});
      ferry::cached_table hot(store, ferry::cache::lru{.slots = slots, .groups = requests});
      index_array rows("rows", requests, chosen), slot_of("slots", requests, chosen);
      ferry::tensor<std::int64_t, ferry::device_space> step("step", 1);
      ferry::tensor<float, ferry::device_space> out("out", requests, width);
      ferry::copy(exec, std::vector<std::int64_t>{0}, step).wait();
      decode(exec, hot, rows, slot_of, step, out, tokens);  // loads the kernels
      exec.fence("first");
      std::int64_t wrong = wrong_sums(exec, out, 0, tokens);
#ifdef KOKKOS_ENABLE_CUDA
      cudaGraph_t captured = nullptr;
      cudaGraphExec_t graph = nullptr;
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      decode(exec, hot, rows, slot_of, step, out, tokens);
      cudaStreamEndCapture(stream, &captured);
      cudaGraphInstantiate(&graph, captured, 0);
      const auto run = [&] { cudaGraphLaunch(graph, stream); };
#else
      const auto run = [&] { decode(exec, hot, rows, slot_of, step, out, tokens); };
#endif
      const auto begin = std::chrono::steady_clock::now();
      for (int s = 1; s < steps; ++s) {
        run();
        if (s % 16 == 0) wrong += wrong_sums(exec, out, s, tokens);
      }
      exec.fence("last");
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      wrong += wrong_sums(exec, out, steps - 1, tokens);
#ifdef KOKKOS_ENABLE_CUDA
      cudaGraphExecDestroy(graph);
      cudaGraphDestroy(captured);
#endif
      const auto counts = hot.statistics();
      std::printf(
          "%lld requests of %lld tokens, %lld slots each: hit rate %.3f, %.1f us a step with its checks\n",
          static_cast<long long>(requests), static_cast<long long>(tokens), static_cast<long long>(slots),
          counts.hit_rate(), seconds / (steps - 1) * 1e6);
      std::printf(wrong == 0 ? "all sums are right\n" : "%lld sums are wrong\n",
                  static_cast<long long>(wrong));
      status = wrong == 0 ? 0 : 1;
    }
  }
  return status;
}
