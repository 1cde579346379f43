// SPDX-License-Identifier: Apache-2.0
#include <ferry/rows/detail/copy_row_arrays.hpp>
#include <ferry/rows/rows_along.hpp>

#include <ferry/error.hpp>

#include "../../backends/enabled.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ferry::detail {

namespace {

/// The bytes from the first to the last element of an array.
struct byte_range {
  std::uintptr_t begin, end;
};
byte_range range_of(const untyped_array& array) {
  const auto begin = reinterpret_cast<std::uintptr_t>(array.data);
  if (array.shape.size() == 0) return {begin, begin};
  std::int64_t last = 0;
  for (std::size_t d = 0; d < array.shape.rank; ++d)
    last += (array.shape.extents[d] - 1) * array.shape.strides[d];
  return {begin, begin + static_cast<std::uintptr_t>(last + 1) * array.element_bytes};
}

/// The dimensions of an array that have several indices, the one with the longest stride first.
struct sorted_dimensions {
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> list;  ///< strides and extents
  std::size_t count = 0;

  explicit sorted_dimensions(const array_shape& shape) {
    for (std::size_t d = 0; d < shape.rank; ++d)
      if (shape.extents[d] > 1) list[count++] = {shape.strides[d], shape.extents[d]};
    std::sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  }
};

/// True if several indices name one element.
bool shares_elements(const array_shape& shape) {
  if (shape.size() == 0) return false;  // dense arrays of rows without elements have strides of 0
  const sorted_dimensions dimensions(shape);
  std::int64_t span = 1;
  for (std::size_t d = dimensions.count; d-- > 0;) {
    const auto [stride, extent] = dimensions.list[d];
    if (stride < span) return true;
    span += (extent - 1) * stride;
  }
  return false;
}

/// True if elements at indices whose difference is less than the extents lie `distance` elements apart.
bool reaches(const sorted_dimensions& dimensions, std::size_t number, std::int64_t distance) {
  if (number == dimensions.count) return distance == 0;
  const auto [stride, extent] = dimensions.list[number];
  const std::int64_t quotient = distance / stride;
  for (std::int64_t index = quotient - 1; index <= quotient + 1; ++index)
    if (index > -extent && index < extent && reaches(dimensions, number + 1, distance - index * stride))
      return true;
  return false;
}

/// True if two arrays have a byte in common. Of arrays whose strides differ, or of which several indices name
/// one element, if the ranges of their bytes overlap.
bool share_memory(const untyped_array& a, const untyped_array& b) {
  const byte_range first = range_of(a), second = range_of(b);
  if (first.begin == first.end || second.begin == second.end || first.end <= second.begin ||
      second.end <= first.begin)
    return false;
  if (shares_elements(a.shape) || shares_elements(b.shape)) return true;
  if (a.shape.has_dense_rows() && b.shape.has_dense_rows()) return overlap(a, b);
  const auto element = static_cast<std::int64_t>(a.element_bytes);
  const auto distance = static_cast<std::int64_t>(second.begin - first.begin);
  if (a.element_bytes != b.element_bytes || a.shape.rank != b.shape.rank || distance % element != 0)
    return true;
  for (std::size_t d = 0; d < a.shape.rank; ++d)
    if (a.shape.strides[d] != b.shape.strides[d]) return true;
  array_shape larger = a.shape;
  for (std::size_t d = 0; d < larger.rank; ++d)
    larger.extents[d] = std::max(larger.extents[d], b.shape.extents[d]);
  return reaches(sorted_dimensions(larger), 0, distance / element);
}

/// The tables of a list by address: only neighbours can overlap, of ranges that lie one behind the other.
using sorted_ranges = std::vector<std::pair<byte_range, std::size_t>>;
sorted_ranges sort_tables(const untyped_tables& tables) {
  sorted_ranges ranges;
  for (std::size_t t = 0; t < tables.size(); ++t) ranges.emplace_back(range_of(tables[t]), t);
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  return ranges;
}

/// Throws invalid_argument if neighbours among the written tables share memory, as a table that is listed
/// twice does.
void require_distinct(const untyped_tables& targets, const sorted_ranges& ranges) {
  for (std::size_t t = 1; t < ranges.size(); ++t) {
    const untyped_array &a = targets[ranges[t - 1].second], &b = targets[ranges[t].second];
    if (share_memory(a, b))
      throw invalid_argument(joined("ferry::copy_rows: ", a.note().describe(), " and ", b.note().describe(),
                                    ", which are both written, share memory"));
  }
}

/// Throws invalid_argument if a table of one side shares memory with one of the other.
void require_apart(const untyped_tables& sources, const untyped_tables& targets,
                   const sorted_ranges& ranges) {
  const auto refuse = [](const untyped_array& a, const untyped_array& b) {
    throw invalid_argument(joined(
        "ferry::copy_rows: ", a.note().describe(), " and ", b.note().describe(),
        " share memory, so rows could be written before they are read; overlap::buffer reads all of them first"));
  };
  std::uintptr_t longest = 0;
  for (const auto& [range, number] : ranges) longest = std::max(longest, range.end - range.begin);
  for (const untyped_array& source : sources) {
    const byte_range range = range_of(source);
    const std::uintptr_t lowest = range.begin < longest ? 0 : range.begin - longest;
    auto entry = std::lower_bound(ranges.begin(), ranges.end(), lowest,
                                  [](const auto& a, std::uintptr_t begin) { return a.first.begin < begin; });
    for (; entry != ranges.end() && entry->first.begin < range.end; ++entry)
      if (share_memory(source, targets[entry->second])) refuse(source, targets[entry->second]);
  }
}

/// Throws invalid_argument unless all tables of a side are alike.
void require_alike(const untyped_tables& tables) {
  const untyped_array& first = tables.front();
  if (first.shape.rank == 0)
    throw invalid_argument(joined("ferry::copy_rows: ", first.note().describe(), " has no rows"));
  for (const untyped_array& table : tables)
    if (table.shape.rank != first.shape.rank || table.shape.extents != first.shape.extents ||
        table.shape.strides != first.shape.strides)
      throw invalid_argument(
          joined("ferry::copy_rows: the tables of a list have equal extents and strides, but ",
                 table.note().describe(), " differs from ", first.note().describe()));
}

/// The elements of a row of both sides.
copy_box box_of_rows(const untyped_array& source, const untyped_array& target) {
  copy_box box;
  bool equal = source.shape.rank == target.shape.rank;
  for (std::size_t d = 1; equal && d < source.shape.rank; ++d)
    equal = source.shape.extents[d] == target.shape.extents[d];
  if (equal) {
    for (std::size_t d = 1; d < source.shape.rank; ++d)
      box.append(source.shape.extents[d], target.shape.strides[d], source.shape.strides[d]);
  } else if (source.shape.has_dense_rows() && target.shape.has_dense_rows() &&
             source.shape.width() == target.shape.width()) {
    box.append(source.shape.width(), 1, 1);
  } else {
    throw invalid_argument(joined("ferry::copy_rows: rows of ", source.note().describe(), " and of ",
                                  target.note().describe(), " have different extents"));
  }
  if (box.rank == 0) box.append(1, 1, 1);
  return box.ordered(copy_box::side::target);
}

}  // namespace

