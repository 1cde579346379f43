// SPDX-License-Identifier: Apache-2.0
#include "baseline.hpp"

#include "../support/check_cuda.hpp"

#include <cublas_v2.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <limits>

namespace ferry_bench::baseline {

namespace {

/// Row p's packets of 16 bytes lie side by side, so a warp reads and writes whole lines.
__global__ void gather_packets(const uint4* __restrict__ table, const std::int64_t* __restrict__ rows,
                               uint4* __restrict__ out, std::int64_t packets, int row_shift) {
  const std::int64_t in_row = (std::int64_t{1} << row_shift) - 1;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packets; i += stride)
    out[i] = table[(rows[i >> row_shift] << row_shift) + (i & in_row)];
}

/// Two neighbouring rows for each thread: both loads are under way before the first store.
__global__ void gather_row_pairs(const uint4* __restrict__ table, const std::int64_t* __restrict__ rows,
                                 uint4* __restrict__ out, std::int64_t n, int row_shift) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t in_row = i & ((std::int64_t{1} << row_shift) - 1);
  const std::int64_t first = (i >> row_shift) * 2;
  if (first >= n) return;
  const bool paired = first + 1 < n;
  const uint4 value = table[(rows[first] << row_shift) + in_row];
  const uint4 two = paired ? table[(rows[first + 1] << row_shift) + in_row] : value;
  out[(first << row_shift) + in_row] = value;
  if (paired) out[((first + 1) << row_shift) + in_row] = two;
}

/// A warp for each block of a table, with four packets of each lane in flight.
__global__ void copy_row_blocks(row_block_copy work) {
  constexpr int at_once = 4;
  const std::int64_t packets = work.row_bytes / 16, warps = std::int64_t{gridDim.x} * blockDim.x / 32;
  const int lane = threadIdx.x % 32;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
       i < work.tables * work.positions; i += warps) {
    const std::int64_t table = i / work.positions, p = i - table * work.positions;
    const auto* const source =
        static_cast<const uint4*>(work.source) + (table * work.rows + work.reads[p]) * packets;
    auto* const target = static_cast<uint4*>(work.target) + (table * work.rows + work.writes[p]) * packets;
    std::int64_t c = lane;
    for (; c + 32 * (at_once - 1) < packets; c += 32 * at_once) {
      uint4 packet[at_once];
      for (int k = 0; k < at_once; ++k) packet[k] = source[c + 32 * k];
      for (int k = 0; k < at_once; ++k) target[c + 32 * k] = packet[k];
    }
    for (; c < packets; c += 32) target[c] = source[c];
  }
}

/// Blocks for each multiprocessor, 0 for one thread a packet, two_rows for one thread a packet of two rows.
constexpr int two_rows = -1;
struct launch_shape {
  int blocks_per_multiprocessor;
  int threads;
  const char* name;
};
constexpr std::array<launch_shape, 7> shapes = {{{two_rows, 256, "two packets a thread, blocks of 256"},
                                                 {two_rows, 512, "two packets a thread, blocks of 512"},
                                                 {0, 256, "one thread a packet, blocks of 256"},
                                                 {0, 512, "one thread a packet, blocks of 512"},
                                                 {4, 512, "4 blocks of 512 a multiprocessor"},
                                                 {8, 256, "8 blocks of 256 a multiprocessor"},
                                                 {16, 256, "16 blocks of 256 a multiprocessor"}}};

}  // namespace

block::block(kind place, std::size_t bytes) : place_(place) {
  if (place_ == kind::device)
    check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
  else
    check_cuda(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
}
block::~block() {
  if (place_ == kind::device)
    cudaFree(data_);
  else
    cudaFreeHost(data_);
}

void copy(const exec_space& exec, void* target, const void* source, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, exec.cuda_stream()),
             "cudaMemcpyAsync");
}

struct copies_at_once::state {
  struct queue {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
  };
  cudaEvent_t begun = nullptr;
  std::vector<queue> queues;  ///< of all copies but the first, which the instance's own stream takes

