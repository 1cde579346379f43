// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace ferry_test {

/// Memory of a "device" that processes share on every machine: host memory in files without names. Kernels of
/// host instances reach it.
struct process_space {
  using ferry_memory_space = process_space;
  static constexpr std::string_view name = "process_space";
  static constexpr bool is_host_accessible = false;
  static constexpr bool is_device_mapped = true;

  static inline std::atomic<int> freed{0};   ///< allocations
  static inline std::atomic<int> opened{0};  ///< of other processes, now
  static inline std::atomic<bool> refuses{false};
  static inline std::mutex guard;
  static inline std::map<void*, int> files;
};

}  // namespace ferry_test

template <>
struct ferry::device_backend<ferry_test::process_space> : ferry::host_backend {
  using space = ferry_test::process_space;
  static constexpr bool shares_memory = true;

  struct named_memory {
    int process = 0, file = -1;
    std::size_t bytes = 0;
  };

  static memory_block allocate(space, std::size_t bytes, const std::string& label, int = -1) {
    const int file = ::memfd_create("ferry.test", MFD_CLOEXEC);
    void* const data = file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0
                           ? MAP_FAILED
                           : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) throw bad_alloc("no memory for '" + label + "'");
    const std::lock_guard lock(space::guard);
    space::files[data] = file;
    return {data, bytes, ::getpid(), 0};
  }
  static void deallocate(space, const memory_block& block) noexcept {
    if (block.provenance == ::getpid())
      std::memset(block.data, 0x7f, block.bytes);  // who still reads it notices
    // Held also while the address ends: another thread may get it at once.
    const std::lock_guard lock(space::guard);
    ::munmap(block.data, block.bytes);
    ::close(space::files[block.data]);
    space::files.erase(block.data);
    ++space::freed;
  }
  static std::string describe(space, const memory_block&) { return "memory of a file"; }

  static exported_memory export_memory(void* data, int) {
    if (space::refuses) throw device_error("this device shares nothing");
    const std::lock_guard lock(space::guard);
    const named_memory named{::getpid(), space::files[data], 0};
    exported_memory result;
    std::memcpy(result.token.data(), &named, sizeof named);
    return result;
  }
  static void* import_memory(const std::array<unsigned char, 64>& token, const device_uuid&, int) {
    if (space::refuses) throw device_error("device 0 does not reach the memory of device 1");
    named_memory named;
    std::memcpy(&named, token.data(), sizeof named);
    const int file =
        ::open(("/proc/" + std::to_string(named.process) + "/fd/" + std::to_string(named.file)).c_str(),
               O_RDWR | O_CLOEXEC);
    const off_t bytes = file < 0 ? -1 : ::lseek(file, 0, SEEK_END);
    const std::lock_guard lock(space::guard);
    void* const data = bytes < 0 ? MAP_FAILED
                                 : ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                                          MAP_SHARED, file, 0);
    ::close(file);
    if (data == MAP_FAILED) throw device_error("the memory can't be opened");
    ++space::opened;
    space::files[data] = static_cast<int>(bytes);
    return data;
  }
  static void end_import(void* data, int) noexcept {
    const std::lock_guard lock(space::guard);
    ::munmap(data, static_cast<std::size_t>(space::files[data]));
    space::files.erase(data);
    --space::opened;
  }
  static device_uuid uuid_of(int) { return {1}; }
};
