// SPDX-License-Identifier: Apache-2.0
/// cuEmbed's pooled lookups, and its transpose and backward pass with a step on the compressed gradient: the peer of
/// bench_bags. A figure cuembed.<name> is bench_bags' <name>: the same tables, 64-bit indices, gradients and bytes.
///
///   nvcc -std=c++17 -O3 -arch=sm_90 -I CUEMBED -o cuembed cuembed.cu
///   cuembed [--quick] [--repeats N] [--filter TEXT] [--json REPORT.json]
///
/// CUEMBED is a clone of github.com/NVIDIA/cuEmbed (written for 90dd843). cuEmbed checks no index. Its backward pass adds
/// into a gradient of zeros: the step leaves zeros behind itself, which saves a memset. The exit status is 1 if a result
/// is wrong.
#include "cuembed/include/embedding_lookup.cuh"
#include "cuembed/include/index_transforms.cuh"

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/tabulate.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace {

constexpr int width = 128, hotness = 10, set_count = 16, warm_up = 3;
using index_type = std::int64_t;
template <class T>
using device_array = thrust::device_vector<T>;

void require(cudaError_t status, const char* action) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", action, cudaGetErrorString(status));
  std::exit(1);
}

// The formulas of support/formulas.hpp and support/zipf.hpp: host and device agree on every bit of the integers.
__host__ __device__ std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ull;
  x ^= x >> 32;
  return x;
}
__host__ __device__ float element_value(std::int64_t place, std::uint64_t salt = 0) {
  return static_cast<float>(mix(static_cast<std::uint64_t>(place) + (salt << 48)) >> 40) * 0x1p-24F;
}
__host__ __device__ float gradient_value(std::int64_t place) { return element_value(place, 2) - 0.5F; }

struct any_row {
  std::uint64_t seed, rows;
  __device__ index_type operator()(std::int64_t position) const {
    return static_cast<index_type>(mix(mix(seed) + static_cast<std::uint64_t>(position)) % rows);
  }
};
/// The popular rows are the same in all sets.
struct popular_row {
  std::uint64_t seed, rows;
  __device__ index_type operator()(std::int64_t position) const {
    constexpr double exponent = 1.05;
    const auto drawn = mix(mix(seed) + static_cast<std::uint64_t>(position)) >> 11;
    const double u = static_cast<double>(drawn) * 0x1p-53;
    const double last = pow(static_cast<double>(rows) + 1, 1 - exponent);
    const double rank = pow(1 + u * (last - 1), 1 / (1 - exponent)) - 1;
    int bits = 2;
    while (bits < 63 && (std::uint64_t{1} << bits) < rows) ++bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const int fold = bits / 2 + 1;
    auto x = static_cast<std::uint64_t>(rank);
    if (x >= rows) x = rows - 1;
    do {
      for (std::uint64_t round = 0; round < 4; ++round) {
        x = (x * 0x9FB21C651E98DF25ull + mix(1 + (round << 32))) & mask;
        x ^= x >> (fold < bits ? fold : 1);
      }
    } while (x >= rows);
    return static_cast<index_type>(x);
  }
};
template <class T>
struct table_element {
  __device__ T operator()(std::int64_t i) const { return static_cast<T>(element_value(i)); }
};
struct gradient_element {
  __device__ float operator()(std::int64_t i) const { return gradient_value(i); }
};
struct bag_begin {
  __device__ int operator()(std::int64_t bag) const { return static_cast<int>(bag * hotness); }
};

template <class T, class Formula>
device_array<T> filled(std::int64_t count, Formula formula) {
  device_array<T> array(static_cast<std::size_t>(count));
  thrust::tabulate(array.begin(), array.end(), formula);
  return array;
}
template <class T>
T* data_of(device_array<T>& array) {
  return thrust::raw_pointer_cast(array.data());
}

