// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../../backends/cuda/detail/abilities.hpp"
#include "../../backends/cuda/numa.hpp"
#include "../../backends/host/identity.hpp"
#include "../../backends/host/numa.hpp"
#include "device_facts.hpp"

#include <ferry/error.hpp>

#include <cuda_runtime.h>

#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::cuda {

/// The facts about devices that ferry-info prints.
struct survey_functions {
  /// All devices, without a context on any but `chosen`, whose free memory is asked for. Never throws for a
  /// machine without a device: the survey says why there is none.
  static ferry_info::device_survey survey(int chosen) {
    ferry_info::device_survey survey;
    survey.toolkit = version_text(CUDART_VERSION);
    survey.driver = host::line_of("/sys/module/nvidia/version", "");
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess && version != 0) survey.runtime = version_text(version);
    int count = 0;
    if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
      cudaGetLastError();
      survey.failure = std::string("cudaGetDeviceCount: ") + cudaGetErrorString(status);
      return survey;
    }
    for (int device = 0; device < count; ++device) survey.devices.push_back(facts_about(device, count));
    if (chosen < 0 || chosen >= count) {
      survey.failure = ferry::detail::joined("there is no device ", chosen);
      return survey;
    }
    ferry_info::device_facts& chosen_device = survey.devices[static_cast<std::size_t>(chosen)];
    std::size_t total = 0;
    cudaError_t status = cudaSetDevice(chosen);
    if (status == cudaSuccess) status = cudaMemGetInfo(&chosen_device.free_bytes, &total);
    if (status != cudaSuccess) {
      cudaGetLastError();
      survey.failure =
          ferry::detail::joined("device ", chosen, " can't be used: ", cudaGetErrorString(status));
    }
    return survey;
  }

  /// The generation of PCIe that a rate of the link belongs to, as Linux writes it ("32.0 GT/s PCIe").
  static int generation_of(std::string_view text) {
    constexpr std::pair<std::string_view, int> generations[] = {
        {"2.5", 1}, {"5.0", 2}, {"5 ", 2}, {"8.0", 3}, {"16.0", 4}, {"32.0", 5}, {"64.0", 6}};
    for (const auto& [rate, generation] : generations)
      if (text.substr(0, rate.size()) == rate) return generation;
    return 0;
  }

 private:
  static std::string version_text(int version) {
    return ferry::detail::joined(version / 1000, ".", version % 1000 / 10);
  }

  static int value_of(cudaDeviceAttr name, int device) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, name, device) == cudaSuccess) return value;
    cudaGetLastError();
    return 0;
  }

  static ferry_info::device_facts facts_about(int device, int count) {
    ferry_info::device_facts facts;
    facts.number = device;
    cudaDeviceProp about{};
    if (cudaGetDeviceProperties(&about, device) == cudaSuccess) {
      facts.name = about.name;
      facts.memory_bytes = about.totalGlobalMem;
      facts.cache_bytes = static_cast<std::size_t>(about.l2CacheSize);
    } else {
      cudaGetLastError();
    }
    facts.architecture =
        ferry::detail::joined("compute capability ", value_of(cudaDevAttrComputeCapabilityMajor, device), ".",
                              value_of(cudaDevAttrComputeCapabilityMinor, device));
    facts.processors = value_of(cudaDevAttrMultiProcessorCount, device);
    facts.copy_engines = value_of(cudaDevAttrAsyncEngineCount, device);
    facts.maps_host_memory = value_of(cudaDevAttrCanMapHostMemory, device) != 0;
    facts.takes_registered_memory = !withheld().registered &&
                                    value_of(cudaDevAttrHostRegisterSupported, device) != 0 &&
                                    value_of(cudaDevAttrCanUseHostPointerForRegisteredMem, device) != 0;
    facts.concurrent_managed_access =
        !withheld().managed && value_of(cudaDevAttrConcurrentManagedAccess, device) != 0;
    facts.pageable_access = !withheld().pageable && value_of(cudaDevAttrPageableMemoryAccess, device) != 0;
    facts.pageable_by_host_tables =
        facts.pageable_access && value_of(cudaDevAttrPageableMemoryAccessUsesHostPageTables, device) != 0;
    facts.host_atomics = value_of(cudaDevAttrHostNativeAtomicSupported, device) != 0;
    for (int peer = 0; peer < count; ++peer) {
      int reaches = 0;
      if (peer != device && cudaDeviceCanAccessPeer(&reaches, device, peer) == cudaSuccess && reaches != 0)
        facts.peers.push_back(peer);
    }
    cudaGetLastError();
    look_at_link(facts);
    return facts;
  }

  static void look_at_link(ferry_info::device_facts& facts) {
    char address[32] = "";
    if (cudaDeviceGetPCIBusId(address, static_cast<int>(sizeof address), facts.number) != cudaSuccess) {
      cudaGetLastError();
      return;
    }
    facts.bus = address;  // CUDA writes upper-case letters, Linux lower-case ones
    for (char& letter : facts.bus)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    facts.numa_node = numa::device_node(facts.number);
    const std::string folder = "/sys/bus/pci/devices/" + facts.bus + "/";
    const auto line = [&](const char* name) { return host::numa::first_line(folder + name); };
    const auto lanes = [&](const char* name) {
      const int wide = std::atoi(line(name).c_str());
      return wide > 0 && wide <= 32 ? wide : 0;  // 63 and 255 mean an unknown link
    };
    facts.link_generation = generation_of(line("current_link_speed"));
    facts.link_lanes = lanes("current_link_width");
    facts.best_link_generation = generation_of(line("max_link_speed"));
    facts.best_link_lanes = lanes("max_link_width");
  }
};

}  // namespace ferry::cuda

namespace ferry {
using backend_survey = cuda::survey_functions;
}
