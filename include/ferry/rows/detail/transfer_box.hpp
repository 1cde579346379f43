// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/runtime/detail/backend.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// The inner dimensions of a box of runs as one block, and the outer ones that remain.
struct box_transfers {
  pitched_block block;
  copy_box box;
  int outer = 0;  ///< number of outer dimensions
  std::int64_t count = 1;
  bool possible = false;

  /// The distances must not be negative, nor smaller than what they separate.
  box_transfers(const copy_box& whole, std::size_t element_bytes) : box(whole) {
    possible = box.has_runs();
    if (!possible) return;
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * element_bytes;
    };
    block.row_bytes = bytes(box.inner());
    block.target_pitch = block.source_pitch = block.row_bytes;
    outer = box.rank - 1;
    std::int64_t target_least = box.inner(), source_least = box.inner();
    const auto take = [&](std::size_t& number, std::size_t& target, std::size_t& source) {
      if (outer == 0) return;
      const auto d = static_cast<std::size_t>(--outer);
      possible = possible && box.target[d] >= target_least && box.source[d] >= source_least;
      number = static_cast<std::size_t>(box.extents[d]);
      target = bytes(box.target[d]);
      source = bytes(box.source[d]);
      target_least = (box.extents[d] - 1) * box.target[d] + target_least;
      source_least = (box.extents[d] - 1) * box.source[d] + source_least;
    };
    take(block.rows, block.target_pitch, block.source_pitch);
    take(block.slices, block.target_slice, block.source_slice);
    count = box.size() / (box.size_from(outer));
  }
};

/// True if few transfers of long rows move a box of elements of one type.
template <class Exec>
bool suits_transfer(const Exec& exec, const copy_box& box, std::size_t element_bytes) {
  constexpr std::int64_t most = 64;  // each costs the host some microseconds
  if (box.is_one_run()) return true;
  const box_transfers parts(box, element_bytes);
  if (!parts.possible || static_cast<std::int64_t>(parts.block.row_bytes) <
                             execution_backend<Exec>::tuning(exec).pitched_row_bytes)
    return false;
  const std::size_t transfers = execution_backend<Exec>::pitched_transfers(exec, parts.block);
  return transfers != 0 && static_cast<std::int64_t>(transfers) * parts.count <= most;
}

/// Enqueues the transfers of a box that suits them. On a host instance the calling thread copies.
template <class Exec, class T>
void transfer_box(const Exec& exec, const char* label, T* target, const T* source, const copy_box& box) {
  box_transfers parts(box, sizeof(T));
  for (std::int64_t i = 0; i < parts.count; ++i) {
    const auto [target_place, source_place] = box.offsets(i, parts.outer);
    parts.block.target = target + target_place;
    parts.block.source = source + source_place;
    execution_backend<Exec>::copy_pitched_async(exec, label, parts.block);
  }
}

}  // namespace ferry::detail
