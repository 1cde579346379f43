// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/interop/detail/dlpack_facts.hpp>
#include <ferry/interop/read_only_tensor.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The objects that to_dlpack can hand over: tensors, and shared pointers to them.
/// @{
template <class T>
inline constexpr bool is_dlpack_tensor = false;
template <class T, class Space, class Extents>
inline constexpr bool is_dlpack_tensor<tensor<T, Space, Extents>> = true;
template <class T, class Space, class Extents>
inline constexpr bool is_dlpack_tensor<read_only_tensor<T, Space, Extents>> = true;
template <class T>
inline constexpr bool is_shared_dlpack_tensor = false;
template <class Array>
inline constexpr bool is_shared_dlpack_tensor<std::shared_ptr<Array>> =
    is_dlpack_tensor<std::remove_const_t<Array>>;
/// @}

template <class Owner>
auto& tensor_in(Owner& owner) {
  if constexpr (is_shared_dlpack_tensor<Owner>)
    return *owner;
  else
    return owner;
}

/// The object that a consumer of DLPack owns.
template <class Managed, class Owner>
struct dlpack_export {
  Managed managed{};
  Owner owner{};
  std::array<std::int64_t, max_rank> extents{};
  std::array<std::int64_t, max_rank> strides{};

  /// Called once, by the consumer. Verbs whose work the consumer did not wait for may still use the memory.
  static void release(Managed* self) noexcept {
    const std::unique_ptr<dlpack_export> whole(static_cast<dlpack_export*>(self->manager_ctx));
    try {
      // Also for other owners: they may let go at the same time, so that nobody would be the last to wait.
      wait_for_tracked(tensor_in(whole->owner).accesses(), true);
    } catch (...) {  // the device failed, so nothing is in flight
    }
  }
};

/// `exec`: the instance whose later work comes after that of verbs on the array; without one the call blocks.
template <class Managed, class Owner, class... Exec>
Managed* export_by_dlpack(Owner& owner, std::optional<DLDevice> target, const Exec&... exec) {
  if constexpr (is_shared_dlpack_tensor<Owner>)
    if (owner == nullptr) throw invalid_argument("ferry::to_dlpack: the shared pointer to a tensor is null");
  auto& array = tensor_in(owner);
  using exported = dlpack_export<Managed, Owner>;
  using element = std::remove_pointer_t<decltype(array.data())>;
  constexpr bool read_only = std::is_const_v<element>;
  constexpr bool versioned = std::is_same_v<Managed, DLManagedTensorVersioned>;
  static_assert(
      versioned || !read_only,
      "ferry: a DLManagedTensor can't say that its array is read-only; export a DLManagedTensorVersioned.");
  constexpr DLDataType type = dlpack_type<element>();
  if (array.rank() == 0)
    throw invalid_argument("ferry::to_dlpack: the tensor is an empty handle without extents");
  const void* const data = array.size() == 0 ? nullptr : array.data();
  const DLDevice device =
      presented_device(array.label(), std::remove_cvref_t<decltype(array)>::memory_space::name, data, target);

  auto result = std::make_unique<exported>();
  wait_for_tracked(exec..., array.accesses(), !read_only);
  // Work of the consumer may be in flight when it lets go.
  if (array.accesses() != nullptr) array.accesses()->record_untracked_use();
  result->owner = std::move(owner);  // the last step that changes anything: nothing throws from here
  std::int64_t stride = 1;
  const auto& contents = tensor_in(result->owner);
  for (std::size_t i = contents.rank(); i-- > 0;) {
    result->extents[i] = static_cast<std::int64_t>(contents.extent(i));
    result->strides[i] = stride;
    stride *= result->extents[i] == 0 ? 1 : result->extents[i];
  }
  DLTensor& description = result->managed.dl_tensor;
  description.data = const_cast<void*>(data);
  description.device = device;
  description.ndim = static_cast<std::int32_t>(contents.rank());
  description.dtype = type;
  description.shape = result->extents.data();
  description.strides = result->strides.data();
  description.byte_offset = 0;
  if constexpr (versioned) {
    result->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    result->managed.flags = read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  }
  result->managed.deleter = &exported::release;
  result->managed.manager_ctx = result.get();
  return &result.release()->managed;
}