struct settings {
  std::int64_t rows = 1000000;
  int bags = 65536, repeats = 15;
  bool quick = false;
  std::string filter, json;
};
using clock_type = std::chrono::steady_clock;
double since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}
double median(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const std::size_t middle = ms.size() / 2;
  return ms.size() % 2 == 1 ? ms[middle] : (ms[middle - 1] + ms[middle]) / 2;
}
struct readings {
  std::vector<double> device, wall;
};

class session {
 public:
  explicit session(settings options) : chosen(std::move(options)) {
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    require(cudaEventCreate(&first_), "cudaEventCreate");
    require(cudaEventCreate(&last_), "cudaEventCreate");
  }
  bool wants(const std::string& name) const { return name.find(chosen.filter) != std::string::npos; }

  template <class Formula>
  std::vector<device_array<index_type>> make_sets() {
    std::vector<device_array<index_type>> sets;
    for (int s = 0; s < (chosen.quick ? 4 : set_count); ++s)
      sets.push_back(filled<index_type>(std::int64_t{chosen.bags} * hotness,
                                        Formula{++seed_, static_cast<std::uint64_t>(chosen.rows)}));
    return sets;
  }

  /// As ferry's support/measure.hpp: calls that are waited for, and bursts between two events after 50 ms of work.
  template <class Work>
  readings measure(int burst, const Work& work) const {
    require(cudaDeviceSynchronize(), "fill");  // on another stream
    int call = 0;
    for (int i = 0; i < warm_up; ++i) wait_for(work, call++);
    const auto begin = clock_type::now();
    while (!chosen.quick && since(begin) < 50) burst_ms(burst, work, call);
    readings result;
    for (int i = 0; i < chosen.repeats; ++i) {
      const auto start = clock_type::now();
      wait_for(work, call++);
      result.wall.push_back(since(start));
    }
    for (int i = 0; i < chosen.repeats; ++i) result.device.push_back(burst_ms(burst, work, call));
    return result;
  }

  void add(const std::string& name, const readings& time, double bytes, std::int64_t wrong,
           std::int64_t distinct) {
    const double ms = median(time.device), wall = median(time.wall);
    std::printf("%-52s %10.4f ms %10.4f ms wall %10.2f GB/s%s\n", name.c_str(), ms, wall, bytes / ms / 1e6,
                wrong == 0 ? "" : "  WRONG");
    std::fflush(stdout);
    failed_ = failed_ || wrong != 0;
    char line[1024];
    std::snprintf(
        line, sizeof line,
        "{\"name\": \"%s\", \"setting\": {\"rows\": %lld, \"bags\": %d, \"hotness\": %d, \"distinct\": %lld, "
        "\"width\": %d}, \"ms\": {\"median\": %.6f}, \"wall_ms\": {\"median\": %.6f}, \"bytes\": %.0f, "
        "\"counts\": \"read + write\", \"gb_per_s\": %.3f, \"verified\": %s}",
        name.c_str(), static_cast<long long>(chosen.rows), chosen.bags, hotness,
        static_cast<long long>(distinct), width, ms, wall, bytes, bytes / ms / 1e6,
        wrong == 0 ? "true" : "false");
    figures_ += (figures_.empty() ? "  " : ",\n  ") + std::string(line);
  }

  int finish() const {
    if (chosen.json.empty()) return failed_ ? 1 : 0;
    std::FILE* const file = std::fopen(chosen.json.c_str(), "w");
    if (file == nullptr) {
      std::fprintf(stderr, "%s can't be written\n", chosen.json.c_str());
      return 1;
    }
    cudaDeviceProp device;
    require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    std::fprintf(
        file,
        "{\"versions\": {\"cuda\": %d}, \"device\": {\"name\": \"%s\"}, \"options\": {\"repeats\": %d},\n "
        "\"figures\": [\n%s],\n \"skipped\": []}\n",
        CUDART_VERSION, device.name, chosen.repeats, figures_.c_str());
    std::fclose(file);
    return failed_ ? 1 : 0;
  }

  settings chosen;
  cudaStream_t stream = nullptr;

