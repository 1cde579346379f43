// SPDX-License-Identifier: Apache-2.0
/// cuEmbed's pooled lookups, and its transpose and backward pass with a step on the compressed gradient: the peer of
/// bench_bags. A figure cuembed.<name> is bench_bags' <name>: the same tables, indices, gradients and bytes.
///
///   nvcc -std=c++17 -O3 -arch=sm_90 -I CUEMBED -o cuembed cuembed.cu
///   cuembed [--quick] [--repeats N] [--filter TEXT] [--json REPORT.json]
///
/// CUEMBED is a clone of github.com/NVIDIA/cuEmbed (written for 90dd843). Indices are 64-bit as ferry's; the figures
/// that end in .int32 take half of that. cuEmbed checks no index. Its backward pass adds into a gradient of zeros: the
/// step leaves zeros behind itself, which saves a memset. The exit status is 1 where a result is wrong.
#include "cuembed/include/embedding_lookup.cuh"
#include "cuembed/include/index_transforms.cuh"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace {

constexpr int width = 128, hotness = 10, set_count = 16, warm_up = 3;

struct settings {
  std::int64_t rows = 1000000;
  int bags = 65536, repeats = 15;
  bool quick = false;
  std::string filter, json;
};

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
  __device__ std::int64_t operator()(std::int64_t position) const {
    return static_cast<std::int64_t>(mix(mix(seed) + static_cast<std::uint64_t>(position)) % rows);
  }
};
struct distinct_row {
  std::uint64_t seed, rows;
  __device__ std::int64_t operator()(std::int64_t position) const {
    int bits = 2;
    while (bits < 63 && (std::uint64_t{1} << bits) < rows) ++bits;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const int fold = bits / 2 + 1;
    auto x = static_cast<std::uint64_t>(position);
    do {
      for (std::uint64_t round = 0; round < 4; ++round) {
        x = (x * 0x9FB21C651E98DF25ull + mix(seed + (round << 32))) & mask;
        x ^= x >> (fold < bits ? fold : 1);
      }
    } while (x >= rows);
    return static_cast<std::int64_t>(x);
  }
};
/// The popular rows are the same in all sets.
struct popular_row {
  std::uint64_t seed, rows;
  __device__ std::int64_t operator()(std::int64_t position) const {
    constexpr double exponent = 1.05;
    const auto bits = mix(mix(seed) + static_cast<std::uint64_t>(position)) >> 11;
    const double u = static_cast<double>(bits) * 0x1p-53;
    const double last = pow(static_cast<double>(rows) + 1, 1 - exponent);
    const double x = pow(1 + u * (last - 1), 1 / (1 - exponent));
    auto rank = static_cast<std::uint64_t>(x) - 1;
    if (rank >= rows) rank = rows - 1;
    return distinct_row{1, rows}(static_cast<std::int64_t>(rank));
  }
};

template <class T, class Formula>
__global__ void fill(T* values, std::int64_t count, Formula formula) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; i < count; i += threads)
    values[i] = static_cast<T>(formula(i));
}
struct table_element {
  __device__ float operator()(std::int64_t i) const { return element_value(i); }
};
struct gradient_element {
  __device__ float operator()(std::int64_t i) const { return gradient_value(i); }
};
struct bag_begin {
  __device__ std::int64_t operator()(std::int64_t i) const { return i * hotness; }
};
struct zero {
  __device__ float operator()(std::int64_t) const { return 0; }
};

