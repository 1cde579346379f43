// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Values of files and of memory in words, for messages about those that differ.
namespace ferry::detail {

inline constexpr const char* compared_because_const = "; it was added as const, so it is compared";

/// "1.5", "-3", "true", or the bytes of a struct.
std::string element_words(std::string_view dtype, std::span<const std::byte> element);

/// "is 3 in the file, and 4 here", of two texts that differ: long ones from the first difference on.
std::string differing_texts(std::string_view loaded, std::string_view present);
/// As above, of the bytes of a struct.
std::string differing_bytes(std::string_view loaded, std::string_view present);
/// As above, of the elements of an array, of which `first` is the number of the first one.
std::string differing_elements(const manifest_array& array, std::size_t first,
                               std::span<const std::byte> loaded, std::span<const std::byte> present);

}  // namespace ferry::detail
