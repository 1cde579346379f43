// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../host/numa.hpp"

#include <cuda_runtime.h>

#include <cctype>
#include <cstddef>
#include <string>

namespace ferry::cuda::numa {

/// The NUMA node of the device; -1 if the system does not tell.
inline int device_node(int device) {
  char address[32] = "";
  if (cudaDeviceGetPCIBusId(address, static_cast<int>(sizeof address), device) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  std::string name = address;  // CUDA writes upper-case letters, Linux lower-case ones
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return host::numa::parse_node(host::numa::first_line("/sys/bus/pci/devices/" + name + "/numa_node"));
}

/// Requests host memory near the device; returns memory_block::placement. Does nothing on a machine with one
/// node.
inline int advise(void* pages, std::size_t bytes, int device) {
  const auto& nodes = host::numa::nodes_with_memory();
  if (nodes.size() < 2) return 0;
  return host::numa::advise(pages, bytes, host::numa::near_device(device_node(device), nodes));
}

}  // namespace ferry::cuda::numa