/// An array in device memory.
template <class T>
class device_array {
 public:
  explicit device_array(std::int64_t count) : count_(count) {
    require(cudaMalloc(&data_, sizeof(T) * static_cast<std::size_t>(std::max<std::int64_t>(count, 1))),
            "cudaMalloc");
  }
  template <class Formula>
  device_array(std::int64_t count, Formula formula) : device_array(count) {
    assign(formula);
  }
  device_array(device_array&& source) noexcept : data_(source.data_), count_(source.count_) {
    source.data_ = nullptr;
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  device_array& operator=(device_array&&) = delete;
  ~device_array() { cudaFree(data_); }

  template <class Formula>
  void assign(Formula formula) {
    fill<<<1024, 256>>>(data_, count_, formula);
    require(cudaDeviceSynchronize(), "fill");
  }
  T* data() const { return data_; }
  std::int64_t size() const { return count_; }
  std::vector<T> to_host() const {
    std::vector<T> values(static_cast<std::size_t>(count_));
    require(cudaMemcpy(values.data(), data_, sizeof(T) * values.size(), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::int64_t count_;
};

using clock_type = std::chrono::steady_clock;
double since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

struct readings {
  std::vector<double> device, wall;
};
double median(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const std::size_t middle = ms.size() / 2;
  return ms.size() % 2 == 1 ? ms[middle] : (ms[middle - 1] + ms[middle]) / 2;
}

class session {
 public:
  explicit session(settings chosen) : chosen_(std::move(chosen)) {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    require(cudaEventCreate(&first_), "cudaEventCreate");
    require(cudaEventCreate(&last_), "cudaEventCreate");
  }
  const settings& chosen() const { return chosen_; }
  cudaStream_t stream() const { return stream_; }
  std::uint64_t fresh_seed() { return ++seed_; }
  bool wants(const std::string& name) const { return name.find(chosen_.filter) != std::string::npos; }

  /// As ferry's support/measure.hpp: calls that are waited for, and bursts between two events after 50 ms of work.
  template <class Work>
  readings measure(int burst, const Work& work) const {
    int call = 0;
    for (int i = 0; i < warm_up; ++i) wait_for(work, call++);
    const auto begin = clock_type::now();
    while (!chosen_.quick && since(begin) < 50) burst_ms(burst, work, call);
    readings result;
    for (int i = 0; i < chosen_.repeats; ++i) {
      const auto start = clock_type::now();
      wait_for(work, call++);
      result.wall.push_back(since(start));
    }
    for (int i = 0; i < chosen_.repeats; ++i) result.device.push_back(burst_ms(burst, work, call));
    return result;
  }

  void add(const std::string& name, const readings& time, double bytes, std::int64_t wrong,
           const std::string& setting) {
    const double ms = median(time.device), wall = median(time.wall);
    std::printf("%-52s %10.4f ms %10.4f ms wall %10.2f GB/s%s\n", name.c_str(), ms, wall, bytes / ms / 1e6,
                wrong == 0 ? "" : "  WRONG");
    std::fflush(stdout);
    if (wrong != 0)
      std::fprintf(stderr, "%s: %lld elements are wrong\n", name.c_str(), static_cast<long long>(wrong));
    failed_ = failed_ || wrong != 0;
    char line[1024];
    std::snprintf(line, sizeof line,
                  "{\"name\": \"%s\", \"setting\": {%s}, \"ms\": %s, \"wall_ms\": %s, \"bytes\": %.0f, "
                  "\"counts\": \"read + write\", \"gb_per_s\": %.3f, \"verified\": %s}",
                  name.c_str(), setting.c_str(), summary(time.device).c_str(), summary(time.wall).c_str(),
                  bytes, bytes / ms / 1e6, wrong == 0 ? "true" : "false");
    figures_ += (figures_.empty() ? "  " : ",\n  ") + std::string(line);
  }

  int finish() const {
    if (!chosen_.json.empty()) {
      std::FILE* const file = std::fopen(chosen_.json.c_str(), "w");
      if (file == nullptr) {
        std::fprintf(stderr, "%s can't be written\n", chosen_.json.c_str());
        return 1;
      }
      cudaDeviceProp device;
      require(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
      std::fprintf(
          file,
          "{\"versions\": {\"cuda\": %d}, \"device\": {\"name\": \"%s\"}, \"options\": {\"rows\": %lld, "
          "\"repeats\": %d},\n \"figures\": [\n%s],\n \"skipped\": []}\n",
          CUDART_VERSION, device.name, static_cast<long long>(chosen_.rows), chosen_.repeats,
          figures_.c_str());
      std::fclose(file);
    }
    return failed_ ? 1 : 0;
  }

 private:
  static std::string summary(const std::vector<double>& ms) {
    char text[160];
    std::snprintf(text, sizeof text, "{\"median\": %.6f, \"min\": %.6f, \"max\": %.6f, \"repeats\": %zu}",
                  median(ms), *std::min_element(ms.begin(), ms.end()),
                  *std::max_element(ms.begin(), ms.end()), ms.size());
    return text;
  }
  template <class Work>
  void wait_for(const Work& work, int call) const {
    work(call);
    require(cudaGetLastError(), "a launch");
    require(cudaStreamSynchronize(stream_), "a call");
  }
  template <class Work>
  double burst_ms(int burst, const Work& work, int& call) const {
    require(cudaEventRecord(first_, stream_), "cudaEventRecord");
    for (int i = 0; i < burst; ++i) work(call++);
    require(cudaEventRecord(last_, stream_), "cudaEventRecord");
    require(cudaEventSynchronize(last_), "a burst");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, first_, last_), "cudaEventElapsedTime");
    return static_cast<double>(ms) / burst;
  }

  settings chosen_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t first_ = nullptr, last_ = nullptr;
  std::uint64_t seed_ = 0;
  bool failed_ = false;
  std::string figures_;
};

template <class Index>
using index_sets = std::vector<device_array<Index>>;

template <class Index, class Formula>
index_sets<Index> make_sets(session& run) {
  index_sets<Index> sets;
  for (int s = 0; s < (run.chosen().quick ? 4 : set_count); ++s)
    sets.emplace_back(std::int64_t{run.chosen().bags} * hotness,
                      Formula{run.fresh_seed(), static_cast<std::uint64_t>(run.chosen().rows)});
  return sets;
}
template <class Index>
const Index* set_of(const index_sets<Index>& sets, int call) {
  return sets[static_cast<std::size_t>(call) % sets.size()].data();
}
template <class Index>
std::string name_of(const std::string& name) {
  return "cuembed." + name + (sizeof(Index) == 4 ? ".int32" : "");
}
std::string setting_of(const session& run, std::int64_t distinct, int burst) {
  return "\"rows\": " + std::to_string(run.chosen().rows) +
         ", \"bags\": " + std::to_string(run.chosen().bags) +
         ", \"hotness\": 10, \"distinct\": " + std::to_string(distinct) +
         ", \"width\": 128, \"burst\": " + std::to_string(burst);
}

/// Elements of the bags that are not the sum of their rows, up to the rounding of the result.
template <class Element>
std::int64_t wrong_sums(const std::vector<Element>& pooled, const std::vector<std::int64_t>& rows) {
  std::int64_t wrong = 0;
  const double rounding = std::is_same_v<Element, float> ? 1e-5 : 1e-2;
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    const std::size_t bag = i / width, column = i % width;
    double sum = 0;
    for (std::size_t k = bag * hotness; k < (bag + 1) * hotness; ++k)
      sum += static_cast<float>(
          static_cast<Element>(element_value(rows[k] * width + static_cast<std::int64_t>(column))));
    if (!(std::abs(static_cast<double>(static_cast<float>(pooled[i])) - sum) <= rounding)) ++wrong;
  }
  return wrong;
}

template <class Index>
std::vector<std::int64_t> listed(const device_array<Index>& rows) {
  const auto values = rows.to_host();
  return {values.begin(), values.end()};
}

/// Bags in the type of the table: cuEmbed pools halves as halves.
template <class Element, class Index, class Formula>
void forward(session& run, const std::string& variant, bool fixed) {
  const std::string name = name_of<Index>(variant);
  if (!run.wants(name)) return;
  constexpr int burst = 8;
  const int bags = run.chosen().bags;
  const device_array<Element> table(run.chosen().rows * width, table_element{});
  const device_array<int> offsets(bags + 1, bag_begin{});
  device_array<Element> pooled(std::int64_t{bags} * width, zero{});
  const auto sets = make_sets<Index, Formula>(run);
  const auto work = [&](int call) {
    cuembed::EmbeddingForward<Element, Element, Index, int>(
        table.data(), width, set_of(sets, call), fixed ? nullptr : offsets.data(), nullptr, bags,
        fixed ? hotness : 0, cuembed::CombineMode::kSum, pooled.data(), run.stream());
  };
  const auto time = run.measure(burst, work);
  pooled.assign(zero{});
  work(1);
  require(cudaStreamSynchronize(run.stream()), "forward");
  const double bytes = static_cast<double>(width) * bags * (hotness + 1) * sizeof(Element);
  run.add(name, time, bytes, wrong_sums(pooled.to_host(), listed(sets[1])), setting_of(run, 0, burst));
}

struct sgd {
  static constexpr int fields = 0;
  float lr = 0.1F;
  __host__ __device__ void operator()(float& weight, float gradient, float&, float&, float, float) const {
    weight -= lr * gradient;
  }
  double first(double weight, double gradient) const { return weight - 0.1 * gradient; }
  double slope() const { return 0.1; }
};
struct adam {
  static constexpr int fields = 2;
  float b1 = 0.9F, fresh1 = 0.1F, b2 = 0.999F, fresh2 = 0.001F, eps = 0.25F;
  __host__ __device__ void operator()(float& weight, float gradient, float& m, float& v, float step_size,
                                      float root) const {
    m = b1 * m + fresh1 * gradient;
    v = b2 * v + fresh2 * gradient * gradient;
    weight -= step_size * m / (sqrtf(v) * root + eps);
  }
  double first(double weight, double gradient) const {
    return weight - 0.1 * gradient / (std::abs(gradient) + 0.25);
  }
  double slope() const { return 0.1 / 0.25; }
};

/// A warp for each row of the compressed gradient. Their number lies in the device: the last remapped index. The
/// gradient is left as zeros for the next backward pass.
template <class Rule, class Index>
__global__ void apply_rule(Rule rule, float4* table, float4* moments, float4* gradient, const Index* rows,
                           const Index* remapped, int positions, float step_size, float root) {
  static_assert(width == 4 * 32);
  const Index count = remapped[positions - 1] + 1;
  const Index warps = static_cast<Index>(gridDim.x * blockDim.y);
  for (Index i = static_cast<Index>(blockIdx.x * blockDim.y + threadIdx.y); i < count; i += warps) {
    const std::int64_t source = std::int64_t{i} * 32 + threadIdx.x,
                       target = std::int64_t{rows[i]} * 32 + threadIdx.x;
    const float4 g = gradient[source];
    gradient[source] = make_float4(0, 0, 0, 0);
    float4 weight = table[target], m = make_float4(0, 0, 0, 0), v = m;
    if (Rule::fields != 0) m = moments[2 * (target - threadIdx.x) + threadIdx.x];
    if (Rule::fields != 0) v = moments[2 * (target - threadIdx.x) + 32 + threadIdx.x];
    rule(weight.x, g.x, m.x, v.x, step_size, root);
    rule(weight.y, g.y, m.y, v.y, step_size, root);
    rule(weight.z, g.z, m.z, v.z, step_size, root);
    rule(weight.w, g.w, m.w, v.w, step_size, root);
    table[target] = weight;
    if (Rule::fields != 0) moments[2 * (target - threadIdx.x) + threadIdx.x] = m;
    if (Rule::fields != 0) moments[2 * (target - threadIdx.x) + 32 + threadIdx.x] = v;
  }
}

/// Elements that the rule's first step from the table's formula leaves wrong: all of the rows that a batch names, and of
/// every 16th of the others.
template <class Rule>
std::int64_t wrong_steps(const Rule& rule, const std::vector<float>& table,
                         const std::vector<std::int64_t>& rows) {
  std::map<std::int64_t, std::vector<std::int64_t>> bags;
  for (std::size_t k = 0; k < rows.size(); ++k)
    bags[rows[k]].push_back(static_cast<std::int64_t>(k / hotness));
  std::int64_t wrong = 0;
  const auto table_rows = static_cast<std::int64_t>(table.size()) / width;
  for (std::int64_t row = 0; row < table_rows; ++row) {
    const auto named = bags.find(row);
    if (named == bags.end() && row % 16 != 0) continue;
    for (std::int64_t column = 0; column < width; ++column) {
      const float before = element_value(row * width + column),
                  now = table[static_cast<std::size_t>(row * width + column)];
      if (named == bags.end()) {
        wrong += now != before;
        continue;
      }
      double sum = 0, size = 0;
      for (const std::int64_t bag : named->second) {
        const auto g = static_cast<double>(gradient_value(bag * width + column));
        sum += g;
        size += std::abs(g);
      }
      const double allowed = 2e-6 + 1e-6 * rule.slope() * size;  // sums in any order
      wrong += !(std::abs(static_cast<double>(now) - rule.first(before, sum)) <= allowed);
    }
  }
  return wrong;
}

/// The batch's rows in order, the compressed gradient and the step, without a word to the host.
template <class Rule, class Index>
class trainer {
 public:
  explicit trainer(const session& run)
      : bags_(run.chosen().bags),
        positions_(bags_ * hotness),
        stream_(run.stream()),
        table_(run.chosen().rows * width, table_element{}),
        moments_(run.chosen().rows * width * Rule::fields, zero{}),
        offsets_(bags_ + 1, bag_begin{}),
        grads_(std::int64_t{bags_} * width, gradient_element{}),
        bag_ids_(positions_),
        sorted_rows_(positions_),
        sorted_bags_(positions_),
        remapped_(positions_),
        rows_(positions_),
        gradient_(std::int64_t{positions_} * width, zero{}),
        work_bytes_(work_bytes()),
        work_(static_cast<std::int64_t>(work_bytes_)) {
    int device = 0, count = 0;
    require(cudaGetDevice(&device), "cudaGetDevice");
    require(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    blocks_ = static_cast<unsigned>(8 * count);
  }

  void step(const Index* indices) {
    cuembed::ExtractRowIdsFromCSR<Index, int>(offsets_.data(), bags_, bag_ids_.data(), stream_);
    std::size_t bytes = work_bytes_;
    cuembed::Transpose<Index, float>(bag_ids_.data(), indices, nullptr, positions_, sorted_rows_.data(),
                                     sorted_bags_.data(), nullptr, work_.data(), &bytes, stream_);
    bytes = work_bytes_;
    cuembed::ComputeCompressedGradIndices<Index>(sorted_rows_.data(), positions_, remapped_.data(),
                                                 work_.data(), &bytes, stream_);
    cuembed::EmbeddingBackward<float, Index>(grads_.data(), width, positions_, positions_,
                                             sorted_rows_.data(), sorted_bags_.data(), remapped_.data(),
                                             nullptr, true, gradient_.data(), rows_.data(), stream_);
    ++steps_;
    const double first = 1 - std::pow(0.9, steps_), second = 1 - std::pow(0.999, steps_);
    apply_rule<Rule, Index><<<blocks_, dim3(32, 8), 0, stream_>>>(
        Rule{}, reinterpret_cast<float4*>(table_.data()), reinterpret_cast<float4*>(moments_.data()),
        reinterpret_cast<float4*>(gradient_.data()), rows_.data(), remapped_.data(), positions_,
        static_cast<float>(0.1 / first), static_cast<float>(1 / std::sqrt(second)));
  }

  std::int64_t wrong_after_step(const device_array<Index>& indices) {
    table_.assign(table_element{});
    moments_.assign(zero{});
    steps_ = 0;
    step(indices.data());
    require(cudaStreamSynchronize(stream_), "step");
    return wrong_steps(Rule{}, table_.to_host(), listed(indices));
  }

 private:
  std::size_t work_bytes() const {
    std::size_t sort = 0, compress = 0;
    cuembed::Transpose<Index, float>(nullptr, nullptr, nullptr, positions_, nullptr, nullptr, nullptr,
                                     nullptr, &sort, stream_);
    cuembed::ComputeCompressedGradIndices<Index>(nullptr, positions_, nullptr, nullptr, &compress, stream_);
    return std::max(sort, compress);
  }

  int bags_, positions_;
  cudaStream_t stream_;
  device_array<float> table_, moments_;
  device_array<int> offsets_;
  device_array<float> grads_;
  device_array<Index> bag_ids_, sorted_rows_, sorted_bags_, remapped_, rows_;
  device_array<float> gradient_;
  std::size_t work_bytes_;
  device_array<char> work_;
  unsigned blocks_ = 0;
  std::int64_t steps_ = 0;
};

template <class Rule, class Index, class Formula>
void training(session& run, const std::string& variant) {
  const std::string name = name_of<Index>(variant);
  if (!run.wants(name)) return;
  constexpr int burst = 4;
  trainer<Rule, Index> model(run);
  const auto sets = make_sets<Index, Formula>(run);
  const auto time = run.measure(burst, [&](int call) { model.step(set_of(sets, call)); });
  auto named = listed(sets[1]);
  std::sort(named.begin(), named.end());
  const std::int64_t distinct = std::unique(named.begin(), named.end()) - named.begin();
  const double bytes =
      4.0 * width * (2 * (1 + Rule::fields) * static_cast<double>(distinct) + run.chosen().bags);
  run.add(name, time, bytes, model.wrong_after_step(sets[1]), setting_of(run, distinct, burst));
}

template <class Index>
void measure_all(session& run) {
  forward<float, Index, any_row>(run, "bags.device.sum", false);
  forward<float, Index, any_row>(run, "bags.device.sum.fixed", true);
  forward<float, Index, popular_row>(run, "bags.device.sum.zipf_1.05", false);
  forward<float, Index, popular_row>(run, "bags.device.sum.fixed.zipf_1.05", true);
  forward<__half, Index, any_row>(run, "bags.device.half.to_half", false);
  forward<__half, Index, popular_row>(run, "bags.device.half.to_half.zipf_1.05", false);
  training<adam, Index, any_row>(run, "bags.step.sum");
  training<sgd, Index, any_row>(run, "bags.step.sum.sgd");
  training<adam, Index, popular_row>(run, "bags.step.sum.zipf_1.05");
  training<sgd, Index, popular_row>(run, "bags.step.sum.sgd.zipf_1.05");
}

}  // namespace

int main(int count, char** words) {
  settings chosen;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (++i == count) {
        std::fprintf(stderr, "%s needs a value\n", word.c_str());
        std::exit(2);
      }
      return words[i];
    };
    if (word == "--quick") {
      chosen.quick = true;
      chosen.rows = 20011;
      chosen.bags = 2048;
      chosen.repeats = 2;
    } else if (word == "--repeats") {
      chosen.repeats = std::max(1, std::atoi(value()));
    } else if (word == "--filter") {
      chosen.filter = value();
    } else if (word == "--json") {
      chosen.json = value();
    } else {
      std::fprintf(stderr, "cuembed [--quick] [--repeats N] [--filter TEXT] [--json REPORT.json]\n");
      return 2;
    }
  }
  session run(chosen);
  measure_all<std::int64_t>(run);
  measure_all<std::int32_t>(run);
  return run.finish();
}
