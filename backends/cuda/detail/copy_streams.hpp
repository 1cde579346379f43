// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device.hpp"
#include "../error.hpp"

#include <ferry/memory/detail/free_list.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ferry::cuda {

/// The idle streams of copies, until Kokkos::finalize.
struct copy_streams {
  struct stream {
    int device = -1;
    cudaStream_t native = nullptr;
  };
  detail::free_list<stream> idle;

  ~copy_streams() {
    for (const stream& last : idle.close()) {
      const device_guard guard(last.device, std::nothrow);
      cudaStreamDestroy(last.native);
    }
  }
};

/// A stream of ferry, for its lifetime, for a copy that the calling thread waits for. It does not synchronise
/// with the legacy default stream, so the copy does not wait for work of other libraries there. Unlike
/// cudaStreamPerThread, users can't capture it.
class copy_stream {
 public:
  /// `device` is the current device.
  explicit copy_stream(int device) : pool_(detail::until_finalize<copy_streams>()) {
    stream_ = pool_->idle.take([device](const std::vector<copy_streams::stream>& idle) {
      std::size_t index = 0;
      while (index < idle.size() && idle[index].device != device) ++index;
      return index;
    });
    if (stream_.native != nullptr) return;
    pool_->idle.expect(1);
    const cudaError_t status = cudaStreamCreateWithFlags(&stream_.native, cudaStreamNonBlocking);
    if (status != cudaSuccess) pool_->idle.forget(1);
    check(status, "cudaStreamCreateWithFlags");
    stream_.device = device;
  }
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  ~copy_stream() { pool_->idle.put(std::move(stream_)); }

  [[nodiscard]] cudaStream_t native() const { return stream_.native; }

 private:
  std::shared_ptr<copy_streams> pool_;
  copy_streams::stream stream_;
};

}  // namespace ferry::cuda
