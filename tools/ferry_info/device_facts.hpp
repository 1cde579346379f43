// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ferry_info {

/// A backend's facts about one device, for people who look at a machine. Zero and an empty text mean that the
/// system does not tell.
struct device_facts {
  int number = 0;
  std::string name;
  std::string architecture;      ///< "compute capability 9.0"
  std::string bus;               ///< address on the PCI bus, in the form of Linux
  int numa_node = -1;            ///< -1 if the system does not tell
  std::size_t memory_bytes = 0;  ///< the device's own memory
  std::size_t free_bytes = 0;    ///< of the device that the program would use only
  std::size_t cache_bytes = 0;   ///< last-level cache
  int processors = 0;            ///< streaming multiprocessors
  int copy_engines = 0;

  /// How kernels and the host reach each other's memory.
  /// @{
  bool maps_host_memory = false;           ///< kernels may dereference page-locked memory
  bool takes_registered_memory = false;    ///< also memory of the user, at the host's address
  bool concurrent_managed_access = false;  ///< what mapped_space is made of
  bool pageable_access = false;            ///< HMM or ATS: kernels may dereference ordinary memory
  bool pageable_by_host_tables = false;    ///< ATS: by the page tables of the host
  bool host_atomics = false;               ///< atomic operations on host memory by the link itself
  /// @}

  std::vector<int> peers;  ///< devices whose memory kernels may dereference

  /// The link to the host as it is now, and the best that the device and its slot could be.
  /// @{
  int link_generation = 0;
  int link_lanes = 0;
  int best_link_generation = 0;
  int best_link_lanes = 0;
  /// @}
};

/// All devices of a backend, and what drives them.
struct device_survey {
  std::vector<device_facts> devices;
  std::string toolkit;  ///< version of the toolkit that the program was built with; empty: none is needed
  std::string runtime;  ///< newest version that the driver supports
  std::string driver;
  std::string failure;  ///< why no device can be used; empty if one can
};

}  // namespace ferry_info
