// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/transfer.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

/// Access to a batch's indices: each side of a verb gets a pointer that it can dereference.
namespace ferry::detail {

/// For kernels of the verb's execution space. Indices in host memory are copied to a device in one piece.
/// Pageable indices are first copied to page-locked memory, so that the caller may reuse them when the verb
/// returns. `room`, if given, is memory of the execution space for the indices. Then those in mapped_space
/// are copied, too, for kernels that read them more than once.
template <class Exec, class Index, class Space>
const Index* indices_for_kernels(launch_context<Exec>& of, const array_ref<Index, Space>& indices,
                                 std::remove_const_t<Index>* room = nullptr) {
  using plain = std::remove_const_t<Index>;
  constexpr bool reaches = std::is_same_v<Space, mapped_space>;
  if constexpr (is_host_exec<Exec> || std::is_same_v<Space, device_space>) {
    of.reads_from(indices);
    return indices.data;
  } else if (reaches && room == nullptr) {
    of.reads_from(indices);
    return indices.data;
  } else {
    const std::int64_t count = indices.rows();
    const auto bytes = count * static_cast<std::int64_t>(sizeof(plain));
    if (count == 0) return nullptr;
    const void* from = indices.data;
    std::string_view from_space = Space::name;
    if constexpr (std::is_same_v<Space, pageable_space>) {
      of.refuse_capture(
          "but indices in pageable memory would be read once only; give it indices in device_space");
      of.wait_for_host_access(indices);
      plain* copy = of.template pinned<plain>(count);
      std::memcpy(copy, indices.data, static_cast<std::size_t>(bytes));
      from = copy;
      from_space = pinned_space::name;
    } else {
      of.reads_from(indices);
    }
    plain* there = room != nullptr ? room : of.template scratch<plain>(count);
    transfer(of.exec(), "ferry::indices", there, device_space::name, from, from_space, bytes);
    return there;
  }
}

/// For host code, after everything enqueued so far has ended.
template <class Exec, class Index, class Space>
const Index* indices_for_host(launch_context<Exec>& of, const array_ref<Index, Space>& indices) {
  using plain = std::remove_const_t<Index>;
  of.wait_for_host_access(indices);
  if constexpr (Space::is_host_accessible || device_is_host<Space>) {
    return indices.data;
  } else {
    const std::int64_t count = indices.rows();
    plain* copy = of.template pinned<plain>(count);
    transfer(of.exec(), "ferry::indices", copy, pinned_space::name, indices.data, Space::name,
             count * static_cast<std::int64_t>(sizeof(plain)));
    execution_backend<Exec>::fence(of.exec(), "ferry::indices");
    return copy;
  }
}

/// An array of a plan, for host code.
template <class Exec, class T>
const T* plan_array_for_host(launch_context<Exec>& of, const T* array, std::int64_t count) {
  if constexpr (is_host_exec<Exec>) {
    execution_backend<Exec>::fence(of.exec(), "ferry::indices");
    return array;
  } else {
    auto* copy = of.template pinned<T>(count);
    transfer(of.exec(), "ferry::indices", copy, pinned_space::name, array, device_space::name,
             count * static_cast<std::int64_t>(sizeof(T)));
    execution_backend<Exec>::fence(of.exec(), "ferry::indices");
    return copy;
  }
}

/// Begins a path that occupies the calling thread and works on host memory in program order. Waits for
/// everything enqueued on this instance and for the work of other instances on these arrays: arrays of const
/// elements are read, the others written. Throws if the instance is being captured.
template <class Exec, class... Arrays>
void wait_for_host_access(launch_context<Exec>& of, const std::string& label, const Arrays&... arrays) {
  if (of.capturing())
    of.refuse_capture("but host code takes part in " + label +
                      ", which a graph can't repeat; use path::direct");
  if constexpr (!is_host_exec<Exec>) execution_backend<Exec>::fence(of.exec(), label);
  (of.wait_for_host_access(arrays), ...);
}

}  // namespace ferry::detail