 private:
  template <class Work>
  void wait_for(const Work& work, int call) const {
    work(call);
    require(cudaGetLastError(), "a launch");
    require(cudaStreamSynchronize(stream), "a call");
  }
  template <class Work>
  double burst_ms(int burst, const Work& work, int& call) const {
    require(cudaEventRecord(first_, stream), "cudaEventRecord");
    for (int i = 0; i < burst; ++i) work(call++);
    require(cudaEventRecord(last_, stream), "cudaEventRecord");
    require(cudaEventSynchronize(last_), "a burst");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, first_, last_), "cudaEventElapsedTime");
    return static_cast<double>(ms) / burst;
  }

  cudaEvent_t first_ = nullptr, last_ = nullptr;
  std::uint64_t seed_ = 0;
  bool failed_ = false;
  std::string figures_;
};

/// Bags in the type of the table: cuEmbed pools halves as halves.
template <class Element, class Formula>
void forward(session& run, const std::string& variant, bool fixed) {
  const std::string name = "cuembed." + variant;
  if (!run.wants(name)) return;
  const int bags = run.chosen.bags;
  auto table = filled<Element>(run.chosen.rows * width, table_element<Element>{});
  auto offsets = filled<int>(bags + 1, bag_begin{});
  device_array<Element> pooled(static_cast<std::size_t>(bags) * width);
  auto sets = run.make_sets<Formula>();
  const auto work = [&](int call) {
    cuembed::EmbeddingForward<Element, Element, index_type, int>(
        data_of(table), width, data_of(sets[static_cast<std::size_t>(call) % sets.size()]),
        fixed ? nullptr : data_of(offsets), nullptr, bags, fixed ? hotness : 0, cuembed::CombineMode::kSum,
        data_of(pooled), run.stream);
  };
  const auto time = run.measure(8, work);
  thrust::fill(pooled.begin(), pooled.end(), static_cast<Element>(0.0F));
  require(cudaDeviceSynchronize(), "fill");
  work(1);
  require(cudaStreamSynchronize(run.stream), "forward");
  const thrust::host_vector<Element> sums = pooled;
  const thrust::host_vector<index_type> rows = sets[1];
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double sum = 0;
    for (std::size_t k = i / width * hotness; k < (i / width + 1) * hotness; ++k)
      sum += static_cast<float>(
          static_cast<Element>(element_value(rows[k] * width + static_cast<std::int64_t>(i % width))));
    const double rounding = std::is_same_v<Element, float> ? 1e-5 : 1e-2;
    wrong += !(std::abs(static_cast<double>(static_cast<float>(sums[i])) - sum) <= rounding);
  }
  run.add(name, time, static_cast<double>(width) * bags * (hotness + 1) * sizeof(Element), wrong, 0);
}

struct sgd {
  static constexpr int fields = 0;
  __device__ void operator()(float& weight, float gradient, float&, float&, float, float) const {
    weight -= 0.1F * gradient;
  }
  static double first(double weight, double gradient) { return weight - 0.1 * gradient; }
  static constexpr double slope = 0.1;
};
struct adam {
  static constexpr int fields = 2;
  __device__ void operator()(float& weight, float gradient, float& m, float& v, float step_size,
                             float root) const {
    m = 0.9F * m + 0.1F * gradient;
    v = 0.999F * v + 0.001F * gradient * gradient;
    weight -= step_size * m / (sqrtf(v) * root + 0.25F);
  }
  static double first(double weight, double gradient) {
    return weight - 0.1 * gradient / (std::abs(gradient) + 0.25);
  }
  static constexpr double slope = 0.1 / 0.25;
};