row_shape match_rows(const untyped_tables& sources, const untyped_tables& targets, bool buffers) {
  if (sources.size() != targets.size())
    throw invalid_argument(joined("ferry::copy_rows: ", counted(sources.size(), "table is", "tables are"),
                                  " read and ", counted(targets.size(), "table is", "tables are"),
                                  " written"));
  if (sources.empty()) return {};
  require_alike(sources);
  require_alike(targets);
  const untyped_array &source = sources.front(), &target = targets.front();
  row_shape shape{box_of_rows(source, target), source.shape.strides[0], target.shape.strides[0]};
  if (shares_elements(target.shape))
    throw invalid_argument(joined("ferry::copy_rows: elements of ", target.note().describe(),
                                  " share memory, so they can't be written"));
  const sorted_ranges ranges = sort_tables(targets);
  require_distinct(targets, ranges);
  if (!buffers) require_apart(sources, targets, ranges);
  return shape;
}

void require_pairs(std::int64_t source_count, std::int64_t target_count, const untyped_array& source,
                   const untyped_array& target) {
  if (source_count != target_count)
    throw invalid_argument(joined("ferry::copy_rows: ", counted(source_count, "row", "rows"), " of ",
                                  source.note().describe(), " can't become ",
                                  counted(target_count, "row", "rows"), " of ", target.note().describe()));
}

void require_range(const char* side, const row_range& range, const untyped_array& table) {
  if (range.first < 0 || range.count < 0 || range.first > table.shape.rows() - range.count)
    throw out_of_range(joined("ferry::copy_rows: the ", side, " rows from ", range.first, " on, ",
                              range.count, " in all, are outside of ", table.note().describe()));
}

void refuse_peer(const array_note& table, int device, int own_device) {
  throw invalid_argument(joined("ferry::copy_rows: the instance is of device ", own_device,
                                ", which does not reach the memory of ", table.describe(), " on device ",
                                device));
}

