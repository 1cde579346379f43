// SPDX-License-Identifier: Apache-2.0
#include "nccl.hpp"

#include "../support/check_cuda.hpp"

#include <nccl.h>

#include <cub/cub.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ferry_bench::baseline {

namespace {

void check_nccl(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, ncclGetErrorString(code));
  std::exit(1);
}

constexpr int threads = 256;
int blocks_for(std::int64_t items) {
  return static_cast<int>(std::clamp<std::int64_t>((items + threads - 1) / threads, 1, 132 * 16));
}
__device__ std::int64_t first_item() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

/// The owner of each position's row, and the position.
__global__ void find_owners(const std::int64_t* rows, std::int64_t n, int ranks, unsigned* owner,
                            int* position) {
  for (std::int64_t p = first_item(); p < n; p += all_threads()) {
    owner[p] = static_cast<unsigned>(rows[p] % ranks);
    position[p] = static_cast<int>(p);
  }
}
/// begin[r] = where the sorted owners reach r; one thread for each r of [0, ranks].
__global__ void find_groups(const unsigned* owner, std::int64_t n, int ranks, int* begin, int* count) {
  const int r = static_cast<int>(threadIdx.x);
  std::int64_t low = 0, high = n;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (owner[middle] < static_cast<unsigned>(r))
      low = middle + 1;
    else
      high = middle;
  }
  begin[r] = static_cast<int>(low);
  __syncthreads();
  if (r < ranks) count[r] = begin[r + 1] - begin[r];
}
__global__ void local_rows(const std::int64_t* rows, const int* position, std::int64_t n, int ranks,
                           std::int64_t* local) {
  for (std::int64_t k = first_item(); k < n; k += all_threads()) local[k] = rows[position[k]] / ranks;
}
/// Rows of `packets` packets of 16 bytes.
__global__ void read_rows(const uint4* shard, const std::int64_t* rows, std::int64_t n, int packets,
                          uint4* out) {
  for (std::int64_t i = first_item(); i < n * packets; i += all_threads())
    out[i] = shard[rows[i / packets] * packets + i % packets];
}
__global__ void place_rows(const uint4* arrived, const int* position, std::int64_t n, int packets,
                           uint4* out) {
  for (std::int64_t i = first_item(); i < n * packets; i += all_threads())
    out[static_cast<std::int64_t>(position[i / packets]) * packets + i % packets] = arrived[i];
}

struct buffers {
  ncclComm_t comm = nullptr;
  unsigned *owner = nullptr, *owner_sorted = nullptr;
  int *position = nullptr, *position_sorted = nullptr, *groups = nullptr;  ///< begin, counts out, counts in
  std::int64_t *requests = nullptr, *arrived_requests = nullptr;
  char *leaving = nullptr, *arrived = nullptr;
  void* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  int* host = nullptr;
};

}  // namespace

struct nccl_ranks::state {
  std::vector<int> devices;
  std::int64_t row_bytes;
  std::int64_t most;  ///< rows that may arrive at one rank
  std::vector<buffers> ranks;
};

bool nccl_ranks::available() { return true; }

nccl_ranks::nccl_ranks(const std::vector<int>& devices, std::int64_t n, std::int64_t row_bytes)
    : state_(new state{devices, row_bytes, 2 * n, std::vector<buffers>(devices.size())}) {
  int before = 0;
  check_cuda(cudaGetDevice(&before), "cudaGetDevice");
  std::vector<ncclComm_t> comms(devices.size());
  check_nccl(ncclCommInitAll(comms.data(), static_cast<int>(devices.size()), devices.data()),
             "ncclCommInitAll");
  const auto count = static_cast<std::size_t>(n), most = static_cast<std::size_t>(state_->most);
  for (std::size_t r = 0; r < devices.size(); ++r) {
    buffers& rank_buffers = state_->ranks[r];
    rank_buffers.comm = comms[r];
    check_cuda(cudaSetDevice(devices[r]), "cudaSetDevice");
    const auto make = [](auto*& data, std::size_t bytes) {
      check_cuda(cudaMalloc(&data, bytes), "cudaMalloc");
      check_cuda(cudaMemset(data, 0x5A, bytes), "cudaMemset");
    };
    make(rank_buffers.owner, 4 * count);
    make(rank_buffers.owner_sorted, 4 * count);
    make(rank_buffers.position, 4 * count);
    make(rank_buffers.position_sorted, 4 * count);
    make(rank_buffers.groups, 4 * 256);
    make(rank_buffers.requests, 8 * count);
    make(rank_buffers.arrived_requests, 8 * most);
    make(rank_buffers.leaving, most * static_cast<std::size_t>(row_bytes));
    make(rank_buffers.arrived, most * static_cast<std::size_t>(row_bytes));
    check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, rank_buffers.scratch_bytes, rank_buffers.owner,
                                               rank_buffers.owner_sorted, rank_buffers.position,
                                               rank_buffers.position_sorted, n),
               "SortPairs");
    make(rank_buffers.scratch, rank_buffers.scratch_bytes);
    check_cuda(cudaMallocHost(&rank_buffers.host, 4 * 256), "cudaMallocHost");
  }
  check_cuda(cudaSetDevice(before), "cudaSetDevice");
}

nccl_ranks::~nccl_ranks() {
  for (buffers& rank_buffers : state_->ranks) {
    ncclCommDestroy(rank_buffers.comm);
    for (void* pointer :
         {static_cast<void*>(rank_buffers.owner), static_cast<void*>(rank_buffers.owner_sorted),
          static_cast<void*>(rank_buffers.position), static_cast<void*>(rank_buffers.position_sorted),
          static_cast<void*>(rank_buffers.groups), static_cast<void*>(rank_buffers.requests),
          static_cast<void*>(rank_buffers.arrived_requests), static_cast<void*>(rank_buffers.leaving),
          static_cast<void*>(rank_buffers.arrived), rank_buffers.scratch})
      cudaFree(pointer);
    cudaFreeHost(rank_buffers.host);
  }
}

