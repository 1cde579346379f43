// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/extents.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ferry::detail {

/// Two arrays of equal extents: for each dimension the number of elements and the distance of two neighbours
/// on either side, in elements. The last dimension is the innermost.
struct copy_box {
  using numbers =
      std::array<std::int64_t, max_rank + 1>;  // an element of several units is one more dimension
  enum class side { target, source };

  int rank = 0;
  numbers extents{};
  numbers target{};
  numbers source{};

  [[nodiscard]] std::int64_t size() const { return size_from(0); }
  /// Elements of the dimensions from `first` on.
  [[nodiscard]] std::int64_t size_from(int first) const {
    std::int64_t product = 1;
    for (int d = first; d < rank; ++d) product *= extents[static_cast<std::size_t>(d)];
    return product;
  }
  [[nodiscard]] const numbers& strides(side end) const { return end == side::target ? target : source; }
  [[nodiscard]] std::int64_t inner() const { return extents[last()]; }
  [[nodiscard]] std::size_t last() const { return static_cast<std::size_t>(rank - 1); }

  /// True if the neighbours of the innermost dimension are adjacent on both sides.
  [[nodiscard]] bool has_runs() const { return target[last()] == 1 && source[last()] == 1; }
  [[nodiscard]] bool is_one_run() const { return rank == 1 && has_runs(); }
  /// True if the elements of one side are adjacent in the order of the box.
  [[nodiscard]] bool is_dense(side end) const;

  /// The box with one side packed densely in the order of the box, as in a slot.
  [[nodiscard]] copy_box packed(side end) const;

  /// The box in as few dimensions as possible, ordered by the distances of one side. Two arrays of
  /// one memory layout become a run, whatever the layout is.
  [[nodiscard]] copy_box ordered(side lead) const;

  /// An element of `units` units becomes that many elements.
  [[nodiscard]] copy_box split(std::int64_t units) const;
  /// True if `units` neighbours can be moved as one element throughout.
  [[nodiscard]] bool joins(std::int64_t units) const;
  [[nodiscard]] copy_box joined(std::int64_t units) const;

  /// Offsets of the element at `position` of the dimensions before `end`, in row-major order.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> offsets(std::int64_t position, int end) const;

  void append(std::int64_t extent, std::int64_t target_stride, std::int64_t source_stride) {
    const auto d = static_cast<std::size_t>(rank++);
    extents[d] = extent;
    target[d] = target_stride;
    source[d] = source_stride;
  }

 private:
  void exchange(std::size_t a, std::size_t b);
  [[nodiscard]] copy_box merged() const;
};

/// The box of two arrays with equal extents.
copy_box box_of(const array_shape& source, const array_shape& target);

/// A box in items of whole inner dimensions, so that pieces of it are boxes again. An item has at most `most`
/// elements.
class box_items {
 public:
  box_items(const copy_box& box, std::int64_t most) : box_(box), split_(box.rank - 1) {
    while (split_ > 0 && item_ * box.extents[static_cast<std::size_t>(split_)] <= most)
      item_ *= box.extents[static_cast<std::size_t>(split_--)];
  }
  [[nodiscard]] std::int64_t count() const { return box_.size() / item_; }
  /// Elements of an item.
  [[nodiscard]] std::int64_t item() const { return item_; }

  /// visit(part, target, source, packed) for each part of items [first, first + count) that is one box, with
  /// its offsets on both sides and among the items' elements.
  template <class Visit>
  void visit(std::int64_t first, std::int64_t count, const Visit& visit) const {
    const auto dimension = static_cast<std::size_t>(split_);
    std::int64_t packed = 0;
    while (count > 0) {
      const std::int64_t run = std::min(count, box_.extents[dimension] - first % box_.extents[dimension]);
      copy_box part;
      part.append(run, box_.target[dimension], box_.source[dimension]);
      for (std::size_t d = dimension + 1; d <= box_.last(); ++d)
        part.append(box_.extents[d], box_.target[d], box_.source[d]);
      const auto [target, source] = box_.offsets(first, split_ + 1);
      visit(part, target, source, packed);
      first += run;
      count -= run;
      packed += run * item_;
    }
  }

 private:
  copy_box box_;
  int split_;              ///< the dimension of which a part has neighbouring indices
  std::int64_t item_ = 1;  ///< elements
};

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
    const auto [target_offset, source_offset] = box.offsets(i, parts.outer);
    parts.block.target = target + target_offset;
    parts.block.source = source + source_offset;
    execution_backend<Exec>::copy_pitched_async(exec, label, parts.block);
  }
}

}  // namespace ferry::detail