array_shape with_rows_along(const untyped_array& array, std::size_t number) {
  array_shape rows = array.shape;
  if (number >= rows.rank)
    throw invalid_argument(
        joined("ferry::rows_along: ", array.note().describe(), " has no dimension ", number));
  for (std::size_t d = number; d > 0; --d) {
    std::swap(rows.extents[d], rows.extents[d - 1]);
    std::swap(rows.strides[d], rows.strides[d - 1]);
  }
  return rows;
}

row_shape in_bytes(const row_shape& shape, std::int64_t bytes) {
  return {shape.box.split(bytes), shape.source_stride * bytes, shape.target_stride * bytes};
}

row_shape packed(const row_shape& shape, copy_box::side side) {
  row_shape result = shape;
  result.box = shape.box.packed(side);
  (side == copy_box::side::target ? result.target_stride : result.source_stride) = shape.box.size();
  return result;
}

buffered_tables::buffered_tables(std::span<const kernels::table_pair> tables, std::byte* buffer,
                                 std::int64_t bytes)
    : reads(tables.begin(), tables.end()), writes(reads) {
  for (std::size_t t = 0; t < reads.size(); ++t)
    writes[t].source = reads[t].target = buffer + static_cast<std::int64_t>(t) * bytes;
}

std::int64_t alignment_of(std::span<const kernels::table_pair> tables) {
  std::uintptr_t bits = 16;
  for (const auto& table : tables)
    bits |= reinterpret_cast<std::uintptr_t>(table.source) | reinterpret_cast<std::uintptr_t>(table.target);
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

void describe_rows(const row_shape& shape, std::int64_t unit, kernels::row_moves& moves) {
  copy_box box = unit == 1 ? shape.box : shape.box.joined(unit);
  if (!box.has_runs()) box.append(1, 1, 1);
  moves.source_stride = shape.source_stride / unit;
  moves.target_stride = shape.target_stride / unit;
  moves.run = box.inner();
  moves.row_pieces = moves.run == 0 ? 0 : box.size() / moves.run;
  moves.pieces = kernels::box_offsets(box, box.last());
}

template <class Exec>
void move_row_bytes(const Exec& exec, const std::string& label, const row_shape& shape,
                    [[maybe_unused]] std::int64_t alignment, kernels::row_moves moves, std::int64_t blocks) {
  const auto move_by = [&]<class Unit>(std::type_identity<Unit>) {
    describe_rows(shape, sizeof(Unit), moves);
    launch_moves<Unit, Unit>(exec, label, moves, blocks);
  };
  if constexpr (!is_host_exec<Exec>) {
    const auto fits = [&](std::int64_t unit) {
      return alignment % unit == 0 && shape.source_stride % unit == 0 && shape.target_stride % unit == 0 &&
             shape.box.joins(unit);
    };
    if (fits(16)) return move_by(std::type_identity<kernels::opaque16>{});
    if (fits(8)) return move_by(std::type_identity<kernels::opaque<8>>{});
    if (fits(4)) return move_by(std::type_identity<kernels::opaque<4>>{});
    if (fits(2)) return move_by(std::type_identity<kernels::opaque<2>>{});
  }
  move_by(std::type_identity<kernels::opaque<1>>{});
}

engine_copies list_copies(const row_shape& shape, std::span<const kernels::table_pair> tables,
                          const kernels::row_pairs& pairs, std::int64_t count) {
  copy_box box = shape.box;
  if (!box.has_runs()) box.append(1, 1, 1);
  const std::int64_t run = box.inner(), pieces = run == 0 ? 0 : box.size() / run;
  engine_copies copies;
  for_each_pair(shape, tables, pairs, count, [&](std::byte* target_row, const std::byte* source_row) {
    for (std::int64_t p = 0; p < pieces; ++p) {
      const auto [target_offset, source_offset] = box.offsets(p, box.rank - 1);
      std::byte* const target = target_row + target_offset;
      const std::byte* const source = source_row + source_offset;
      if (!copies.bytes.empty()) {
        const std::size_t last = copies.bytes.back();
        if (static_cast<std::byte*>(copies.targets.back()) + last == target &&
            static_cast<const std::byte*>(copies.sources.back()) + last == source) {
          copies.bytes.back() += static_cast<std::size_t>(run);
          continue;
        }
      }
      copies.targets.push_back(target);
      copies.sources.push_back(source);
      copies.bytes.push_back(static_cast<std::size_t>(run));
    }
  });
  return copies;
}

#define FERRY_MOVE_ROWS_ON(EXEC)                                                                      \
  template void move_row_bytes<EXEC>(const EXEC&, const std::string&, const row_shape&, std::int64_t, \
                                     kernels::row_moves, std::int64_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_MOVE_ROWS_ON)
#undef FERRY_MOVE_ROWS_ON

}  // namespace ferry::detail
