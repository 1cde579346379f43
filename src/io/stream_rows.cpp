// SPDX-License-Identifier: Apache-2.0
#include <ferry/extend.hpp>
#include <ferry/io/detail/stream_rows.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>

namespace ferry::detail {

namespace {

/// Calls visit(part, offset, first) for parts of an array of at most `most` elements, in row-major order.
/// `offset` is the offset of the part's first element in memory, `first` its position. Parts of a contiguous
/// array are of rank 1.
using part_visit = function_ref<void(const array_shape& part, std::int64_t offset, std::int64_t first)>;

void for_each_part(const array_shape& array, std::int64_t most, part_visit visit, std::int64_t origin = 0,
                   std::int64_t before = 0) {
  if (array.size() == 0) return;
  array_shape part = array;
  if (array.is_contiguous()) {
    part.rank = 1;
    part.strides[0] = 1;
    for (std::int64_t first = 0; first < array.size(); first += most) {
      part.extents[0] = std::min(most, array.size() - first);
      visit(part, origin + first, before + first);
    }
    return;
  }
  const std::int64_t width = array.width();
  if (width <= most) {
    const std::int64_t rows = most / width;
    for (std::int64_t first = 0; first < array.rows(); first += rows) {
      part.extents[0] = std::min(rows, array.rows() - first);
      visit(part, origin + first * array.strides[0], before + first * width);
    }
    return;
  }
  part.rank = array.rank - 1;
  std::copy(array.extents.begin() + 1, array.extents.end(), part.extents.begin());
  std::copy(array.strides.begin() + 1, array.strides.end(), part.strides.begin());
  for (std::int64_t row = 0; row < array.rows(); ++row)
    for_each_part(part, most, visit, origin + row * array.strides[0], before + row * width);
}

/// A contiguous array as one of bytes.
array_shape bytes_of(const untyped_array& array) {
  array_shape bytes;
  const std::size_t size = static_cast<std::size_t>(array.shape.size()) * array.element_bytes;
  bytes.describe_dense(1, &size);
  bytes.label = array.shape.label;
  bytes.accesses = array.shape.accesses;
  return bytes;
}

/// The dense array of the extents of `part` in a buffer.
array_shape packed(const array_shape& part) {
  array_shape dense;
  dense.rank = part.rank;
  dense.extents = part.extents;
  dense.make_dense();
  dense.label = "stream buffer";
  return dense;
}

/// An array that is copied in parts, two page-locked buffers, and the copy in flight from or to each.
class parts_in_flight {
 public:
  parts_in_flight(const untyped_array& array, void* data, bool as_bytes, const part_steps& steps)
      : shape_(as_bytes ? bytes_of(array) : array.shape),
        data_(static_cast<std::byte*>(data)),
        element_bytes_(array.element_bytes),
        ratio_(as_bytes ? static_cast<std::int64_t>(array.element_bytes) : 1),
        most_(piece_of(array.element_bytes) *
              static_cast<std::int64_t>(stream_buffer_bytes / stream_piece_bytes)),
        steps_(steps) {
    const auto bytes = static_cast<std::size_t>(std::min(array.shape.size(), most_)) * array.element_bytes;
    for (auto& buffer : memory_) buffer = steps_.buffer(bytes);
  }

  /// visit(count, first, copy) for each part: of `count` elements, from position `first` on. copy(slot)
  /// begins its copy from or to a buffer.
  template <class Visit>
  void visit(const Visit& visit) {
    const auto unit_bytes = static_cast<std::int64_t>(element_bytes_) / ratio_;
    for_each_part(shape_, most_ * ratio_,
                  [&](const array_shape& part, std::int64_t offset, std::int64_t first) {
                    visit(part.size() / ratio_, first / ratio_, [&](int slot) {
                      copying_[slot] =
                          steps_.copy(part, data_ + offset * unit_bytes, packed(part), memory_[slot].get());
                    });
                  });
  }
  void join(int slot) { copying_[slot].join(); }
  /// Element `index` of a buffer.
  [[nodiscard]] std::byte* element(int slot, std::int64_t index) const {
    return static_cast<std::byte*>(memory_[slot].get()) + static_cast<std::size_t>(index) * element_bytes_;
  }

 private:
  array_shape shape_;
  std::byte* data_;
  std::size_t element_bytes_;
  std::int64_t ratio_;  ///< units of the copies in an element
  std::int64_t most_;   ///< elements of a part
  const part_steps& steps_;
  std::shared_ptr<void> memory_[2];
  ticket copying_[2];  // destroyed first: a ticket waits
};

}  // namespace

void stream_in_place(const untyped_array& array, void* data, bool reads, piece_work work) {
  if (array.shape.size() == 0) return;
  if (array.shape.accesses != nullptr) {
    if (reads)
      array.shape.accesses->wait_for_writes();
    else
      array.shape.accesses->wait_for_all();
  }
  auto* const elements = static_cast<std::byte*>(data);
  parallel(array.shape.size(), piece_of(array.element_bytes), [&](std::int64_t first, std::int64_t count) {
    work(elements + static_cast<std::size_t>(first) * array.element_bytes, first, count);
  });
}

void stream_in_parts(const untyped_array& array, void* data, bool as_bytes, const part_steps& steps,
                     piece_work fill) {
  if (array.shape.size() == 0) return;
  parts_in_flight parts(array, data, as_bytes, steps);
  int current = 0;
  parts.visit([&](std::int64_t size, std::int64_t first, const auto& copy) {
    parts.join(current);
    parallel(size, piece_of(array.element_bytes), [&](std::int64_t begin, std::int64_t count) {
      fill(parts.element(current, begin), first + begin, count);
    });
    copy(current);
    current = 1 - current;
  });
  for (const int slot : {current, 1 - current}) parts.join(slot);
}

void stream_out_parts(const untyped_array& array, void* data, bool as_bytes, const part_steps& steps,
                      piece_work drain) {
  if (array.shape.size() == 0) return;
  parts_in_flight parts(array, data, as_bytes, steps);
  int current = 0;
  std::int64_t earlier = 0;  // elements in the other buffer
  std::int64_t earlier_first = 0;
  const auto empty = [&](int slot) {
    parts.join(slot);
    parallel(earlier, piece_of(array.element_bytes), [&](std::int64_t begin, std::int64_t count) {
      drain(parts.element(slot, begin), earlier_first + begin, count);
    });
  };
  parts.visit([&](std::int64_t size, std::int64_t first, const auto& copy) {
    copy(current);
    if (earlier != 0) empty(1 - current);
    earlier = size;
    earlier_first = first;
    current = 1 - current;
  });
  empty(1 - current);
}

}  // namespace ferry::detail