template <class Managed, class Array>
consteval void require_dlpack_export() {
  using plain = std::remove_cvref_t<Array>;
  static_assert(
      std::is_same_v<Managed, DLManagedTensorVersioned> || std::is_same_v<Managed, DLManagedTensor>,
      "ferry: to_dlpack makes a DLManagedTensorVersioned, or, with that as template argument, a DLManagedTensor.");
  static_assert(
      (is_dlpack_tensor<plain> || is_shared_dlpack_tensor<plain>),
      "ferry: to_dlpack takes a ferry::tensor, a ferry::read_only_tensor or a std::shared_ptr to one; views, slices and other arrays do not own their memory.");
  static_assert(
      !is_dlpack_tensor<plain> || (!std::is_lvalue_reference_v<Array> && !std::is_const_v<Array>),
      "ferry: to_dlpack takes the tensor over; write std::move(tensor), or keep it in a std::shared_ptr and hand over that.");
}

/// Takes a tensor, or shares one.
template <class Managed, class Array, class... Exec>
Managed* hand_over(Array&& array, std::optional<DLDevice> target, const Exec&... exec) {
  require_dlpack_export<Managed, Array>();
  if constexpr (is_shared_dlpack_tensor<std::remove_cvref_t<Array>>) {
    std::remove_cvref_t<Array> share(array);
    return export_by_dlpack<Managed>(share, target, exec...);
  } else {
    return export_by_dlpack<Managed>(array, target, exec...);
  }
}

}  // namespace detail

/// An array as a DLPack object that owns it, for a consumer in another library. Nothing is copied.
///
///   Managed  DLManagedTensorVersioned (default), or DLManagedTensor for consumers from before DLPack 1.0
///   array    a tensor or read_only_tensor, which is taken over (std::move), or a std::shared_ptr to one,
///            which stays usable; a pointer to a const one and a read_only_tensor are exported as read-only
///   as       the device type of the result. By default it says how the memory was made: kDLCUDA,
///            kDLCUDAHost or kDLCUDAManaged; kDLCPU for pageable_space and on a host backend. For consumers
///            that know neither of the last two CUDA types, memory of pinned_space and mapped_space may be
///            kDLCPU or kDLCUDA.
///
/// The caller owns the result and calls its deleter, once, from any thread; the deleter waits for the work of
/// verbs on the array and frees it. The strides are always set. Blocks until the work of verbs on the array
/// has ended, so that any consumer on any stream may use it. Later verbs on a shared array don't know of the
/// consumer's work, nor it of theirs: order them with ferry::after.
///
/// Throws invalid_argument for an empty handle and for a device that the memory can't be presented as,
/// std::bad_alloc, and device_error; the array is then unchanged.
template <class Managed = DLManagedTensorVersioned, class Array>
  requires(!ExecutionSpace<Array>)
[[nodiscard("the caller owns the DLPack object and must call its deleter")]] Managed* to_dlpack(
    Array&& array, std::optional<DLDevice> target = {}) {
  return detail::hand_over<Managed>(std::forward<Array>(array), target);
}

/// As above, for a consumer that works on the stream of `exec`: work that is enqueued on `exec` after this
/// call comes after that of earlier verbs on the array. On a device nothing blocks. Throws invalid_argument
/// if `exec` is being captured into a graph.
template <class Managed = DLManagedTensorVersioned, ExecutionSpace Exec, class Array>
[[nodiscard("the caller owns the DLPack object and must call its deleter")]] Managed* to_dlpack(
    const Exec& exec, Array&& array, std::optional<DLDevice> target = {}) {
  return detail::hand_over<Managed>(std::forward<Array>(array), target, exec);
}

