// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>
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
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace ferry {

/// Names a tensor in device memory for other processes of the machine, see share and open_shared. Trivially
/// copyable, of some hundred bytes: send it through a pipe, a message of MPI or communicator::all_gather, or
/// put it into shared memory. It owns nothing and keeps nothing alive.
class shared_handle {
 public:
  /// Names no tensor.
  shared_handle() = default;
  /// For ferry::share.
  explicit shared_handle(const detail::shared_record& record) : record_(record) {}

  /// The label of the tensor; of a long one the first 95 characters.
  [[nodiscard]] std::string label() const { return std::string(record_.label.view()); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return static_cast<std::size_t>(record_.rank); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i < rank() && i < max_rank ? static_cast<std::size_t>(record_.extents[i]) : 1;
  }
  /// Label, extents, elements, space and process, as text.
  [[nodiscard]] std::string describe() const { return record_.describe(); }

  /// For ferry::open_shared.
  [[nodiscard]] const detail::shared_record& record() const noexcept { return record_; }

 private:
  detail::shared_record record_;
};

static_assert(std::is_trivially_copyable_v<shared_handle>);

/// A handle by which other processes of the machine open a tensor in device memory, see open_shared. Several
/// may open it, one after the other or at once, and may pass the handle on.
///
///   const ferry::shared_handle handle = ferry::share(weights);
///   ::write(pipe, &handle, sizeof handle);
///
/// The memory lives as long as this tensor or any tensor that was opened by the handle, also if a process
/// was killed. A tensor that ends before the others leaves its memory to a list of this process; it counts in
/// memory_statistics until it is freed, by a later share or trim, if memory is short, or by
/// Kokkos::finalize. The process itself must outlive the others' use.
///
/// Waits for the writes in flight that verbs recorded, so who opens the handle reads what they wrote. Nothing
/// orders later accesses of different processes: wait for the tickets, then call a barrier. A tensor made by
/// open_shared can be shared again; that gives a handle of the first process' memory.
///
/// Does not compile for host memory: see shared_tensor. Throws invalid_argument on host backends, whose
/// device_space is host memory, and for adopted memory; device_error if the device can't share.
template <Element T, MemorySpace Space, class Extents>
[[nodiscard]] shared_handle share(const tensor<T, Space, Extents>& memory) {
  detail::require_shared_space<Space>();
  std::array<std::size_t, max_rank> sizes{};
  for (std::size_t i = 0; i < memory.rank(); ++i) sizes[i] = memory.extent(i);
  detail::shared_record record(typeid(T), sizeof(T), Space::name, memory.label(),
                               std::span<const std::size_t>(sizes.data(), memory.rank()));
  if constexpr (!detail::shares_memory<Space>()) {
    detail::refuse_host_memory("ferry::share", record);
  } else {
    if (memory.accesses() != nullptr) memory.accesses()->wait_for_writes();
    if (memory.size() == 0) return shared_handle(record);
    std::size_t offset = 0;
    if (memory.memory() != nullptr)
      record.segment = detail::lend(*memory.memory());
    else if (!detail::segments_of<Space>().find(memory.data(), record.segment, offset))
      throw invalid_argument(
          detail::joined("ferry::share: ", record.describe(),
                         " is memory of other code, whose end ferry does not see; copy it into a tensor"));
    record.offset = offset;
    return shared_handle(record);
  }
}

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
    if (record.segment.lease.key == 0) return {};
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
