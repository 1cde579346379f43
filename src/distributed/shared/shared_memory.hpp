// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace ferry::detail {

/// Memory without a name that processes share by its descriptor. All of its pages are there when it has been
/// made, and no process can take them away, so no access ends a process by SIGBUS.
class shared_memory {
 public:
  shared_memory() = default;
  shared_memory(shared_memory&& other) noexcept
      : descriptor_(std::move(other.descriptor_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  shared_memory& operator=(shared_memory&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~shared_memory();

  /// New memory, which is zero. Throws bad_alloc.
  static shared_memory make(const std::string& label, std::size_t bytes);
  /// The memory of another process. Throws bad_alloc; communication_error is the caller's.
  static shared_memory open(const std::string& label, owned_descriptor&& of, std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The mapping stays.
  void close() { descriptor_ = owned_descriptor(); }

 private:
  [[noreturn]] static void fail(const std::string& label, std::size_t bytes, const std::string& why);
  void map(const std::string& label, std::size_t bytes);

  owned_descriptor descriptor_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ferry::detail
