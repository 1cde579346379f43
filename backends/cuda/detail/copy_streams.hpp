// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../device.hpp"
#include "../error.hpp"

#include <ferry/memory/detail/until_finalize.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace ferry::cuda {

/// Streams of ferry for copies that the calling thread waits for. They do not synchronise with the legacy
/// default stream, so a copy does not wait for work of other libraries there. Unlike cudaStreamPerThread,
/// users can't capture them. Kept until Kokkos::finalize. Thread-safe.
class copy_streams {
 public:
  copy_streams() = default;
  copy_streams(const copy_streams&) = delete;
  copy_streams& operator=(const copy_streams&) = delete;
  ~copy_streams() {
    for (const auto& each : idle_) {
      const device_guard on(each.device, std::nothrow);
      cudaStreamDestroy(each.stream);
    }
  }

  /// A stream of `device`, the current device, for exclusive use until put().
  cudaStream_t take(int device) {
    {
      const std::lock_guard lock(guard_);
      idle_.reserve(idle_.size() + lent_ + 1);  // put() never fails
      ++lent_;
      for (auto& each : idle_)
        if (each.device == device) {
          const cudaStream_t found = each.stream;
          each = idle_.back();
          idle_.pop_back();
          return found;
        }
    }
    cudaStream_t made = nullptr;
    if (const cudaError_t status = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        status != cudaSuccess) {
      {
        const std::lock_guard lock(guard_);
        --lent_;
      }
      check(status, "cudaStreamCreateWithFlags");
    }
    return made;
  }
  void put(int device, cudaStream_t stream) noexcept {
    const std::lock_guard lock(guard_);
    --lent_;
    idle_.push_back({device, stream});
  }

 private:
  struct idle {
    int device;
    cudaStream_t stream;
  };
  std::mutex guard_;
  std::vector<idle> idle_;
  std::size_t lent_ = 0;
};

/// A stream of copy_streams, for its lifetime.
class copy_stream {
 public:
  explicit copy_stream(int device)
      : home_(ferry::detail::until_finalize<copy_streams>()), device_(device), stream_(home_->take(device)) {}
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  ~copy_stream() { home_->put(device_, stream_); }

  [[nodiscard]] cudaStream_t native() const { return stream_; }

 private:
  std::shared_ptr<copy_streams> home_;
  int device_;
  cudaStream_t stream_;
};

}  // namespace ferry::cuda
