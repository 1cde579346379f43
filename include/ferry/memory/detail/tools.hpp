// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

/// ferry allocates and copies through its backends, which Kokkos Tools can't observe. These functions report
/// both, while a tool is loaded.
void report_allocation(std::string_view space, std::string_view label, const void* data, std::size_t bytes);
void report_deallocation(std::string_view space, std::string_view label, const void* data, std::size_t bytes);

/// Work of the calling thread as a region of Kokkos Tools, for its lifetime: a verb, a wait, a stage of a
/// prefetcher. While no tool is loaded it costs one load.
class tool_region {
 public:
  /// The name has two parts, which are joined for a tool only.
  explicit tool_region(std::string_view first, std::string_view second = {}, bool enabled = true)
      : listened_(enabled && Kokkos::Tools::profileLibraryLoaded()) {
    if (listened_) begin(first, second);
  }
  tool_region(const tool_region&) = delete;
  tool_region& operator=(const tool_region&) = delete;
  ~tool_region() {
    if (listened_) Kokkos::Tools::popRegion();
  }

  [[nodiscard]] bool is_recording() const { return listened_; }

 private:
  [[gnu::cold]] static void begin(std::string_view first, std::string_view second);

  bool listened_;
};

/// Reports to Kokkos Tools a kernel that ferry runs without Kokkos, for its lifetime.
class tool_kernel {
 public:
  template <class Exec>
  tool_kernel(const Exec& exec, const std::string& label)
      : tool_kernel(Kokkos::Tools::Experimental::device_id(exec), label) {}
  tool_kernel(const tool_kernel&) = delete;
  tool_kernel& operator=(const tool_kernel&) = delete;
  ~tool_kernel();

 private:
  tool_kernel(std::uint32_t device, const std::string& label);

  bool listened_;
  std::uint64_t id_ = 0;
};

/// Reports one transfer between two spaces, for its lifetime: of the call that enqueues it, if it is
/// enqueued. With `enabled` false it reports nothing.
class transfer_region {
 public:
  transfer_region(std::string_view target, const void* target_data, std::string_view source,
                  const void* source_data, std::size_t bytes, std::string_view label, bool enabled = true);
  transfer_region(const transfer_region&) = delete;
  transfer_region& operator=(const transfer_region&) = delete;
  ~transfer_region();

 private:
  bool listened_;
};

}  // namespace ferry::detail
