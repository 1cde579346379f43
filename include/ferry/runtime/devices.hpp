// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/memory/statistics.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ferry {

/// A device of this machine, see ferry::devices. Sizes are in bytes.
struct device_info {
  int id = 0;                    ///< number of the device, for ferry::device
  std::string name;              ///< that of the driver, on a host backend that of the processor
  std::size_t memory_total = 0;  ///< memory of the device; on a host backend that of the machine
  std::size_t memory_free = 0;   ///< what programs can still get; all programs of the machine share it
  /// The bytes that ferry holds in the memory of the device, pools included: device_space, on a host backend
  /// all spaces.
  std::size_t memory_used = 0;
};

/// The devices that the process sees, by their numbers from 0. A host backend has one, the host. Call it
/// after Kokkos::initialize.
///
///   for (const auto& each : ferry::devices()) std::printf("%d %s\n", each.id, each.name.c_str());
///
/// On CUDA, a device that the process has not used yet is opened for the query, which takes some tenths of a
/// second and some memory of the device meanwhile. Throws device_error if the driver fails. Thread-safe.
template <class Dependent = void>
[[nodiscard]] std::vector<device_info> devices() {
  using backend = device_backend<Dependent>;
  std::vector<device_info> list;
  for (int id = 0; id < backend::device_count(); ++id) {
    auto summary = backend::summary_of(id);
    std::size_t bytes_used = memory_statistics<device_space>(device{id}).current;
    if constexpr (backend::device_is_host)
      bytes_used += memory_statistics<pinned_space>().current + memory_statistics<mapped_space>().current +
                    memory_statistics<pageable_space>().current;
    list.push_back({id, std::move(summary.name), summary.memory_total, summary.memory_free, bytes_used});
  }
  return list;
}

/// The device of an execution space instance; an instance of a host execution space has device{0} on a host
/// backend, and no device, device{-1}, if another device exists.
template <ExecutionSpace Exec>
[[nodiscard]] device device_of(const Exec& exec) {
  if constexpr (detail::is_host_exec<Exec> && !detail::device_is_host<Exec>)
    return {};
  else
    return {execution_backend<Exec>::device_of(exec)};
}

}  // namespace ferry
