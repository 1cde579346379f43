// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <Kokkos_Core.hpp>

#include <cuda_runtime.h>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

/// The kit of the tests with two devices. Values travel by cudaMemcpy, which knows the device of each pointer.
namespace ferry_test {

inline bool has_two_devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count >= 2;
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
