// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
#include <ferry/distributed/shared/shared_handle.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace ferry {

namespace detail {

/// The extents of a handle whose tensor this process may open as T in a space. Throws invalid_argument.
template <class T, class Extents>
shape<Extents> checked_record(const shared_record& record, std::string_view space) {
  int rank = -1;
  if constexpr (Extents::has_static_rank) rank = static_cast<int>(Extents::rank);
  require_opens(record, typeid(T), sizeof(T), space, rank);
  std::array<std::size_t, max_rank> sizes{};
  for (std::size_t i = 0; i < record.rank; ++i) sizes[i] = static_cast<std::size_t>(record.extents[i]);
  try {
    return shape<Extents>::make(
        std::span<const std::size_t>(sizes.data(), static_cast<std::size_t>(record.rank)),
        std::string(record.label.view()), sizeof(T));
  } catch (const invalid_argument& unfit) {
    refuse_record("ferry::open_shared", record, unfit.what());
  }
}

/// The first byte of the tensor of a handle, for work of a device; null for a tensor without elements.
template <class Space>
std::shared_ptr<std::byte> opened_memory(const shared_record& record, [[maybe_unused]] int device) {
  if constexpr (!shares_memory<Space>()) {
    refuse_host_memory("ferry::open_shared", record);
  } else {
    if (record.segment.lease.number == 0) return {};
    const auto message = [&record](const char* why) {
      return joined("ferry::open_shared: ", record.describe(), " can't be opened: ", why);
    };
    try {
      const auto memory = segments_of<Space>().open(record.segment, device);
      return {memory, memory.get() + record.offset};
    } catch (const invalid_argument& why) {
      throw invalid_argument(message(why.what()));
    } catch (const device_error& why) {
      throw device_error(message(why.what()));
    }
  }
}

}  // namespace detail

/// A tensor over the memory of another process, of the extents and label that it has there.
///
///   ferry::shared_handle handle;
///   ::read(pipe, &handle, sizeof handle);
///   auto weights = ferry::open_shared<float>(handle);
///   ferry::gather(exec, weights, indices, batch).wait();
///
/// Reads and writes go to the one memory. It is not freed before this tensor has ended, or its process has,
/// and counts in the memory_statistics of the process that allocated it. Several tensors may be opened by one
/// handle, also in the process that shared it. Nothing orders accesses of different processes: see share.
///
///   T, Space   those of the shared tensor
///   Extents    as of ferry::tensor; may fix extents, which must fit
///   handle     of ferry::share
///   home       the device whose verbs use the tensor, and what its device() tells: the memory's own or one
///              that reaches it, over NVLink or as PCIe peer; the device that Kokkos uses by default
///
/// Throws invalid_argument if element type, extents, machine or device number do not fit, if the tensor
/// or the process that shared it has ended, and on host backends; device_error if the device does not
/// reach the memory.
template <Element T, MemorySpace Space = device_space, class Extents = dynamic_rank>
[[nodiscard]] tensor<T, Space, Extents> open_shared(const shared_handle& handle, device home = {}) {
  detail::require_shared_space<Space>();
  const detail::shared_record& record = handle.record();
  const auto extents = detail::checked_record<T, Extents>(record, Space::name);
  std::string label(record.label.view());
  home.id = detail::device_of_memory<Space>("ferry::" + label, home.id);
  auto memory = detail::opened_memory<Space>(record, home.id);
  auto* const data = reinterpret_cast<T*>(memory.get());
  return {std::move(label), extents, data, std::move(memory), home};
}

}  // namespace ferry
