// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/interop/detail/dlpack_abi.hpp>
#include <ferry/memory/detail/backend.hpp>

#include <string>

namespace ferry::detail {

std::string device_text(DLDevice device);

const char* kind_text(memory_kind kind);

/// The device of DLPack that memory belongs to.
template <MemorySpace Space>
DLDevice own_device(memory_place place);

/// The place of memory of Space that has no address because it has no bytes.
template <MemorySpace Space>
memory_place place_of_nothing();

/// True if memory may be presented as that of `as`. Host memory that the device reaches may be given to other
/// libraries as either's.
template <MemorySpace Space>
bool may_present(memory_place place, DLDevice device);

/// Throws invalid_argument if memory that a producer says to be of `on` can't be memory of Space.
/// `bytes_at` is null for an array without elements, whose address tells nothing.
template <MemorySpace Space>
void require_place(const std::string& subject, DLDevice device, const void* bytes_at);

}  // namespace ferry::detail
