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
/// both. Strings are made only while a tool is loaded. Transfers and kernels of the host also go to the
/// trace.
inline Kokkos::Tools::SpaceHandle tools_space(std::string_view name) {
  return Kokkos::Tools::make_space_handle(std::string("ferry::").append(name).c_str());
}

inline bool tools_listen() { return Kokkos::Tools::profileLibraryLoaded(); }

inline void report_allocation(std::string_view space, std::string_view label, const void* data,
                              std::size_t bytes) {
  if (tools_listen())
    Kokkos::Tools::allocateData(tools_space(space), std::string(label), data,
                                static_cast<std::uint64_t>(bytes));
}

inline void report_deallocation(std::string_view space, std::string_view label, const void* data,
                                std::size_t bytes) {
  if (tools_listen())
    Kokkos::Tools::deallocateData(tools_space(space), std::string(label), data,
                                  static_cast<std::uint64_t>(bytes));
}

/// Reports work of ferry's host threads as a kernel of a host instance, for its lifetime.
class kernel_region {
 public:
  /// Of the default host instance.
  explicit kernel_region(const std::string& label) : span_(label, {}, "kernel"), listened_(tools_listen()) {
    if (listened_) begin(label, Kokkos::DefaultHostExecutionSpace());
  }
  template <class Exec>
  kernel_region(const Exec& exec, const std::string& label)
      : span_(label, {}, "kernel"), listened_(tools_listen()) {
    if (listened_) begin(label, exec);
  }
  kernel_region(const kernel_region&) = delete;
  kernel_region& operator=(const kernel_region&) = delete;
  ~kernel_region() {
    if (listened_) Kokkos::Tools::endParallelFor(id_);
  }

 private:
  template <class Exec>
  void begin(const std::string& label, const Exec& exec) {
    Kokkos::Tools::beginParallelFor(label, Kokkos::Tools::Experimental::device_id(exec), &id_);
  }

  trace_span span_;
  bool listened_;
  std::uint64_t id_ = 0;
};

/// Reports to Kokkos Tools a kernel that ferry launches on a device without Kokkos, for its lifetime.
class tool_kernel {
 public:
  template <class Exec>
  tool_kernel(const Exec& exec, const std::string& label) : listened_(tools_listen()) {
    if (listened_) Kokkos::Tools::beginParallelFor(label, Kokkos::Tools::Experimental::device_id(exec), &id_);
  }
  tool_kernel(const tool_kernel&) = delete;
  tool_kernel& operator=(const tool_kernel&) = delete;
  ~tool_kernel() {
    if (listened_) Kokkos::Tools::endParallelFor(id_);
  }

 private:
  bool listened_;
  std::uint64_t id_ = 0;
};

/// Reports one transfer between two spaces, for its lifetime: of the call that enqueues it, where it is
/// enqueued. With `wanted` false it reports nothing.
class transfer_region {
 public:
  transfer_region(std::string_view to, const void* to_data, std::string_view from, const void* from_data,
                  std::size_t bytes, std::string_view label, bool wanted = true)
      : span_(label, {}, "transfer", wanted), listened_(wanted && tools_listen()) {
    if (span_.is_heard()) {
      span_.note("from", from);
      span_.note("to", to);
      span_.note("bytes", static_cast<std::int64_t>(bytes));
    }
    if (listened_)
      Kokkos::Tools::beginDeepCopy(tools_space(to), std::string(label), to_data, tools_space(from),
                                   std::string(label), from_data, static_cast<std::uint64_t>(bytes));
  }
  transfer_region(const transfer_region&) = delete;
  transfer_region& operator=(const transfer_region&) = delete;
  ~transfer_region() {
    if (listened_) Kokkos::Tools::endDeepCopy();
  }

 private:
  trace_span span_;
  bool listened_;
};

}  // namespace ferry::detail
