// SPDX-License-Identifier: Apache-2.0
// Experts on the host: each layer of a model has 64 experts, of which a token uses 4. Host memory holds all of them, device
// memory those that were used last.
//
//   experts [STEPS]
//
// A layer is a group of the cache. A stand-in for the router names the experts on the device; resolve brings the missing ones,
// and the layer's kernel reads them in their slots. The program compares every output with one from the experts in host
// memory, and prints hit rate and the rate of the fetches.
#include <ferry/cache.hpp>
#include <ferry/ferry.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;

constexpr std::int64_t layers = 4, experts = 64, choices = 4, slots = 16;

KOKKOS_FUNCTION float weight_of(std::int64_t expert, std::int64_t i) {
  return static_cast<float>((expert * 29 + i * 13) % 31);
}
struct fill_experts {
  KOKKOS_FUNCTION float operator()(std::int64_t expert, std::int64_t i) const { return weight_of(expert, i); }
};

/// Stand-in for the routers of all layers: some experts are popular for a while.
struct route {
  std::int32_t* rows;
  std::int64_t step;
  KOKKOS_FUNCTION static std::int64_t expert(std::int64_t step, std::int64_t layer, std::int64_t k) {
    const std::int64_t popular = (step / 8 * 5 + layer * 3 + k * 17) % experts;
    const std::int64_t random_expert = (step * 31 + layer * 7 + k * 23) % experts;
    return k % 2 == 0 ? popular : random_expert;
  }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t layer = i / choices;
    rows[i] = static_cast<std::int32_t>(layer * experts + expert(step, layer, i - layer * choices));
  }
};

/// Stand-in for a layer: the sums of its experts' weights, by columns of `columns`.
struct apply_experts {
  const float* hot;
  const std::int32_t* slot_of;
  float* out;
  std::int64_t size, columns;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t layer = i / columns, column = i - layer * columns;
    float sum = 0.0F;
    for (std::int64_t k = 0; k < choices; ++k)
      for (std::int64_t j = column; j < size; j += columns)
        sum += hot[slot_of[layer * choices + k] * size + j];
    out[i] = sum;
  }
};

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const int steps = argc > 1 ? std::atoi(argv[1]) : 200;
  const std::int64_t size = argc > 2 ? std::atoll(argv[2]) : 256 * 1024;  // floats of an expert
  constexpr std::int64_t columns = 256;
  if (steps < 1 || size < columns) {
    std::fprintf(stderr, "usage: %s [STEPS [FLOATS of an expert (from 256 on)]]\n", argv[0]);
    return 2;
  }
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> store("experts", layers * experts, size);
  ferry::init::custom(exec, store, fill_experts{});
  ferry::cached_table hot(store, ferry::cache::lru{.slots = slots, .groups = layers});
  ferry::tensor<std::int32_t, ferry::device_space> rows("rows", layers, choices),
      slot_of("slots", layers, choices);
  ferry::tensor<float, ferry::device_space> out("out", layers, columns);
  ferry::tensor<float, ferry::pageable_space> sums("sums", layers, columns);
  std::int64_t wrong = 0;
  double seconds = 0;
  for (int step = 0; step < steps; ++step) {
    Kokkos::parallel_for("route", range(exec, 0, layers * choices), route{rows.data(), step});
    exec.fence("route");
    const auto begin = std::chrono::steady_clock::now();
    ferry::resolve(exec, hot, rows, slot_of).wait();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    Kokkos::parallel_for("layer", range(exec, 0, layers * columns),
                         apply_experts{hot.device_rows().data(), slot_of.data(), out.data(), size, columns});
    ferry::copy(exec, out, sums).wait();
    for (std::int64_t layer = 0; layer < layers; ++layer)
      for (std::int64_t c = 0; c < columns; ++c) {
        float sum = 0.0F;
        for (std::int64_t k = 0; k < choices; ++k)
          for (std::int64_t j = c; j < size; j += columns)
            sum += weight_of(layer * experts + route::expert(step, layer, k), j);
        wrong += sum == sums(layer, c) ? 0 : 1;
      }
  }
  const auto counts = hot.statistics();
  const double bytes = static_cast<double>(counts.misses) * static_cast<double>(size) * 4;
  std::printf("%lld of %lld experts a layer in device memory: hit rate %.3f, fetches at %.1f GB/s\n",
              static_cast<long long>(slots), static_cast<long long>(experts), counts.hit_rate(),
              bytes / seconds * 1e-9);
  std::printf(wrong == 0 ? "all outputs are right\n" : "%lld outputs are wrong\n",
              static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}
