// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/trace_span.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::detail {

/// ferry allocates and copies through its backends, which Kokkos Tools can't observe. These functions report
/// both, while a tool is loaded. Transfers and kernels of the host also go to the trace.
void report_allocation(std::string_view space, std::string_view label, const void* data, std::size_t bytes);
void report_deallocation(std::string_view space, std::string_view label, const void* data, std::size_t bytes);

/// Reports to Kokkos Tools a kernel that ferry launches on a device without Kokkos, for its lifetime.
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

/// Reports work of ferry's host threads as a kernel of a host instance, for its lifetime.
class kernel_region {
 public:
  /// Of the default host instance.
  explicit kernel_region(const std::string& label);
  template <class Exec>
  kernel_region(const Exec& exec, const std::string& label)
      : span_(label, {}, "kernel"), tool_(exec, label) {}

 private:
  trace_span span_;
  tool_kernel tool_;
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
  trace_span span_;
  bool listened_;
};

}  // namespace ferry::detail
