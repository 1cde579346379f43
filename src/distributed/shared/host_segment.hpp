// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../../backends/enabled.hpp"

#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/file.hpp>
#include <ferry/memory/detail/memory_charge.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/adopt.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

/// An open file descriptor.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int descriptor) : descriptor_(descriptor) {}
  owned_descriptor(owned_descriptor&& source) noexcept : descriptor_(std::exchange(source.descriptor_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& source) noexcept {
    std::swap(descriptor_, source.descriptor_);
    return *this;
  }
  ~owned_descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A number of the system that no other process gets, which is not 0.
[[nodiscard]] std::uint64_t random_number();

/// Host memory without a name, which other processes of the machine open by the number of its descriptor, in
/// the accounts of its space. All of its pages are there from the beginning, and no process can take them away,
/// so no access ends a process by SIGBUS. A key lies behind the bytes: it tells them from a file of the same
/// process and descriptor in another place.
class host_segment {
 public:
  /// New memory, which is zero. Throws bad_alloc, budget_exceeded.
  host_segment(const char* call, const std::string& label, std::size_t bytes, bool pinned)
      : call_(call), bytes_(bytes + sizeof handle_.key) {
    if (bytes == 0) return;
    if (!pinned) charge_ = memory_charge(pageable_space::name, "ferry::tensor::" + label, bytes);
    reserve(label);
    map(label, pinned);
    if (!pinned) charge_.confirm();
    handle_ = {process_home::current(), static_cast<std::int32_t>(::getpid()), descriptor_.get(), bytes,
               random_number()};
    std::memcpy(data() + bytes, &handle_.key, sizeof handle_.key);
  }
  /// The memory of another process, whose descriptor stays open until this returns. Throws bad_alloc,
  /// invalid_argument for a process that can't be reached.
  host_segment(const char* call, const std::string& label, const segment_handle& handle, bool pinned)
      : call_(call), bytes_(static_cast<std::size_t>(handle.bytes) + sizeof handle.key), handle_(handle) {
    if (handle.bytes == 0) return;
    descriptor_ = opened_descriptor();
    map(label, pinned);
    close_descriptor();
    if (std::memcmp(data() + handle.bytes, &handle.key, sizeof handle.key) != 0)
      throw invalid_argument("process " + std::to_string(handle.process) + " has no such memory any more");
  }
  host_segment(const host_segment&) = delete;
  host_segment& operator=(const host_segment&) = delete;
  ~host_segment() = default;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(mapping_.get()); }
  [[nodiscard]] const segment_handle& handle() const { return handle_; }
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
  /// Throws invalid_argument.
  [[nodiscard]] owned_descriptor opened_descriptor() const {
    const std::string process = "process " + std::to_string(handle_.process);
    const process_home home = process_home::current();
    if (handle_.descriptor < 0) throw invalid_argument(process + " has no host memory to share");
    if (handle_.home.boot != home.boot) throw invalid_argument(process + " is on another machine");
    if (handle_.home.numbers != home.numbers)
      throw invalid_argument(process + " is in another container, whose processes this one does not see");
    const std::string path =
        "/proc/" + std::to_string(handle_.process) + "/fd/" + std::to_string(handle_.descriptor);
    owned_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat facts {};
    if (file.get() < 0 || ::fstat(file.get(), &facts) != 0)
      throw invalid_argument(process + " does not let this one open its memory: " + std::strerror(errno));
    if (std::cmp_not_equal(facts.st_size, bytes_))
      throw invalid_argument(process + " has no such memory any more");
    return file;
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

  const char* call_;   ///< for messages
  std::size_t bytes_;  ///< with the key
  segment_handle handle_;
  memory_charge charge_;
  owned_descriptor descriptor_;
  std::unique_ptr<void, unmapping> mapping_{};
  std::optional<locked_pages<pinned_space>> locked_;
};

}  // namespace ferry::detail