  state(const exec_space& exec, int most) : queues(static_cast<std::size_t>(std::max(most - 1, 0))) {
    int before = 0;
    check_cuda(cudaGetDevice(&before), "cudaGetDevice");
    check_cuda(cudaSetDevice(exec.cuda_device()), "cudaSetDevice");
    check_cuda(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    for (auto& [stream, end] : queues) {
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      check_cuda(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    }
    check_cuda(cudaSetDevice(before), "cudaSetDevice");
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    for (auto& [stream, end] : queues) {
      cudaEventDestroy(end);
      cudaStreamDestroy(stream);
    }
    cudaEventDestroy(begun);
  }
};
copies_at_once::copies_at_once(const exec_space& exec, int most)
    : state_(std::make_unique<state>(exec, most)) {}
copies_at_once::~copies_at_once() = default;

void copies_at_once::enqueue(const exec_space& exec, const std::vector<part>& parts) const {
  if (parts.empty()) return;
  if (parts.size() > state_->queues.size() + 1)
    check_cuda(cudaErrorInvalidValue, "copies_at_once: more copies than queues");
  check_cuda(cudaEventRecord(state_->begun, exec.cuda_stream()), "cudaEventRecord");
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto& [stream, end] = state_->queues[i - 1];
    check_cuda(cudaStreamWaitEvent(stream, state_->begun, 0), "cudaStreamWaitEvent");
    check_cuda(cudaMemcpyAsync(parts[i].target, parts[i].source, parts[i].bytes, cudaMemcpyDefault, stream),
               "cudaMemcpyAsync");
    check_cuda(cudaEventRecord(end, stream), "cudaEventRecord");
  }
  copy(exec, parts[0].target, parts[0].source, parts[0].bytes);
  for (std::size_t i = 1; i < parts.size(); ++i)
    check_cuda(cudaStreamWaitEvent(exec.cuda_stream(), state_->queues[i - 1].end, 0), "cudaStreamWaitEvent");
}

// The batched call refuses the default stream, so it takes a queue.
void copies_at_once::enqueue_batch(const exec_space& exec, const std::vector<part>& parts) const {
  std::vector<void*> targets;
  std::vector<const void*> sources;
  std::vector<std::size_t> bytes;
  for (const part& copy : parts) {
    targets.push_back(copy.target);
    sources.push_back(copy.source);
    bytes.push_back(copy.bytes);
  }
  const auto& [stream, end] = state_->queues.at(0);
  check_cuda(cudaEventRecord(state_->begun, exec.cuda_stream()), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(stream, state_->begun, 0), "cudaStreamWaitEvent");
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  check_cuda(cudaMemcpyBatchAsync(targets.data(), sources.data(), bytes.data(), bytes.size(), &attributes,
                                  &first, 1, stream),
             "cudaMemcpyBatchAsync");
  check_cuda(cudaEventRecord(end, stream), "cudaEventRecord");
  check_cuda(cudaStreamWaitEvent(exec.cuda_stream(), end, 0), "cudaStreamWaitEvent");
}

void copy_rows(const exec_space& exec, const row_block_copy& work, int blocks) {
  copy_row_blocks<<<static_cast<unsigned>(blocks), 1024, 0, exec.cuda_stream()>>>(work);
  check_cuda(cudaGetLastError(), "copy_row_blocks");
}

struct matrix_product::state {
  int size;
  cublasHandle_t library = nullptr;
  block left, right, product;

  state(const exec_space& exec, int rows)
      : size(rows),
        left(block::kind::device, bytes()),
        right(block::kind::device, bytes()),
        product(block::kind::device, bytes()) {
    check(cublasCreate(&library));
    check(cublasSetStream(library, exec.cuda_stream()));
    // Small numbers of both signs; only the time counts.
    check_cuda(cudaMemset(left.data(), 0x3c, bytes()), "cudaMemset");
    check_cuda(cudaMemset(right.data(), 0xbb, bytes()), "cudaMemset");
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { cublasDestroy(library); }
  [[nodiscard]] std::size_t bytes() const {
    return 2 * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  }
  static void check(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) check_cuda(cudaErrorUnknown, cublasGetStatusString(status));
  }
};
matrix_product::matrix_product(const exec_space& exec, int size)
    : state_(std::make_unique<state>(exec, size)) {}
matrix_product::~matrix_product() = default;
void matrix_product::enqueue() const {
  const float factor = 1.0F, zero = 0.0F;
  const int n = state_->size;
  state::check(cublasGemmEx(state_->library, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &factor, state_->left.data(),
                            CUDA_R_16BF, n, state_->right.data(), CUDA_R_16BF, n, &zero,
                            state_->product.data(), CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

const char* memory_ceiling() { return "ceiling.device_copy"; }

int gather_shapes() { return static_cast<int>(shapes.size()); }
std::string shape_name(int shape) { return shapes.at(static_cast<std::size_t>(shape)).name; }

void gather(const exec_space& exec, const void* table, const std::int64_t* rows, void* out, std::int64_t n,
            std::int64_t row_bytes, int shape) {
  static const int multiprocessors = exec.cuda_device_prop().multiProcessorCount;
  const launch_shape& how = shapes.at(static_cast<std::size_t>(shape));
  const int row_shift = std::countr_zero(static_cast<std::uint64_t>(row_bytes / 16));
  const std::int64_t packets = n << row_shift;
  if (how.blocks_per_multiprocessor == two_rows) {
    const std::int64_t pairs = ((n + 1) / 2) << row_shift;
    gather_row_pairs<<<static_cast<unsigned>((pairs + how.threads - 1) / how.threads),
                       static_cast<unsigned>(how.threads), 0, exec.cuda_stream()>>>(
        static_cast<const uint4*>(table), rows, static_cast<uint4*>(out), n, row_shift);
    check_cuda(cudaGetLastError(), "gather_row_pairs");
    return;
  }
  const std::int64_t needed = (packets + how.threads - 1) / how.threads;
  const std::int64_t demand = std::int64_t{how.blocks_per_multiprocessor} * multiprocessors;
  const std::int64_t most = std::numeric_limits<int>::max();
  const std::int64_t blocks = std::min(demand == 0 ? needed : std::min(demand, needed), most);
  gather_packets<<<static_cast<unsigned>(blocks), static_cast<unsigned>(how.threads), 0,
                   exec.cuda_stream()>>>(static_cast<const uint4*>(table), rows, static_cast<uint4*>(out),
                                         packets, row_shift);
  check_cuda(cudaGetLastError(), "gather_packets");
}

std::optional<double> seconds_to_lock(std::size_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  const block memory(block::kind::locked, bytes);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace ferry_bench::baseline
