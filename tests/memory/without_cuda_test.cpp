// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/test.hpp"

/// The kinds of memory of this device, and of the one that FERRY_WITHOUT pretends: tests/CMakeLists.txt
/// runs this program with the variable and without it.
namespace ferry_test::without_cuda_test {

namespace cuda = ferry::cuda;

bool device_can(cudaDeviceAttr property) { return cuda::attribute(property, cuda::default_device()) != 0; }

template <class Space>
std::string made_of(std::size_t bytes) {
  return ferry::detail::allocation<Space>("block", bytes).describe();
}

TEST_CASE("a device can what it says, less what FERRY_WITHOUT names", "[without]") {
  using ferry::detail::without;
  const int device = cuda::default_device();
  CHECK(cuda::shares_managed(device) ==
        (device_can(cudaDevAttrConcurrentManagedAccess) && !without("managed")));
  CHECK(ferry::execution_backend<exec_space>::reaches_pageable(exec_space{}) ==
        (device_can(cudaDevAttrPageableMemoryAccess) && !without("pageable")));
  CHECK(cuda::facts_of(device).host_register_supported ==
        (device_can(cudaDevAttrHostRegisterSupported) && !without("registered")));
  const auto processors = cuda::attribute(cudaDevAttrMultiProcessorCount, device);
  const int expected = without("large_device") ? cuda::small_device.multiprocessors : processors;
  CHECK(cuda::multiprocessors_of(device) == expected);
  CHECK(ferry::execution_backend<exec_space>::tuning(exec_space{}).teams_that_search == 2 * expected);
}

TEST_CASE("the variable is read once", "[without]") {
  const int device = cuda::default_device();
  const bool managed = cuda::shares_managed(device);
  const auto processors = cuda::multiprocessors_of(device);
  const environment_variable late("FERRY_WITHOUT",
                                  ferry::detail::without("managed") ? "pageable" : "managed,large_device");
  CHECK(cuda::shares_managed(device) == managed);
  CHECK(cuda::multiprocessors_of(device) == processors);
}

TEST_CASE("mapped memory falls back to page-locked memory", "[without]") {
  const int device = cuda::default_device();
  const bool registers = cuda::page_locking_for(cuda::facts_of(device)) == cuda::page_locking::registered;
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{5} << 20}) {
    CAPTURE(bytes);
    const std::string mapped = made_of<ferry::mapped_space>(bytes);
    const std::string pinned = made_of<ferry::pinned_space>(bytes);
    CHECK_THAT(pinned, ContainsSubstring(registers ? "cudaHostRegister" : "cudaHostAlloc"));
    if (cuda::shares_managed(device))
      CHECK_THAT(mapped, ContainsSubstring("managed memory, preferred location host"));
    else
      CHECK_THAT(mapped, ContainsSubstring("page-locked memory") &&
                             ContainsSubstring("no concurrent access to managed memory"));
    CHECK((mapped.find("fallback") != std::string::npos) == (!cuda::shares_managed(device) && registers));
    // The runtime agrees.
    const ferry::tensor<float, ferry::mapped_space> table("table", bytes / sizeof(float));
    cudaPointerAttributes about{};
    REQUIRE(cudaPointerGetAttributes(&about, table.data()) == cudaSuccess);
    CHECK(about.type == (cuda::shares_managed(device) ? cudaMemoryTypeManaged : cudaMemoryTypeHost));
    CHECK(about.devicePointer == table.data());
  }
}

}  // namespace ferry_test::without_cuda_test
