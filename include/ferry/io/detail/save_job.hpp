// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry::detail {

/// Page-locked memory of one thread: a device copies fast into no other.
class bounce_buffer {
 public:
  std::byte* room(std::size_t bytes);

 private:
  tensor<std::byte, pinned_space> memory_;
};

/// Bytes of a patch of `units` units.
std::size_t patch_bytes(const manifest_array& array, std::size_t units);
/// True if the patches of a chunk would outgrow half of it, so that the whole chunk had better be written.
bool outgrows(const manifest_array& array, std::size_t place, const manifest_chunk& chunk, std::size_t units);

/// A chunk of a save.
struct save_job {
  manifest_array* target;
  const manifest_array* before;  ///< the same array in the current checkpoint, if it is to be compared
  const checkpoint_array* source;
  std::size_t place;
  const std::byte* snapshot = nullptr;
  /// The units to write if the changed rows are known; none: the chunk stays as it is. Without a value the
  /// whole chunk is read.
  std::optional<std::vector<std::uint32_t>> units{};

  [[nodiscard]] std::uint64_t offset() const { return place * target->chunk_bytes; }
  [[nodiscard]] std::size_t chunk_bytes() const;
  /// Bytes that the save needs of the array.
  [[nodiscard]] std::size_t bytes() const;

  /// Takes the units of changed rows, one byte per row, instead of a comparison.
  void use(const std::vector<unsigned char>& changed);

  /// Copies the units into memory, one after the other; a unit that the end of the array cuts is filled up.
  void read_units(std::byte* output, bounce_buffer& bounce, std::vector<std::byte>& scratch) const;
};

}  // namespace ferry::detail
