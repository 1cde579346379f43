// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/memory/device.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ferry {

/// The names of a backend's device and driver. A measured profile is valid for these.
struct device_id {
  std::string device;
  std::string driver;
};

/// The name of a device and its memory in bytes.
struct device_summary {
  std::string name;
  std::size_t memory_total = 0;
  std::size_t memory_free = 0;
};

/// Rows of equal length at equal distances, in slices at equal distances: what a 2-d or 3-d transfer moves.
/// Distances are in bytes and at least as large as what they separate.
struct pitched_block {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t row_bytes = 0;
  std::size_t rows = 1;  ///< of a slice
  std::size_t slices = 1;
  std::size_t target_pitch = 0;  ///< from one row to the next
  std::size_t source_pitch = 0;  ///< likewise
  std::size_t target_slice = 0;  ///< from one slice to the next
  std::size_t source_slice = 0;  ///< likewise
};

/// The backend of an execution space; specialised in backends/.
template <class Exec>
struct execution_backend;

namespace detail {

/// Stands for an execution space whose work runs in the calling thread. The threads that work on different
/// slots use it.
struct caller_thread {
  void fence(const std::string&) const {}
};

template <class Exec>
inline constexpr bool is_host_exec = HostExecutionSpace<Exec>;
template <>
inline constexpr bool is_host_exec<caller_thread> = true;

/// Several numbers that a host's kernel computes at once: `type<Count>` for Count up to `most`, each half of
/// the one before, and 1. None if `most` is 0; specialised in backends/host.
template <class T>
struct lanes_of {
  static constexpr int most = 0;
};

/// Registers of `Bytes` bytes. 0: those of every processor that the program is compiled for.
template <int Bytes>
struct register_size {
  static constexpr int bytes = Bytes;
};

/// How many numbers of type T a host's kernel computes at once in such registers; 0 as in lanes_of.
template <class T, int Bytes>
inline constexpr int most_lanes = Bytes == 0 || lanes_of<T>::most == 0 ? lanes_of<T>::most
                                                                       : Bytes / static_cast<int>(sizeof(T));

/// Calls body(register_size) of a host's kernel, compiled for the largest registers that the processor has.
/// What is called from there must be inlined, or be called by in(). Specialised in backends/host for void;
/// kernels use registers_for, which looks for that late.
template <class>
struct registers {
  template <class Body>
  [[gnu::noinline]] static void in_largest(const Body& body) {
    body(register_size<0>{});
  }
  template <int Bytes, class Body>
  [[gnu::noinline]] static void in(const Body& body) {
    body(register_size<Bytes>{});
  }
};
template <class Dependent>
using registers_for = registers<std::void_t<Dependent>>;

/// Every call that runs kernels comes here before it takes a lock or enqueues anything. Throws
/// invalid_argument unless Kokkos runs, and in a child that was forked after Kokkos::initialize, unless
/// `exec` is a host instance of one thread: the calling thread.
template <class Exec>
void require_own_kokkos(const Exec& exec, std::string_view call) {
  require_kokkos(call);
  if (!process_identity::get().has_lost_kokkos()) return;
  if constexpr (HostExecutionSpace<Exec>)
    if (concurrency_of(exec) == 1) return;
  refuse_lost_kokkos(call);
}

/// True if host code may dereference device_space, as on a host backend.
template <class Dependent>
inline constexpr bool device_is_host = device_backend<Dependent>::device_is_host;

/// True if kernels of Exec may dereference Space. For pageable memory and a device this is known at run time
/// only, see execution_backend::reaches_pageable.
template <class Exec, class Space>
consteval bool may_dereference() {
  if constexpr (is_host_exec<Exec>)
    return Space::is_host_accessible || device_is_host<Space>;
  else
    return true;
}

/// The device of memory for work of an instance: its own; for a host instance wherever memory lies by
/// default.
template <class Exec>
device memory_home(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return {};
  else
    return {execution_backend<Exec>::device_of(exec)};
}

/// True if a host instance does work of that many bytes in the calling thread: to wake other threads would
/// take longer than the work. An instance of one thread wakes nobody.
template <HostExecutionSpace Exec>
bool stays_in_caller(const Exec& exec, std::int64_t bytes) {
  return bytes <= execution_backend<Exec>::tuning(exec).caller_bytes && concurrency_of(exec) > 1;
}

/// The instance for the host part of a verb: `exec` if it is a host instance, else the default host
/// instance.
template <class Exec>
auto host_side(const Exec& exec) {
  if constexpr (is_host_exec<Exec>)
    return exec;
  else
    return Kokkos::DefaultHostExecutionSpace{};
}

}  // namespace detail
}  // namespace ferry
