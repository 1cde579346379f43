// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/copy_box.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace ferry::detail {

bool copy_box::is_dense(side which) const {
  std::int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    if (extents[at] != 1 && strides(which)[at] != expected) return false;
    expected *= extents[at];
  }
  return true;
}

copy_box copy_box::packed(side which) const {
  copy_box made = *this;
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    (which == side::to ? made.to : made.from)[at] = stride;
    stride *= extents[at];
  }
  return made;
}

copy_box copy_box::ordered(side lead) const {
  copy_box made;
  for (int d = 0; d < rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (extents[at] != 1) made.append(extents[at], to[at], from[at]);
  }
  if (made.rank == 0) made.append(1, 1, 1);
  const side other = lead == side::to ? side::from : side::to;
  const auto outside = [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t d) {
      return std::pair(std::abs(made.strides(lead)[d]), std::abs(made.strides(other)[d]));
    };
    return key(a) > key(b);
  };
  for (std::size_t d = 1; d <= made.last(); ++d)
    for (std::size_t e = d; e > 0 && outside(e, e - 1); --e) made.exchange(e, e - 1);
  return made.merged();
}

copy_box copy_box::split(std::int64_t units) const {
  if (units == 1) return *this;
  copy_box made = *this;
  for (std::size_t d = 0; d <= last(); ++d) {
    made.to[d] *= units;
    made.from[d] *= units;
  }
  made.append(units, 1, 1);
  return made.merged();
}

bool copy_box::joins(std::int64_t units) const {
  if (!has_runs() || inner() % units != 0) return false;
  for (std::size_t d = 0; d < last(); ++d)
    if (to[d] % units != 0 || from[d] % units != 0) return false;
  return true;
}

copy_box copy_box::joined(std::int64_t units) const {
  copy_box made = *this;
  made.extents[last()] /= units;
  for (std::size_t d = 0; d < last(); ++d) {
    made.to[d] /= units;
    made.from[d] /= units;
  }
  return made;
}

std::pair<std::int64_t, std::int64_t> copy_box::offsets(std::int64_t position, int end) const {
  std::int64_t there = 0, here = 0;
  for (int d = end - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t index = position % extents[at];
    position /= extents[at];
    there += index * to[at];
    here += index * from[at];
  }
  return {there, here};
}

void copy_box::exchange(std::size_t a, std::size_t b) {
  std::swap(extents[a], extents[b]);
  std::swap(to[a], to[b]);
  std::swap(from[a], from[b]);
}

copy_box copy_box::merged() const {
  copy_box made;
  for (std::size_t d = 0; d <= last(); ++d) {
    if (made.rank > 0) {
      const std::size_t outer = made.last();
      if (made.to[outer] == extents[d] * to[d] && made.from[outer] == extents[d] * from[d]) {
        made.extents[outer] *= extents[d];
        made.to[outer] = to[d];
        made.from[outer] = from[d];
        continue;
      }
    }
    made.append(extents[d], to[d], from[d]);
  }
  return made;
}

copy_box box_of(const array_shape& from, const array_shape& to) {
  copy_box box;
  for (std::size_t i = 0; i < from.rank; ++i) box.append(from.extents[i], to.strides[i], from.strides[i]);
  if (box.rank == 0) box.append(1, 1, 1);
  return box;
}

}  // namespace ferry::detail
