// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/copy.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_staged.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

namespace ferry::detail {

bool require_copy(const untyped_array& source, const untyped_array& sink, bool fits) {
  const array_shape& input = source.shape;
  const array_shape& output = sink.shape;
  bool same = input.rank == output.rank;
  for (std::size_t i = 0; same && i < input.rank; ++i) same = input.extents[i] == output.extents[i];
  if (!same && !(fits && input.size() == output.size()))
    throw invalid_argument("ferry::copy: the extents of " + source.note().describe() + " and " +
                           sink.note().describe() + " differ");
  if (input.is_contiguous() && output.is_contiguous() && overlap(source, sink))
    throw invalid_argument("ferry::copy: " + source.note().describe() + " and " + sink.note().describe() +
                           " overlap in memory");
  if (output.size() == 0) return same;  // dense arrays of rows without elements have strides of 0
  for (std::size_t i = 0; i < output.rank; ++i)
    if (output.extents[i] > 1 && output.strides[i] == 0)
      throw invalid_argument("ferry::copy: elements of " + sink.note().describe() + " share memory: stride " +
                             std::to_string(i) + " is 0");
  return same;
}

bool copy_box::is_dense(side end) const {
  std::int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto dimension = static_cast<std::size_t>(d);
    if (extents[dimension] != 1 && strides(end)[dimension] != expected) return false;
    expected *= extents[dimension];
  }
  return true;
}

copy_box copy_box::packed(side end) const {
  copy_box result = *this;
  std::int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto dimension = static_cast<std::size_t>(d);
    (end == side::target ? result.target : result.source)[dimension] = stride;
    stride *= extents[dimension];
  }
  return result;
}

copy_box copy_box::ordered(side lead) const {
  copy_box result;
  for (int d = 0; d < rank; ++d) {
    const auto dimension = static_cast<std::size_t>(d);
    if (extents[dimension] != 1) result.append(extents[dimension], target[dimension], source[dimension]);
  }
  if (result.rank == 0) result.append(1, 1, 1);
  const side follower = lead == side::target ? side::source : side::target;
  const auto outside = [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t d) {
      return std::pair(std::abs(result.strides(lead)[d]), std::abs(result.strides(follower)[d]));
    };
    return key(a) > key(b);
  };
  for (std::size_t d = 1; d <= result.last(); ++d)
    for (std::size_t e = d; e > 0 && outside(e, e - 1); --e) result.exchange(e, e - 1);
  return result.merged();
}

copy_box copy_box::split(std::int64_t units) const {
  if (units == 1) return *this;
  copy_box result = *this;
  for (std::size_t d = 0; d <= last(); ++d) {
    result.target[d] *= units;
    result.source[d] *= units;
  }
  result.append(units, 1, 1);
  return result.merged();
}

bool copy_box::joins(std::int64_t units) const {
  if (!has_runs() || inner() % units != 0) return false;
  for (std::size_t d = 0; d < last(); ++d)
    if (target[d] % units != 0 || source[d] % units != 0) return false;
  return true;
}

copy_box copy_box::joined(std::int64_t units) const {
  copy_box result = *this;
  result.extents[last()] /= units;
  for (std::size_t d = 0; d < last(); ++d) {
    result.target[d] /= units;
    result.source[d] /= units;
  }
  return result;
}

std::pair<std::int64_t, std::int64_t> copy_box::offsets(std::int64_t position, int end) const {
  std::int64_t target_offset = 0, source_offset = 0;
  for (int d = end - 1; d >= 0; --d) {
    const auto dimension = static_cast<std::size_t>(d);
    const std::int64_t index = position % extents[dimension];
    position /= extents[dimension];
    target_offset += index * target[dimension];
    source_offset += index * source[dimension];
  }
  return {target_offset, source_offset};
}

void copy_box::exchange(std::size_t a, std::size_t b) {
  std::swap(extents[a], extents[b]);
  std::swap(target[a], target[b]);
  std::swap(source[a], source[b]);
}

copy_box copy_box::merged() const {
  copy_box result;
  for (std::size_t d = 0; d <= last(); ++d) {
    if (result.rank > 0) {
      const std::size_t outer = result.last();
      if (result.target[outer] == extents[d] * target[d] && result.source[outer] == extents[d] * source[d]) {
        result.extents[outer] *= extents[d];
        result.target[outer] = target[d];
        result.source[outer] = source[d];
        continue;
      }
    }
    result.append(extents[d], target[d], source[d]);
  }
  return result;
}

copy_box box_of(const array_shape& source, const array_shape& target) {
  copy_box box;
  for (std::size_t i = 0; i < source.rank; ++i)
    box.append(source.extents[i], target.strides[i], source.strides[i]);
  if (box.rank == 0) box.append(1, 1, 1);
  return box;
}

template <class Unit, class Exec>
void move_units(const Exec& exec, const std::string& label, void* target, const void* source,
                const copy_box& box, [[maybe_unused]] bool past_caches) {
  auto* const target_units = static_cast<Unit*>(target);
  const auto* const source_units = static_cast<const Unit*>(source);
  if constexpr (is_host_exec<Exec>) {
    launch_box_on_host(exec, label, target_units, source_units, box, past_caches);
  } else {
    using wide = kernels::opaque16;
    constexpr auto units = static_cast<std::int64_t>(sizeof(wide) / sizeof(Unit));
    if (box.joins(units) && is_aligned(target_units, sizeof(wide)) && is_aligned(source_units, sizeof(wide)))
      launch_box_on_device(exec, label, static_cast<wide*>(target), static_cast<const wide*>(source),
                           box.joined(units).ordered(copy_box::side::target));
    else
      launch_box_on_device(exec, label, target_units, source_units, box);
  }
}

#define FERRY_MOVE_UNITS(UNIT, EXEC)                                                                         \
  template void move_units<kernels::opaque<UNIT>, EXEC>(const EXEC&, const std::string&, void*, const void*, \
                                                        const copy_box&, bool);
#define FERRY_MOVE_ON(EXEC) \
  FERRY_MOVE_UNITS(1, EXEC) \
  FERRY_MOVE_UNITS(2, EXEC) \
  FERRY_MOVE_UNITS(4, EXEC) \
  FERRY_MOVE_UNITS(8, EXEC)
FERRY_FOR_EXECUTION_SPACES(FERRY_MOVE_ON)
FERRY_MOVE_ON(caller_thread)
#undef FERRY_MOVE_ON
#undef FERRY_MOVE_UNITS

}  // namespace ferry::detail
