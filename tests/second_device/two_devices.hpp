// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include <cuda_runtime.h>

#include <deque>

/// Helpers of the tests with two devices and more. Values travel by cudaMemcpy, which knows the device of each pointer.
namespace ferry_test {

inline int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
inline bool has_two_devices() { return device_count() >= 2; }

/// All ordered pairs of different devices.
inline std::vector<std::pair<int, int>> device_pairs() {
  std::vector<std::pair<int, int>> pairs;
  for (int a = 0; a < device_count(); ++a)
    for (int b = 0; b < device_count(); ++b)
      if (a != b) pairs.emplace_back(a, b);
  return pairs;
}

/// A stream of a user on a device, for an instance. Destroyed after the instance.
class user_stream {
 public:
  explicit user_stream(int device) : device_(device) { make(); }
  user_stream(const user_stream&) = delete;
  user_stream& operator=(const user_stream&) = delete;
  ~user_stream() {
    cudaSetDevice(device_);
    cudaStreamDestroy(native_);
    cudaSetDevice(0);
  }
  [[nodiscard]] cudaStream_t native() const { return native_; }

 private:
  void make() {
    int before = 0;
    REQUIRE(cudaGetDevice(&before) == cudaSuccess);
    REQUIRE(cudaSetDevice(device_) == cudaSuccess);
    REQUIRE(cudaStreamCreate(&native_) == cudaSuccess);
    REQUIRE(cudaSetDevice(before) == cudaSuccess);
  }

  int device_;
  cudaStream_t native_ = nullptr;
};

/// An instance on a device, with the thread's current device left as it was.
inline Kokkos::Cuda instance_over(const user_stream& stream) {
  int before = 0;
  REQUIRE(cudaGetDevice(&before) == cudaSuccess);
  Kokkos::Cuda instance(stream.native());
  REQUIRE(cudaSetDevice(before) == cudaSuccess);
  return instance;
}

/// An instance on each device, in the order of their numbers; that of Kokkos' device is the default one.
class instances {
 public:
  instances() {
    const Kokkos::Cuda first;
    for (int device = 0; device < device_count(); ++device) {
      if (device == first.cuda_device()) {
        execs_.push_back(first);
        continue;
      }
      streams_.emplace_back(device);
      execs_.push_back(instance_over(streams_.back()));
    }
  }
  [[nodiscard]] const Kokkos::Cuda& operator[](int device) const {
    return execs_[static_cast<std::size_t>(device)];
  }
  [[nodiscard]] auto begin() const { return execs_.begin(); }
  [[nodiscard]] auto end() const { return execs_.end(); }

 private:
  std::deque<user_stream> streams_;  // end after the instances
  std::vector<Kokkos::Cuda> execs_;
};

inline int device_of_pointer(const void* data) {
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, data) == cudaSuccess);
  return attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

template <class T, class Space, class Extents>
void send(ferry::tensor<T, Space, Extents>& target, const std::vector<T>& values) {
  REQUIRE(values.size() == target.size());
  REQUIRE(cudaMemcpy(target.data(), values.data(), values.size() * sizeof(T), cudaMemcpyDefault) ==
          cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}
template <class T, class Space, class Extents>
std::vector<T> fetch(const ferry::tensor<T, Space, Extents>& source) {
  std::vector<T> values(source.size());
  REQUIRE(cudaMemcpy(values.data(), source.data(), values.size() * sizeof(T), cudaMemcpyDefault) ==
          cudaSuccess);
  return values;
}

template <class Space, class T>
ferry::tensor<T, Space> make_on(int device, const char* label, std::size_t rows, std::size_t width,
                                const std::vector<T>& values) {
  ferry::tensor<T, Space> made(label, ferry::device{device}, rows, width);
  send(made, values);
  return made;
}

inline bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace ferry_test