/// A warp for each row of the compressed gradient. Their number lies in the device: the last remapped index. The
/// gradient is left as zeros for the next backward pass.
template <class Rule>
__global__ void apply_rule(float4* table, float4* moments, float4* gradient, const index_type* rows,
                           const index_type* remapped, int positions, float step_size, float root) {
  static_assert(width == 4 * 32);
  const index_type count = remapped[positions - 1] + 1, warps = gridDim.x * blockDim.y;
  for (index_type i = blockIdx.x * blockDim.y + threadIdx.y; i < count; i += warps) {
    const std::int64_t source = i * 32 + threadIdx.x, target = rows[i] * 32 + threadIdx.x;
    const std::int64_t moment = rows[i] * 64 + threadIdx.x;
    const float4 g = gradient[source];
    gradient[source] = make_float4(0, 0, 0, 0);
    float4 weight = table[target], m = make_float4(0, 0, 0, 0), v = m;
    if (Rule::fields != 0) m = moments[moment];
    if (Rule::fields != 0) v = moments[moment + 32];
    const Rule rule;
    rule(weight.x, g.x, m.x, v.x, step_size, root);
    rule(weight.y, g.y, m.y, v.y, step_size, root);
    rule(weight.z, g.z, m.z, v.z, step_size, root);
    rule(weight.w, g.w, m.w, v.w, step_size, root);
    table[target] = weight;
    if (Rule::fields != 0) moments[moment] = m;
    if (Rule::fields != 0) moments[moment + 32] = v;
  }
}

/// Elements that the rule's first step from the table's formula leaves wrong: all of the rows that a batch names, and of
/// every 16th of the others.
template <class Rule>
std::int64_t wrong_steps(const thrust::host_vector<float>& table,
                         const std::map<index_type, std::vector<std::int64_t>>& bags_of) {
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(table.size()) / width; ++row) {
    const auto named = bags_of.find(row);
    if (named == bags_of.end() && row % 16 != 0) continue;
    for (std::int64_t element = row * width; element < (row + 1) * width; ++element) {
      const float before = element_value(element), now = table[static_cast<std::size_t>(element)];
      if (named == bags_of.end()) {
        wrong += now != before;
        continue;
      }
      double sum = 0, size = 0;
      for (const std::int64_t bag : named->second) {
        const auto g = static_cast<double>(gradient_value(bag * width + element % width));
        sum += g;
        size += std::abs(g);
      }
      const double allowed = 2e-6 + 1e-6 * Rule::slope * size;  // sums in any order
      wrong += !(std::abs(static_cast<double>(now) - Rule::first(before, sum)) <= allowed);
    }
  }
  return wrong;
}

