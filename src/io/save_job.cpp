// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/save_job.hpp>

#include "../../backends/enabled.hpp"
#include "unit_digests.hpp"

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

std::size_t save_job::bytes_of_unit(std::size_t unit) const {
  return std::min<std::size_t>(target->unit_bytes, chunk_bytes() - unit * target->unit_bytes);
}

void save_job::digest(const std::byte* bytes) {
  for (std::size_t begin = 0, i = 0; begin < chunk_bytes(); begin += target->unit_bytes, ++i)
    digests[i] = digest_of(bytes + begin, bytes_of_unit(i));
}

void save_job::find_changes() {
  std::vector<std::uint32_t> changed;
  for (std::uint32_t i = 0; std::size_t{i} * target->unit_bytes < chunk_bytes(); ++i)
    if (digests[i] != known[i]) changed.push_back(i);
  if (!changed.empty() && outgrows(*target, place, before->chunks[place], changed.size()))
    before = nullptr;
  else
    units = std::move(changed);
}

const std::byte* save_job::read(std::size_t first, std::size_t count, chunk_memory& memory) const {
  if (const std::byte* const present = source->in_place(offset() + first); present != nullptr) return present;
  const bool from_device = source->read_device != nullptr;
  if (!from_device) memory.bytes.resize(count);
  std::byte* const room = from_device ? memory.bounce.room(count) : memory.bytes.data();
  source->read(offset() + first, count, room, memory.scratch);
  return room;
}

void save_job::read_units(std::byte* output, chunk_memory& memory) const {
  if (units->empty()) return;
  const std::size_t unit = target->unit_bytes, first = units->front() * unit;
  const std::size_t end = units->back() * unit + bytes_of_unit(units->back());
  const std::byte* const present = read(first, end - first, memory);
  for (const std::uint32_t index : *units) {
    const std::size_t count = bytes_of_unit(index);
    std::memcpy(output, present + (index * unit - first), count);
    std::memset(output + count, 0, unit - count);
    output += unit;
  }
}

}  // namespace ferry::detail
