// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/parallel.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

/// Access to a batch's indices: each side of a verb gets a pointer that it can dereference.
namespace ferry::detail {

/// Bytes of pageable indices that go to a device at once: the link moves them while the host copies the next.
inline constexpr std::int64_t index_part_bytes = std::int64_t{1} << 18;

/// Most bytes of pageable indices that a kernel reads over the link itself.
inline constexpr std::int64_t most_index_bytes_read = std::int64_t{1} << 22;

/// For kernels of the verb's execution space. Indices in host memory are copied to a device. Pageable indices
/// are first copied to page-locked memory, so that the caller may reuse them when the verb returns. If
/// `read_once`, which says that kernels read each index about once, they read a small copy there. `room`, if
/// given, is memory of the execution space for the indices. Then those in mapped_space are copied, too, for
/// kernels that read them more than once.
template <class Exec, class Index, class Space>
const Index* indices_for_kernels(launch_context<Exec>& call, const array_ref<Index, Space>& indices,
                                 std::remove_const_t<Index>* room = nullptr,
                                 [[maybe_unused]] bool read_once = false) {
  using plain = std::remove_const_t<Index>;
  if constexpr (is_host_exec<Exec> || std::is_same_v<Space, device_space>) {
    call.reads_from(indices);
    return indices.data;
  } else {
    if (std::is_same_v<Space, mapped_space> && room == nullptr) {
      call.reads_from(indices);
      return indices.data;
    }
    const std::int64_t count = indices.rows();
    const auto bytes = count * static_cast<std::int64_t>(sizeof(plain));
    if (count == 0) return nullptr;
    plain* copy = nullptr;
    if constexpr (std::is_same_v<Space, pageable_space>) {
      call.refuse_capture(
          "but indices in pageable memory would be read once only; give it indices in device_space");
      call.wait_for_host_access(indices);
      copy = call.template pinned<plain>(count);
      if (read_once && room == nullptr && bytes <= most_index_bytes_read) {
        const auto copy_part = [&](std::int64_t first, std::int64_t size) {
          std::memcpy(reinterpret_cast<std::byte*>(copy) + first,
                      reinterpret_cast<const std::byte*>(indices.data) + first,
                      static_cast<std::size_t>(size));
        };
        if (bytes <= index_part_bytes)
          copy_part(0, bytes);
        else
          parallel(bytes, index_part_bytes / 2, copy_part);
        return copy;
      }
    } else {
      call.reads_from(indices);
    }
    plain* target = room != nullptr ? room : call.template scratch<plain>(count);
    if (copy == nullptr) {
      transfer(call.exec(), "ferry::indices", target, device_space::name, indices.data, Space::name, bytes);
      return target;
    }
    constexpr std::int64_t part = index_part_bytes / static_cast<std::int64_t>(sizeof(plain));
    for (std::int64_t begin = 0; begin < count; begin += part) {
      const std::int64_t size = std::min(part, count - begin) * static_cast<std::int64_t>(sizeof(plain));
      std::memcpy(copy + begin, indices.data + begin, static_cast<std::size_t>(size));
      transfer(call.exec(), "ferry::indices", target + begin, device_space::name, copy + begin,
               pinned_space::name, size);
    }
    return target;
  }
}

/// An array of a plan, or other device memory, for host code.
template <class Exec, class T>
const T* plan_array_for_host(launch_context<Exec>& call, const T* array, std::int64_t count) {
  if constexpr (!is_host_exec<Exec>) {
    auto* copy = call.template pinned<T>(count);
    transfer(call.exec(), "ferry::indices", copy, pinned_space::name, array, device_space::name,
             count * static_cast<std::int64_t>(sizeof(T)));
    array = copy;
  }
  execution_backend<Exec>::fence(call.exec(), "ferry::indices");
  return array;
}

/// For host code, after everything enqueued so far has ended.
template <class Exec, class Index, class Space>
const Index* indices_for_host(launch_context<Exec>& call, const array_ref<Index, Space>& indices) {
  call.wait_for_host_access(indices);
  if constexpr (Space::is_host_accessible || device_is_host<Space>)
    return indices.data;
  else
    return plan_array_for_host(call, static_cast<const std::remove_const_t<Index>*>(indices.data),
                               indices.rows());
}

/// Begins a path that occupies the calling thread and works on host memory in program order. Waits for
/// everything enqueued on this instance and for the work of other instances on these arrays: arrays of const
/// elements are read, the others written. Throws if the instance is being captured.
template <class Exec, class... Arrays>
void wait_for_host_access(launch_context<Exec>& call, const std::string& label, const Arrays&... arrays) {
  if (call.capturing())
    call.refuse_capture(
        joined("but host code takes part in ", label, ", which a graph can't repeat; use path::direct"));
  if constexpr (!is_host_exec<Exec>) execution_backend<Exec>::fence(call.exec(), label);
  (call.wait_for_host_access(arrays), ...);
}

}  // namespace ferry::detail
