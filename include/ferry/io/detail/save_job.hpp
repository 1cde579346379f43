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

struct unit_digest;

/// Page-locked memory of one thread: a device copies fast into no other.
class bounce_buffer {
 public:
  std::byte* room(std::size_t bytes);

 private:
  tensor<std::byte, pinned_space> memory_;
};

/// The memory of a thread that reads chunks.
struct chunk_memory {
  std::vector<std::byte> bytes, scratch;
  bounce_buffer bounce;
};

/// Bytes of a patch of `units` units.
std::size_t patch_bytes(const manifest_array& array, std::size_t units);
/// True if the patches of a chunk would outgrow half of it, so that the whole chunk had better be written.
bool outgrows(const manifest_array& array, std::size_t place, const manifest_chunk& chunk, std::size_t units);

/// A chunk of a save.
struct save_job {
  manifest_array* target;
  const manifest_array* before;  ///< the same array in the current checkpoint, if its digests are known
  const checkpoint_array* source;
  std::size_t place;
  unit_digest* digests;                ///< of the chunk's units
  bool has_digests;                    ///< a device has made them
  const unit_digest* known = nullptr;  ///< those in the current checkpoint, with `before`
  const std::byte* snapshot = nullptr;
  /// The units that have changed; none: the chunk stays as it is. Without a value the whole chunk is written.
  std::optional<std::vector<std::uint32_t>> units{};

  [[nodiscard]] std::uint64_t offset() const { return place * target->chunk_bytes; }
  [[nodiscard]] std::size_t chunk_bytes() const;
  /// Bytes that the save needs of the array.
  [[nodiscard]] std::size_t bytes() const;

  /// Bytes of a unit: the end of the array may cut it.
  [[nodiscard]] std::size_t bytes_of_unit(std::size_t unit) const;
  /// Makes the digests of the units of the chunk, whose bytes are given.
  void digest(const std::byte* bytes);
  /// Lists the units whose digests are not those of the current checkpoint, unless the whole chunk had better
  /// be written.
  void find_changes();

  /// Bytes of the chunk: in the array's own memory if the host may use it there, else read into `memory`.
  const std::byte* read(std::size_t first, std::size_t bytes, chunk_memory& memory) const;
  /// Copies the units into memory, one after the other; a unit that the end of the array cuts is filled up.
  void read_units(std::byte* output, chunk_memory& memory) const;
};

}  // namespace ferry::detail
