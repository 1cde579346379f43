// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"
#include "support/waiting_kernel_cuda.hpp"

#include <cuda_runtime.h>

/// Memory of tensors that end while a device works on them.
namespace ferry_test::tensor_pool_cuda_test {

constexpr std::size_t rows = 3001, width = 7;
using batch_type = ferry::tensor<float, ferry::device_space>;

TEST_CASE("device memory in flight goes to no other tensor, and is there again afterwards", "[tensor_pool]") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  {
    const exec_space exec;
    const Kokkos::Cuda late(stream);
    ferry::tensor<float, ferry::device_space> table("table", rows, width);
    ferry::tensor<std::int64_t, ferry::device_space> indices("indices", rows);
    ferry::init::normal(exec, table, 0.0, 1.0, 3);
    ferry::init::uniform(exec, indices, 0.0, static_cast<double>(rows), 4);
    static_cast<void>(ferry::gather<ferry::device_space>(late, table, indices).get());  // loads the kernels
    ferry::trim<ferry::device_space>();

    const float* busy = nullptr;
    waiting_kernel blocker(stream, 1);
    {
      batch_type batch("batch", rows, width);
      busy = batch.data();
      ferry::gather(late, table, indices, batch).detach();
    }
    {
      const batch_type next("next", rows, width);
      CHECK(next.data() != busy);
    }
    CHECK(blocker.waits());
    blocker.release();
    std::vector<batch_type> batches;
    bool is_back = false;
    for (int i = 0; i < 2; ++i) {
      batches.emplace_back("later", rows, width);
      is_back = is_back || batches.back().data() == busy;
    }
    CHECK(is_back);
    batches.clear();
    const std::size_t idle = ferry::memory_statistics<ferry::device_space>().reserved;
    CHECK(idle >= 2 * rows * width * sizeof(float));
    CHECK(ferry::trim<ferry::device_space>() >= 2 * rows * width * sizeof(float));
  }
  cudaStreamDestroy(stream);
}

TEST_CASE("a loop with a new batch in each step holds the memory of few", "[tensor_pool]") {
  const exec_space exec;
  ferry::tensor<float, ferry::device_space> table("table", rows, width);
  ferry::tensor<std::int64_t, ferry::device_space> indices("indices", rows);
  ferry::init::normal(exec, table, 0.0, 1.0, 3);
  ferry::init::uniform(exec, indices, 0.0, static_cast<double>(rows), 4);
  const auto values = take(table);
  const auto chosen = take(indices);
  ferry::trim<ferry::device_space>();
  ferry::trim<ferry::pinned_space>();
  const auto count_of = [] {
    return ferry::memory_statistics<ferry::device_space>().total_count +
           ferry::memory_statistics<ferry::pinned_space>().total_count;
  };
  std::size_t before = 0;
  for (int step = 0; step < 50; ++step) {
    if (step == 2) before = count_of();
    const auto on_device = ferry::gather<ferry::device_space>(exec, table, indices).get();
    const auto on_host = ferry::gather<ferry::pinned_space>(exec, table, indices).get();
    const auto copied = on_device.clone(exec).get();
    const auto rows_of_device = take(copied), rows_of_host = take(on_host);
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < rows; ++p)
      for (std::size_t c = 0; c < width; ++c) {
        const float expected = values[static_cast<std::size_t>(chosen[p]) * width + c];
        wrong += (rows_of_device[p * width + c] != expected) + (rows_of_host[p * width + c] != expected);
      }
    REQUIRE(wrong == 0);
  }
  CHECK(count_of() == before);
}

}  // namespace ferry_test::tensor_pool_cuda_test
