// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/device_span.hpp>
#include <ferry/runtime/detail/pitched_block.hpp>

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
  box_transfers(const copy_box& of, std::size_t element_bytes) : box(of) {
    possible = box.has_runs();
    if (!possible) return;
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * element_bytes;
    };
    block.row_bytes = bytes(box.inner());
    block.target_pitch = block.source_pitch = block.row_bytes;
    outer = box.rank - 1;
    std::int64_t to_least = box.inner(), from_least = box.inner();
    const auto take = [&](std::size_t& number, std::size_t& to, std::size_t& from) {
      if (outer == 0) return;
      const auto d = static_cast<std::size_t>(--outer);
      possible = possible && box.to[d] >= to_least && box.from[d] >= from_least;
      number = static_cast<std::size_t>(box.extents[d]);
      to = bytes(box.to[d]);
      from = bytes(box.from[d]);
      to_least = (box.extents[d] - 1) * box.to[d] + to_least;
      from_least = (box.extents[d] - 1) * box.from[d] + from_least;
    };
    take(block.rows, block.target_pitch, block.source_pitch);
    take(block.slices, block.target_slice, block.source_slice);
    count = box.size() / (box.size_from(outer));
  }
};

/// Whether few transfers of long rows move a box of elements of one type.
template <class Exec>
bool suits_transfer(const Exec& exec, const copy_box& box, std::size_t element_bytes) {
  constexpr std::int64_t most = 64;  // each costs the host some microseconds
  if (box.is_one_run()) return true;
  const box_transfers parts(box, element_bytes);
  if (!parts.possible || static_cast<std::int64_t>(parts.block.row_bytes) <
                             execution_backend<Exec>::tuning(exec).pitched_row_bytes)
    return false;
  const std::size_t each = execution_backend<Exec>::pitched_transfers(exec, parts.block);
  return each != 0 && static_cast<std::int64_t>(each) * parts.count <= most;
}

/// Enqueues the transfers of a box that suits them. On a host instance the calling thread copies.
template <class Exec, class T>
void transfer_box(const Exec& exec, const char* label, T* to, const T* from, const copy_box& box) {
  box_transfers parts(box, sizeof(T));
  const device_span<Exec> span(exec, label, "transfer");
  for (std::int64_t i = 0; i < parts.count; ++i) {
    const auto [there, here] = box.offsets(i, parts.outer);
    parts.block.target = to + there;
    parts.block.source = from + here;
    execution_backend<Exec>::copy_pitched_async(exec, label, parts.block);
  }
}

}  // namespace ferry::detail
