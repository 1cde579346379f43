// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Page-locked memory of one thread: a device copies fast into no other.
template <class Dependent>
class basic_bounce_buffer {
 public:
  std::byte* room(std::size_t bytes) {
    if (memory_.size() < bytes) memory_ = tensor<std::byte, pinned_space>("checkpoint::bounce", bytes);
    return memory_.data();
  }

 private:
  tensor<std::byte, pinned_space> memory_;
};
using bounce_buffer = basic_bounce_buffer<void>;

/// Bytes of a patch of `units` units.
template <class Dependent = void>
std::size_t patch_bytes(const late<manifest_array, Dependent>& of, std::size_t units) {
  return units * (sizeof(std::uint32_t) + of.unit_bytes);
}
/// Whether the patches of a chunk would outgrow half of it, so that the whole chunk had better be written.
template <class Dependent = void>
bool outgrows(const late<manifest_array, Dependent>& of, std::size_t place,
              const late<manifest_chunk, Dependent>& chunk, std::size_t units) {
  std::size_t all = patch_bytes(of, units);
  for (const auto& each : chunk.patches) all += patch_bytes(of, each.units);
  return 2 * all > of.bytes_of_chunk(place);
}

/// A chunk of a save.
template <class Dependent>
struct basic_save_job {
  using manifest_array = late<detail::manifest_array, Dependent>;
  using checkpoint_array = late<detail::checkpoint_array, Dependent>;

  manifest_array* to;
  const manifest_array* before;  ///< the same array in the current checkpoint, if it is to be compared
  const checkpoint_array* from;
  std::size_t place;
  const std::byte* snapshot = nullptr;
  /// The units to write where the changed rows are known; none: the chunk stays as it is. Without a value the
  /// whole chunk is read.
  std::optional<std::vector<late<std::uint32_t, Dependent>>> units{};

  [[nodiscard]] std::uint64_t offset() const { return place * to->chunk_bytes; }
  [[nodiscard]] std::size_t chunk_bytes() const {
    return static_cast<std::size_t>(to->bytes_of_chunk(place));
  }
  /// Bytes that the save needs of the array.
  [[nodiscard]] std::size_t bytes() const { return units ? units->size() * to->unit_bytes : chunk_bytes(); }

  /// Takes the units of changed rows, one byte per row, instead of a comparison.
  void use(const late<std::vector<unsigned char>, Dependent>& changed) {
    late<std::vector<std::uint32_t>, Dependent> found;
    const std::uint64_t row_bytes = from->row_bytes, begin = offset(), end = begin + chunk_bytes();
    const std::uint64_t unit = to->unit_bytes;
    for (std::uint64_t row = begin / row_bytes; row * row_bytes < end; ++row) {
      if (changed[static_cast<std::size_t>(row)] == 0) continue;
      const std::uint64_t first = (std::max(row * row_bytes, begin) - begin) / unit;
      const std::uint64_t last = (std::min((row + 1) * row_bytes, end) - begin - 1) / unit;
      for (std::uint64_t each = first; each <= last; ++each)
        if (found.empty() || found.back() != each) found.push_back(static_cast<std::uint32_t>(each));
    }
    if (!found.empty() && outgrows(*to, place, before->chunks[place], found.size()))
      before = nullptr;
    else
      units = std::move(found);
  }

  /// Copies the units into memory, one after the other; a unit that the end of the array cuts is filled up.
  template <class Bounce>
  void read_units(std::byte* into, Bounce& bounce, late<std::vector<std::byte>, Bounce>& scratch) const {
    if (units->empty()) return;
    const std::size_t unit = to->unit_bytes, all = chunk_bytes();
    const auto end_of = [&](std::uint32_t which) { return std::min((which + std::size_t{1}) * unit, all); };
    const std::byte* at_device = nullptr;
    const std::size_t first = units->front() * unit;
    if (from->read_device != nullptr) {
      const std::size_t bytes = end_of(units->back()) - first;
      std::byte* const room = bounce.room(bytes);
      from->read(offset() + first, bytes, room, scratch);
      at_device = room;
    }
    for (const std::uint32_t which : *units) {
      const std::size_t begin = which * unit, bytes = end_of(which) - begin;
      if (at_device != nullptr)
        std::memcpy(into, at_device + (begin - first), bytes);
      else
        from->read(offset() + begin, bytes, into, scratch);
      std::memset(into + bytes, 0, unit - bytes);
      into += unit;
    }
  }
};
using save_job = basic_save_job<void>;

}  // namespace ferry::detail
