// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/file_stream.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace ferry::detail {

/// An open file descriptor.
class owned_descriptor {
 public:
  owned_descriptor() = default;
  explicit owned_descriptor(int descriptor) : descriptor_(descriptor) {}
  owned_descriptor(owned_descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~owned_descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// A number after `name` in a text file, in bytes times `unit`; -1 where there is none ("max").
inline std::int64_t number_in(const char* path, const char* name, std::int64_t unit) {
  std::FILE* const stream = std::fopen(path, "re");
  if (stream == nullptr) return -1;
  char line[160];
  long long found = -1;
  while (found < 0 && std::fgets(line, sizeof line, stream) != nullptr)
    if (std::strncmp(line, name, std::strlen(name)) == 0)
      if (std::sscanf(line + std::strlen(name), " %lld", &found) != 1) break;
  std::fclose(stream);
  return found < 0 ? -1 : found * unit;
}

/// Lowers `most` to what the control group of this process and those above it can still give: a job of a
/// batch system, a service or a container has a limit of its own. `own` is the line of /proc/self/cgroup
/// after "<number>:<controllers>:"; groups that this process does not see are left out.
inline void lower_to_groups(std::int64_t& most, const std::string& root, std::string own, const char* limit,
                            const char* used, const char* cached) {
  if (own == "/") own.clear();
  for (;; own.resize(own.rfind('/'))) {
    const std::string group = root + own + "/";
    const std::int64_t all = number_in((group + limit).c_str(), "", 1);
    const std::int64_t held = number_in((group + used).c_str(), "", 1);
    if (all >= 0 && all < (std::int64_t{1} << 60) && held >= 0) {
      const std::int64_t files = number_in((group + "memory.stat").c_str(), cached, 1);
      const std::int64_t left = std::max<std::int64_t>(all - held + std::max<std::int64_t>(files, 0), 0);
      most = most < 0 ? left : std::min(most, left);
    }
    if (own.rfind('/') == std::string::npos) return;
  }
}

/// Bytes that the system can give without taking them from somebody: what is available on the machine, and in
/// the control groups of this process (of either version). The system would rather end processes than refuse
/// pages.
inline std::int64_t available_bytes() {
  std::int64_t most = number_in("/proc/meminfo", "MemAvailable:", 1024);
  const file_stream stream(std::fopen("/proc/self/cgroup", "re"));
  if (stream == nullptr) return most;
  char line[4096];
  while (std::fgets(line, sizeof line, stream.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    char* const controllers = std::strchr(line, ':');
    char* const own = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (own == nullptr) continue;
    *own = '\0';
    if (controllers[1] == '\0')
      lower_to_groups(most, "/sys/fs/cgroup", own + 1, "memory.max", "memory.current", "inactive_file ");
    else if (std::strcmp(controllers + 1, "memory") == 0)
      lower_to_groups(most, "/sys/fs/cgroup/memory", own + 1, "memory.limit_in_bytes",
                      "memory.usage_in_bytes", "total_inactive_file ");
  }
  return most;
}

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
  ~shared_memory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  /// New memory, which is zero. Throws bad_alloc.
  static shared_memory make(const std::string& label, std::size_t bytes) {
    shared_memory made;
    if (bytes == 0) return made;
    const std::int64_t available = available_bytes();
    if (std::cmp_greater(bytes, std::int64_t{1} << 62) ||
        (available >= 0 && std::cmp_greater(bytes, available)))
      fail(label, bytes, std::to_string(available) + " bytes are available");
    made.descriptor_ = owned_descriptor(::memfd_create("ferry", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (made.descriptor_.get() < 0) fail(label, bytes, std::string("memfd_create: ") + std::strerror(errno));
    const auto size = static_cast<off_t>(bytes);
    if (::ftruncate(made.descriptor_.get(), size) != 0)
      fail(label, bytes, std::string("ftruncate: ") + std::strerror(errno));
    // In pieces: a signal undoes a call, and under a timer a long one would never end.
    constexpr off_t piece = off_t{1} << 25;
    for (off_t done = 0; done < size; done += piece) {
      int status = EINTR;
      while (status == EINTR)
        status = ::posix_fallocate(made.descriptor_.get(), done, std::min(piece, size - done));
      if (status != 0) fail(label, bytes, std::string("posix_fallocate: ") + std::strerror(status));
    }
    if (::fcntl(made.descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail(label, bytes, std::string("F_ADD_SEALS: ") + std::strerror(errno));
    made.map(label, bytes);
    return made;
  }
  /// The memory of another process. Throws bad_alloc; communication_error is the caller's.
  static shared_memory open(const std::string& label, owned_descriptor&& of, std::size_t bytes) {
    shared_memory made;
    if (bytes == 0) return made;
    if (of.get() < 0) fail(label, bytes, "this process may open no more files");
    made.descriptor_ = std::move(of);
    made.map(label, bytes);
    return made;
  }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The mapping stays.
  void close() { descriptor_ = owned_descriptor(); }

 private:
  [[noreturn]] static void fail(const std::string& label, std::size_t bytes, const std::string& why) {
    throw bad_alloc("ferry::shared_tensor: no " + std::to_string(bytes) + " bytes of shared memory for '" +
                    label + "': " + why);
  }
  void map(const std::string& label, std::size_t bytes) {
    void* const raw = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
    if (raw == MAP_FAILED) fail(label, bytes, std::string("mmap: ") + std::strerror(errno));
    data_ = raw;
    bytes_ = bytes;
  }

  owned_descriptor descriptor_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ferry::detail
