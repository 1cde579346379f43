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
    for (const auto& idle : idle_.close()) {
      const device_guard guard(idle.device, std::nothrow);
      cudaStreamDestroy(idle.stream);
    }
  }

  /// A stream of `device`, the current device, for exclusive use until put().
  cudaStream_t take(int device) {
    const auto idle = idle_.take([device](const std::vector<idle_stream>& streams) {
      std::size_t place = 0;
      while (place < streams.size() && streams[place].device != device) ++place;
      return place;
    });
    if (idle.stream != nullptr) return idle.stream;
    idle_.expect(1);
    cudaStream_t stream = nullptr;
    const cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status != cudaSuccess) idle_.forget(1);
    check(status, "cudaStreamCreateWithFlags");
    return stream;
  }
  void put(int device, cudaStream_t stream) noexcept { idle_.put({device, stream}); }

 private:
  struct idle_stream {
    int device = -1;
    cudaStream_t stream = nullptr;
  };
  ferry::detail::free_list<idle_stream> idle_;
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
