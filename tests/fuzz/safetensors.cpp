// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/safetensors_header.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

/// Any bytes as a safetensors file: either an io_error, or tensors that cover the file, whose header is the same
/// after it was written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::memory_file input(data, size);
  try {
    const auto found = ferry::detail::read_safetensors_header(input.content());
    std::uint64_t end = 0;
    for (const auto& each : found.entries) {
      fuzz::require(each.begin == end && each.end >= each.begin && ferry::detail::has_bytes(each));
      end = each.end;
    }
    fuzz::require(found.bytes + end == size);
    const std::string text = ferry::detail::make_safetensors_header(found.entries, found.metadata);
    fuzz::require(text.size() % 8 == 0);
    ferry::detail::safetensors_header again;
    fuzz::require(ferry::detail::parse_safetensors(std::string_view(text).substr(8), end, again).empty());
    fuzz::require(again.metadata == found.metadata && again.entries.size() == found.entries.size());
    for (const auto& each : found.entries) {
      bool same = false;
      for (const auto& other : again.entries)
        same = same ||
               (each.name == other.name && each.type == other.type && each.type_name() == other.type_name() &&
                each.shape == other.shape && each.begin == other.begin && each.end == other.end);
      fuzz::require(same);
    }
  } catch (const ferry::io_error& refused) {
    fuzz::require(refused.what()[0] != '\0');
  }
  return 0;
}
