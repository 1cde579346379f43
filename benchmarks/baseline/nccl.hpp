// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

/// Code of a program with NCCL alone. The build compiles nccl_cuda.cpp if it finds NCCL, else
/// nccl_none.cpp.
namespace ferry_bench::baseline {

/// One rank for each device of one process. The functions are called by a thread for each rank, with an
/// instance of its device; they enqueue, unless the comment says otherwise. Errors end the program.
class nccl_ranks {
 public:
  static bool available();

  /// Buffers for lookups of at most `n` rows of `row_bytes` bytes.
  nccl_ranks(const std::vector<int>& devices, std::int64_t n, std::int64_t row_bytes);
  ~nccl_ranks();
  nccl_ranks(const nccl_ranks&) = delete;
  nccl_ranks& operator=(const nccl_ranks&) = delete;

  /// Sends `bytes` bytes to each rank and receives as many from each.
  void exchange(int rank, const exec_space& exec, std::size_t bytes);
  /// The sum of all ranks' arrays, in NCCL's order.
  void all_reduce(int rank, const exec_space& exec, float* array, std::int64_t count);
  /// out[p] = row rows[p], which lies at rows[p] / ranks in the shard of rank rows[p] % ranks: sorts by owner,
  /// sends counts, then indices; owners gather and send the rows back. Waits for the counts.
  void lookup(int rank, const exec_space& exec, const void* shard, const std::int64_t* rows, void* out,
              std::int64_t n);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ferry_bench::baseline
