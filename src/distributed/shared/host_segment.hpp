// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../../backends/enabled.hpp"

#include <ferry/distributed/shared/detail/owned_descriptor.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace ferry::detail {

/// Host memory without a name that processes share by its descriptor, in the accounts of its space. All of its
/// pages are there from the beginning, and no process can take them away, so no access ends a process by
/// SIGBUS.
class host_segment {
 public:
  /// New memory, which is zero. Throws bad_alloc, budget_exceeded.
  host_segment(const char* call, const std::string& label, std::size_t bytes, bool pinned)
      : call_(call), bytes_(bytes) {
    if (bytes == 0) return;
    if (!pinned) charge_ = memory_charge(pageable_space::name, "ferry::tensor::" + label, bytes);
    reserve(label);
    map(label, pinned);
    if (!pinned) charge_.confirm();
  }
  /// The memory of another process. Throws bad_alloc.
  host_segment(const char* call, const std::string& label, owned_descriptor&& descriptor, std::size_t bytes,
               bool pinned)
      : call_(call), bytes_(bytes), descriptor_(std::move(descriptor)) {
    if (bytes == 0) return;
    if (descriptor_.get() < 0) fail(label, "this process may open no more files");
    map(label, pinned);
  }
  host_segment(const host_segment&) = delete;
  host_segment& operator=(const host_segment&) = delete;
  ~host_segment() = default;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(mapping_.get()); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The mapping stays.
  void close_descriptor() { descriptor_ = owned_descriptor(); }

 private:
  struct unmapping {
    std::size_t bytes;
    void operator()(void* data) const noexcept { ::munmap(data, bytes); }
  };

  [[noreturn]] void fail(const std::string& label, const std::string& why) const {
    throw bad_alloc(std::string(call_) + ": no " + std::to_string(bytes_) + " bytes of shared memory for '" +
                    label + "': " + why);
  }
  [[noreturn]] void fail_call(const std::string& label, const char* call, int error) const {
    fail(label, std::string(call) + ": " + std::strerror(error));
  }
  void reserve(const std::string& label) {
    const std::int64_t available = available_bytes();
    if (std::cmp_greater(bytes_, std::int64_t{1} << 62) ||
        (available >= 0 && std::cmp_greater(bytes_, available)))
      fail(label, std::to_string(available) + " bytes are available");
    if (const std::uint64_t most = largest_file(); bytes_ > most)
      fail(label, "files of this process, which it counts among, may have " + std::to_string(most) +
                      " bytes (ulimit -f)");
    descriptor_ = owned_descriptor(::memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const int file = descriptor_.get();
    if (file < 0) fail_call(label, "memfd_create", errno);
    const auto size = static_cast<off_t>(bytes_);
    if (::ftruncate(file, size) != 0) fail_call(label, "ftruncate", errno);
    // In pieces: a signal undoes a call, and under a timer a long one would never end.
    constexpr off_t piece = off_t{1} << 25;
    for (off_t first = 0; first < size; first += piece) {
      int status = EINTR;
      while (status == EINTR) status = ::posix_fallocate(file, first, std::min(piece, size - first));
      if (status != 0) fail_call(label, "posix_fallocate", status);
    }
    if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail_call(label, "F_ADD_SEALS", errno);
  }
  void map(const std::string& label, bool pinned) {
    void* const raw = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (raw == MAP_FAILED) fail_call(label, "mmap", errno);
    mapping_ = {raw, unmapping{bytes_}};
    if (pinned) locked_.emplace("ferry::tensor::" + label, raw, bytes_);
  }

  const char* call_;  ///< for messages
  std::size_t bytes_;
  memory_charge charge_;
  owned_descriptor descriptor_;
  std::unique_ptr<void, unmapping> mapping_{};
  std::optional<locked_pages<pinned_space>> locked_;
};

}  // namespace ferry::detail
