// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/interop/detail/dlpack_facts.hpp>
#include <ferry/interop/read_only_tensor.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

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