void nccl_ranks::exchange(int rank, const exec_space& exec, std::size_t bytes) {
  buffers& rank_buffers = state_->ranks[static_cast<std::size_t>(rank)];
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < static_cast<int>(state_->ranks.size()); ++r) {
    const std::size_t offset = static_cast<std::size_t>(r) * bytes;
    check_nccl(
        ncclSend(rank_buffers.leaving + offset, bytes, ncclChar, r, rank_buffers.comm, exec.cuda_stream()),
        "ncclSend");
    check_nccl(
        ncclRecv(rank_buffers.arrived + offset, bytes, ncclChar, r, rank_buffers.comm, exec.cuda_stream()),
        "ncclRecv");
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

void nccl_ranks::all_reduce(int rank, const exec_space& exec, float* array, std::int64_t count) {
  buffers& rank_buffers = state_->ranks[static_cast<std::size_t>(rank)];
  check_nccl(ncclAllReduce(array, array, static_cast<std::size_t>(count), ncclFloat, ncclSum,
                           rank_buffers.comm, exec.cuda_stream()),
             "ncclAllReduce");
}

void nccl_ranks::lookup(int rank, const exec_space& exec, const void* shard, const std::int64_t* rows,
                        void* out, std::int64_t n) {
  buffers& rank_buffers = state_->ranks[static_cast<std::size_t>(rank)];
  const int ranks = static_cast<int>(state_->ranks.size());
  const cudaStream_t queue = exec.cuda_stream();
  const int packets = static_cast<int>(state_->row_bytes / 16);
  int before = 0, bits = 1;
  while ((1 << bits) < ranks) ++bits;
  check_cuda(cudaGetDevice(&before), "cudaGetDevice");
  check_cuda(cudaSetDevice(state_->devices[static_cast<std::size_t>(rank)]), "cudaSetDevice");
  int* const begin = rank_buffers.groups;
  int* const out_count = rank_buffers.groups + 128;
  int* const in_count = rank_buffers.groups + 192;
  find_owners<<<blocks_for(n), threads, 0, queue>>>(rows, n, ranks, rank_buffers.owner,
                                                    rank_buffers.position);
  check_cuda(
      cub::DeviceRadixSort::SortPairs(rank_buffers.scratch, rank_buffers.scratch_bytes, rank_buffers.owner,
                                      rank_buffers.owner_sorted, rank_buffers.position,
                                      rank_buffers.position_sorted, n, 0, bits, queue),
      "SortPairs");
  find_groups<<<1, ranks + 1, 0, queue>>>(rank_buffers.owner_sorted, n, ranks, begin, out_count);
  local_rows<<<blocks_for(n), threads, 0, queue>>>(rows, rank_buffers.position_sorted, n, ranks,
                                                   rank_buffers.requests);
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < ranks; ++r) {
    check_nccl(ncclSend(out_count + r, 1, ncclInt, r, rank_buffers.comm, queue), "ncclSend");
    check_nccl(ncclRecv(in_count + r, 1, ncclInt, r, rank_buffers.comm, queue), "ncclRecv");
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  check_cuda(cudaMemcpyAsync(rank_buffers.host, rank_buffers.groups, 4 * 256, cudaMemcpyDeviceToHost, queue),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(queue), "cudaStreamSynchronize");
  const int *from = rank_buffers.host, *leaves = rank_buffers.host + 128, *comes = rank_buffers.host + 192;
  std::int64_t arriving = 0;
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < ranks; ++r) {
    check_nccl(ncclSend(rank_buffers.requests + from[r], static_cast<std::size_t>(leaves[r]), ncclInt64, r,
                        rank_buffers.comm, queue),
               "ncclSend");
    check_nccl(ncclRecv(rank_buffers.arrived_requests + arriving, static_cast<std::size_t>(comes[r]),
                        ncclInt64, r, rank_buffers.comm, queue),
               "ncclRecv");
    arriving += comes[r];
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  if (arriving > state_->most) check_nccl(ncclInvalidArgument, "lookup: more rows than the buffers hold");
  read_rows<<<blocks_for(arriving * packets), threads, 0, queue>>>(
      static_cast<const uint4*>(shard), rank_buffers.arrived_requests, arriving, packets,
      reinterpret_cast<uint4*>(rank_buffers.leaving));
  std::int64_t sent = 0;
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  const auto bytes = [&](std::int64_t count) { return static_cast<std::size_t>(count * state_->row_bytes); };
  for (int r = 0; r < ranks; ++r) {
    check_nccl(
        ncclSend(rank_buffers.leaving + bytes(sent), bytes(comes[r]), ncclChar, r, rank_buffers.comm, queue),
        "ncclSend");
    check_nccl(ncclRecv(rank_buffers.arrived + bytes(from[r]), bytes(leaves[r]), ncclChar, r,
                        rank_buffers.comm, queue),
               "ncclRecv");
    sent += comes[r];
  }
  check_nccl(ncclGroupEnd(), "ncclGroupEnd");
  place_rows<<<blocks_for(n * packets), threads, 0, queue>>>(
      reinterpret_cast<const uint4*>(rank_buffers.arrived), rank_buffers.position_sorted, n, packets,
      static_cast<uint4*>(out));
  check_cuda(cudaGetLastError(), "lookup");
  check_cuda(cudaSetDevice(before), "cudaSetDevice");
}

}  // namespace ferry_bench::baseline
