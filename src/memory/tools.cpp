// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/tools.hpp>

#include <Kokkos_Core.hpp>

namespace ferry::detail {

namespace {

// Strings are made only while a tool is loaded.
bool tools_listen() { return Kokkos::Tools::profileLibraryLoaded(); }

Kokkos::Tools::SpaceHandle tools_space(std::string_view name) {
  return Kokkos::Tools::make_space_handle(std::string("ferry::").append(name).c_str());
}

}  // namespace

void report_allocation(std::string_view space, std::string_view label, const void* data, std::size_t bytes) {
  if (tools_listen())
    Kokkos::Tools::allocateData(tools_space(space), std::string(label), data, std::uint64_t{bytes});
}

void report_deallocation(std::string_view space, std::string_view label, const void* data,
                         std::size_t bytes) {
  if (tools_listen())
    Kokkos::Tools::deallocateData(tools_space(space), std::string(label), data, std::uint64_t{bytes});
}

void tool_region::begin(std::string_view first, std::string_view second) {
  Kokkos::Tools::pushRegion(std::string(first).append(second));
}

tool_kernel::tool_kernel(std::uint32_t device, const std::string& label) : listened_(tools_listen()) {
  if (listened_) Kokkos::Tools::beginParallelFor(label, device, &id_);
}

tool_kernel::~tool_kernel() {
  if (listened_) Kokkos::Tools::endParallelFor(id_);
}

transfer_region::transfer_region(std::string_view target, const void* target_data, std::string_view source,
                                 const void* source_data, std::size_t bytes, std::string_view label,
                                 bool enabled)
    : listened_(enabled && tools_listen()) {
  if (listened_)
    Kokkos::Tools::beginDeepCopy(tools_space(target), std::string(label), target_data, tools_space(source),
                                 std::string(label), source_data, std::uint64_t{bytes});
}

transfer_region::~transfer_region() {
  if (listened_) Kokkos::Tools::endDeepCopy();
}

}  // namespace ferry::detail
