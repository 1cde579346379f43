// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include "streams.hpp"

#include <ferry/ferry.hpp>
#include <ferry/interop/dlpack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace ferry_tables {

dlpack_object::~dlpack_object() {
  const auto drop = [](auto* managed) {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
  if (managed_ == nullptr) return;
  if (versioned_)
    drop(static_cast<DLManagedTensorVersioned*>(managed_));
  else
    drop(static_cast<DLManagedTensor*>(managed_));
}

bool dlpack_object::on_host() const {
  const DLTensor& array = versioned_ ? static_cast<const DLManagedTensorVersioned*>(managed_)->dl_tensor
                                     : static_cast<const DLManagedTensor*>(managed_)->dl_tensor;
  return array.device.device_type == kDLCPU || array.device.device_type == kDLCUDAHost;
}

template <class Space>
std::unique_ptr<table> make_in(const std::string& label, std::size_t rows, std::size_t width);
template <class Space>
std::unique_ptr<table> load_in(const std::string& label, const std::string& path);

namespace {

template <class Run>
std::unique_ptr<table> in_space(const std::string& space, const Run& run) {
  if (space == "device") return run(ferry::device_space{});
  if (space == "pinned") return run(ferry::pinned_space{});
  if (space == "mapped") return run(ferry::mapped_space{});
  if (space == "pageable") return run(ferry::pageable_space{});
  throw ferry::invalid_argument("there is no memory space '" + space +
                                "'; take device, pinned, mapped or pageable");
}

std::mutex guard;
std::map<std::uintptr_t, exec_space>& instances() {
  static std::map<std::uintptr_t, exec_space> list;
  return list;
}

}  // namespace

exec_space instance_of([[maybe_unused]] std::uintptr_t stream) {
#if defined(KOKKOS_ENABLE_CUDA)
  const std::lock_guard lock(guard);
  const auto entry = instances().find(stream);
  if (entry != instances().end()) return entry->second;
  // The numbers 1 and 2 are CUDA's own handles of the default streams.
  return instances()
      .emplace(stream, exec_space(reinterpret_cast<cudaStream_t>(stream == 0 ? 1 : stream)))
      .first->second;
#else
  return exec_space();
#endif
}

std::unique_ptr<table> make_table(const std::string& space, const std::string& label, std::size_t rows,
                                  std::size_t width) {
  return in_space(space, [&]<class Space>(Space) { return make_in<Space>(label, rows, width); });
}
std::unique_ptr<table> load_table(const std::string& space, const std::string& label,
                                  const std::string& path) {
  return in_space(space, [&]<class Space>(Space) { return load_in<Space>(label, path); });
}

void initialize() {
  if (!Kokkos::is_initialized() && !Kokkos::is_finalized())
    Kokkos::initialize(Kokkos::InitializationSettings().set_disable_warnings(true));
}
void finalize() {
  {
    const std::lock_guard lock(guard);
    instances().clear();
  }
  if (Kokkos::is_initialized()) Kokkos::finalize();
}
std::string backend() { return std::string(ferry::execution_backend<exec_space>::name); }

}  // namespace ferry_tables