namespace detail {

/// Checks the numbers of a DLTensor, and that its elements are of a type; returns its rank and sets its
/// extents. A tensor without extents is one element. Appends its description to the subject of messages.
std::size_t dlpack_extents(std::string& subject, const DLTensor& source, DLDataType type,
                           std::array<std::size_t, max_rank>& extents);

/// The first element of an array without gaps in memory of a space; null for an array without elements.
/// Throws invalid_argument for other strides than those of a row-major array, null strides excepted, and if
/// memory that the producer says to be of its device can't be memory of the space.
void* dlpack_data(const std::string& subject, const DLTensor& source, std::size_t size, std::size_t alignment,
                  std::string_view space);

}  // namespace detail

/// Memory of another library as a tensor, from its DLPack object. Nothing is copied.
///
///   T        element type, must be the array's; const T gives a read_only_tensor
///   Space    where the memory lies: device_space (kDLCUDA), pinned_space and mapped_space (page-locked or
///            managed memory, whatever the producer calls it), pageable_space (any host memory)
///   Extents  ferry::extents to fix extents in the type, which are then checked; default dynamic_rank
///   managed  a DLManagedTensorVersioned of DLPack 1, or a DLManagedTensor. Taken over, also if this
///            throws: its deleter runs once, when the tensor is destroyed.
///   label    name of the tensor in messages
///
/// The tensor is usable in every verb, movable, and may be exported again. It knows of no earlier work of the
/// producer: it must have been made ready for the stream that ferry uses, which is what the argument of
/// Python's __dlpack__(stream=...) is for, or be ordered by ferry::after. As for every tensor, work in flight
/// on it must have ended when it is destroyed.
///
/// Throws invalid_argument for a null pointer, another major version, a read-only array taken as T, another
/// element type, vector lanes, strides that are not those of a row-major array (null strides are), extents
/// that contradict Extents, and memory that is none of Space.
template <Element T, MemorySpace Space, class Extents = dynamic_rank, class Managed>
[[nodiscard]] auto from_dlpack(Managed* managed, const std::string& label = "dlpack") {
  static_assert(
      std::is_same_v<Managed, DLManagedTensorVersioned> || std::is_same_v<Managed, DLManagedTensor>,
      "ferry: from_dlpack takes a DLManagedTensorVersioned* or a DLManagedTensor*; out of a Python capsule cast its pointer to the one that its name says.");
  using plain = std::remove_const_t<T>;
  constexpr DLDataType type = detail::dlpack_type<plain>();
  if (managed == nullptr)
    throw invalid_argument(detail::joined("ferry::from_dlpack: '", label, "': the DLPack object is null"));
  // Calls the deleter also if its own construction throws.
  std::shared_ptr<void> owner(managed, [](Managed* object) {
    if (object->deleter != nullptr) object->deleter(object);
  });
  std::string subject = detail::joined("ferry::from_dlpack: '", label, "'");
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    // Without the names of the members, which are macros of some systems.
    const auto& [generation, revision] = managed->version;
    if (generation != DLPACK_MAJOR_VERSION)
      throw invalid_argument(detail::joined(subject, " is of DLPack ", generation, ".", revision,
                                            ", whose layout ferry does not know: it reads ",
                                            DLPACK_MAJOR_VERSION, ".x"));
  }
  const DLTensor& source = managed->dl_tensor;
  std::array<std::size_t, max_rank> extents{};
  const std::size_t rank = detail::dlpack_extents(subject, source, type, extents);
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned> && !std::is_const_v<T>) {
    if ((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0)
      throw invalid_argument(
          detail::joined(subject, " is read-only; take it as from_dlpack<const T, Space>"));
  }
  const auto checked =
      shape<Extents>::make(std::span<const std::size_t>(extents.data(), rank), label, sizeof(plain));
  void* const data = detail::dlpack_data(subject, source, checked.size(), alignof(plain), Space::name);
  tensor<plain, Space, Extents> result(label, checked, static_cast<plain*>(data), std::move(owner));
  if constexpr (std::is_const_v<T>)
    return read_only_tensor<plain, Space, Extents>(std::move(result));
  else
    return result;
}

}  // namespace ferry
