// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/save_job.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace ferry::detail {

std::byte* bounce_buffer::room(std::size_t bytes) {
  if (memory_.size() < bytes) memory_ = tensor<std::byte, pinned_space>("checkpoint::bounce", bytes);
  return memory_.data();
}

std::size_t patch_bytes(const manifest_array& array, std::size_t units) {
  return units * (sizeof(std::uint32_t) + array.unit_bytes);
}

bool outgrows(const manifest_array& array, std::size_t place, const manifest_chunk& chunk,
              std::size_t units) {
  std::size_t bytes = patch_bytes(array, units);
  for (const auto& patch : chunk.patches) bytes += patch_bytes(array, patch.units);
  return 2 * bytes > array.bytes_of_chunk(place);
}

std::size_t save_job::chunk_bytes() const { return static_cast<std::size_t>(target->bytes_of_chunk(place)); }

std::size_t save_job::bytes() const { return units ? units->size() * target->unit_bytes : chunk_bytes(); }

void save_job::use(const std::vector<unsigned char>& changed) {
  std::vector<std::uint32_t> changed_units;
  const std::uint64_t row_bytes = source->row_bytes, begin = offset(), end = begin + chunk_bytes();
  const std::uint64_t unit = target->unit_bytes;
  for (std::uint64_t row = begin / row_bytes; row * row_bytes < end; ++row) {
    if (changed[static_cast<std::size_t>(row)] == 0) continue;
    const std::uint64_t first = (std::max(row * row_bytes, begin) - begin) / unit;
    const std::uint64_t last = (std::min((row + 1) * row_bytes, end) - begin - 1) / unit;
    for (std::uint64_t index = first; index <= last; ++index)
      if (changed_units.empty() || changed_units.back() != index)
        changed_units.push_back(static_cast<std::uint32_t>(index));
  }
  if (!changed_units.empty() && outgrows(*target, place, before->chunks[place], changed_units.size()))
    before = nullptr;
  else
    units = std::move(changed_units);
}

void save_job::read_units(std::byte* output, bounce_buffer& bounce, std::vector<std::byte>& scratch) const {
  if (units->empty()) return;
  const std::size_t unit = target->unit_bytes, length = chunk_bytes();
  const auto end_of = [&](std::uint32_t index) { return std::min((index + std::size_t{1}) * unit, length); };
  const std::byte* at_device = nullptr;
  const std::size_t first = units->front() * unit;
  if (source->read_device != nullptr) {
    const std::size_t bytes = end_of(units->back()) - first;
    std::byte* const room = bounce.room(bytes);
    source->read(offset() + first, bytes, room, scratch);
    at_device = room;
  }
  for (const std::uint32_t index : *units) {
    const std::size_t begin = index * unit, bytes = end_of(index) - begin;
    if (at_device != nullptr)
      std::memcpy(output, at_device + (begin - first), bytes);
    else
      source->read(offset() + begin, bytes, output, scratch);
    std::memset(output + bytes, 0, unit - bytes);
    output += unit;
  }
}

}  // namespace ferry::detail
