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
    const auto result = ferry::detail::read_safetensors_header(input.content());
    std::uint64_t end = 0;
    for (const auto& entry : result.entries) {
      fuzz::require(entry.begin == end && entry.end >= entry.begin && ferry::detail::has_bytes(entry));
      end = entry.end;
    }
    fuzz::require(result.bytes + end == size);
    const std::string text = ferry::detail::make_safetensors_header(result.entries, result.metadata);
    fuzz::require(text.size() % 8 == 0);
    ferry::detail::safetensors_header second;
    fuzz::require(ferry::detail::parse_safetensors(std::string_view(text).substr(8), end, second).empty());
    fuzz::require(second.metadata == result.metadata && second.entries.size() == result.entries.size());
    for (const auto& entry : result.entries) {
      bool same = false;
      for (const auto& twin : second.entries)
        same = same ||
               (entry.name == twin.name && entry.type == twin.type && entry.type_name() == twin.type_name() &&
                entry.shape == twin.shape && entry.begin == twin.begin && entry.end == twin.end);
      fuzz::require(same);
    }
  } catch (const ferry::io_error& refused) {
    fuzz::require(refused.what()[0] != '\0');
  }
  return 0;
}