/// The batch's rows in order, the compressed gradient and the step, without a word to the host.
template <class Rule, class Formula>
void training(session& run, const std::string& variant) {
  const std::string name = "cuembed." + variant;
  if (!run.wants(name)) return;
  const int bags = run.chosen.bags, positions = bags * hotness;
  const std::int64_t elements = run.chosen.rows * width;
  auto table = filled<float>(elements, table_element<float>{});
  auto grads = filled<float>(std::int64_t{bags} * width, gradient_element{});
  auto offsets = filled<int>(bags + 1, bag_begin{});
  const auto count = static_cast<std::size_t>(positions);
  device_array<float> moments(static_cast<std::size_t>(elements * Rule::fields)), gradient(count * width);
  device_array<index_type> bag_ids(count), sorted_rows(count), sorted_bags(count), remapped(count),
      rows(count);
  std::size_t sort_bytes = 0, compress_bytes = 0;
  cuembed::Transpose<index_type, float>(nullptr, nullptr, nullptr, positions, nullptr, nullptr, nullptr,
                                        nullptr, &sort_bytes, run.stream);
  cuembed::ComputeCompressedGradIndices<index_type>(nullptr, positions, nullptr, nullptr, &compress_bytes,
                                                    run.stream);
  device_array<char> work(std::max(sort_bytes, compress_bytes));
  cudaDeviceProp device;
  require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::int64_t steps = 0;
  const auto step = [&](device_array<index_type>& indices) {
    cuembed::ExtractRowIdsFromCSR<index_type, int>(data_of(offsets), bags, data_of(bag_ids), run.stream);
    std::size_t bytes = work.size();
    cuembed::Transpose<index_type, float>(data_of(bag_ids), data_of(indices), nullptr, positions,
                                          data_of(sorted_rows), data_of(sorted_bags), nullptr, data_of(work),
                                          &bytes, run.stream);
    bytes = work.size();
    cuembed::ComputeCompressedGradIndices<index_type>(data_of(sorted_rows), positions, data_of(remapped),
                                                      data_of(work), &bytes, run.stream);
    cuembed::EmbeddingBackward<float, index_type>(
        data_of(grads), width, positions, positions, data_of(sorted_rows), data_of(sorted_bags),
        data_of(remapped), nullptr, true, data_of(gradient), data_of(rows), run.stream);
    ++steps;
    const double first = 1 - std::pow(0.9, steps), second = 1 - std::pow(0.999, steps);
    apply_rule<Rule><<<static_cast<unsigned>(8 * device.multiProcessorCount), dim3(32, 8), 0, run.stream>>>(
        reinterpret_cast<float4*>(data_of(table)), reinterpret_cast<float4*>(data_of(moments)),
        reinterpret_cast<float4*>(data_of(gradient)), data_of(rows), data_of(remapped), positions,
        static_cast<float>(0.1 / first), static_cast<float>(1 / std::sqrt(second)));
  };
  auto sets = run.make_sets<Formula>();
  const auto time =
      run.measure(4, [&](int call) { step(sets[static_cast<std::size_t>(call) % sets.size()]); });
  const thrust::host_vector<index_type> batch = sets[1];
  std::map<index_type, std::vector<std::int64_t>> bags_of;
  for (std::size_t k = 0; k < batch.size(); ++k)
    bags_of[batch[k]].push_back(static_cast<std::int64_t>(k / hotness));
  thrust::tabulate(table.begin(), table.end(), table_element<float>{});
  thrust::fill(moments.begin(), moments.end(), 0.0F);
  require(cudaDeviceSynchronize(), "fill");
  steps = 0;
  step(sets[1]);
  require(cudaStreamSynchronize(run.stream), "step");
  const auto distinct = static_cast<std::int64_t>(bags_of.size());
  const double bytes = 4.0 * width * (2 * (1 + Rule::fields) * static_cast<double>(distinct) + bags);
  run.add(name, time, bytes, wrong_steps<Rule>(table, bags_of), distinct);
}

}  // namespace

int main(int count, char** words) {
  settings chosen;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--quick") {
      chosen.quick = true;
      chosen.rows = 20011;
      chosen.bags = 2048;
      chosen.repeats = 2;
    } else if (i + 1 < count && word == "--repeats") {
      chosen.repeats = std::max(1, std::atoi(words[++i]));
    } else if (i + 1 < count && word == "--filter") {
      chosen.filter = words[++i];
    } else if (i + 1 < count && word == "--json") {
      chosen.json = words[++i];
    } else {
      std::fprintf(stderr, "cuembed [--quick] [--repeats N] [--filter TEXT] [--json REPORT.json]\n");
      return 2;
    }
  }
  session run(chosen);
  forward<float, any_row>(run, "bags.device.sum", false);
  forward<float, any_row>(run, "bags.device.sum.fixed", true);
  forward<float, popular_row>(run, "bags.device.sum.zipf_1.05", false);
  forward<float, popular_row>(run, "bags.device.sum.fixed.zipf_1.05", true);
  forward<__half, any_row>(run, "bags.device.half.to_half", false);
  forward<__half, popular_row>(run, "bags.device.half.to_half.zipf_1.05", false);
  training<adam, any_row>(run, "bags.step.sum");
  training<sgd, any_row>(run, "bags.step.sum.sgd");
  training<adam, popular_row>(run, "bags.step.sum.zipf_1.05");
  training<sgd, popular_row>(run, "bags.step.sum.sgd.zipf_1.05");
  return run.finish();
}
