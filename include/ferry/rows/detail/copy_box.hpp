// SPDX-License-Identifier: Apache-2.0
#pragma once

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
    const auto place = static_cast<std::size_t>(rank++);
    extents[place] = extent;
    target[place] = target_stride;
    source[place] = source_stride;
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
    const auto place = static_cast<std::size_t>(split_);
    std::int64_t packed = 0;
    while (count > 0) {
      const std::int64_t run = std::min(count, box_.extents[place] - first % box_.extents[place]);
      copy_box part;
      part.append(run, box_.target[place], box_.source[place]);
      for (std::size_t d = place + 1; d <= box_.last(); ++d)
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

}  // namespace ferry::detail
