// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

/// quantize and dequantize of whole tables.
namespace ferry::detail {

/// An array whose kernels work on it chunk by chunk: in place, or in scratch that is copied from or to it.
template <class Path, class Exec, class T, class Space>
class chunked_array {
 public:
  using plain = std::remove_const_t<T>;
  static constexpr bool in_place = is_read_in_place<Path, Exec, Space>;

  /// `chunk`: rows of the scratch, if there is one.
  chunked_array(launch_context<Exec>& call, const array_ref<T, Space>& array, std::int64_t chunk,
                const char* label)
      : array_(array) {
    if constexpr (in_place) {
      // Copies order themselves; only arrays that the kernels access directly need ordering here.
      require_direct_reach(call.verb(), call.exec(), array);
      call.touches(array);
    } else {
      scratch_ = near_rows<plain>(call, chunk, array.width(), label);
    }
  }
  /// Rows [first, first + count) for kernels.
  [[nodiscard]] auto rows(std::int64_t first, std::int64_t count) const {
    if constexpr (in_place)
      return piece_of(array_, first, count);
    else
      return rows_from(scratch_, 0, count);
  }
  void fetch(launch_context<Exec>& call, std::int64_t first, std::int64_t count) const {
    if constexpr (!in_place)
      copy(call.exec(), piece_of(array_, first, count), rows_from(scratch_, 0, count), Path{}).drop();
  }
  void put(launch_context<Exec>& call, std::int64_t first, std::int64_t count) const {
    if constexpr (!in_place)
      copy(call.exec(), rows_from(scratch_, 0, count), piece_of(array_, first, count), Path{}).drop();
  }

 private:
  array_ref<T, Space> array_;
  array_ref<plain, near_space<Exec>> scratch_;
};
template <class Path, class Exec, class T, class Space>
chunked_array<Path, Exec, T, Space> chunks_of(launch_context<Exec>& call, const array_ref<T, Space>& array,
                                              std::int64_t chunk, const char* label) {
  return {call, array, chunk, label};
}

/// In place of the scales of a quantization without.
struct no_chunks {
  [[nodiscard]] static no_scale rows(std::int64_t, std::int64_t) { return {}; }
  static void fetch(const auto&, std::int64_t, std::int64_t) {}
  static void put(const auto&, std::int64_t, std::int64_t) {}
};
template <class Path, class Exec>
no_chunks chunks_of(launch_context<Exec>&, const no_scale&, std::int64_t, const char*) {
  return {};
}

/// Rows of a chunk of both sides.
template <class Path, class Exec, class Table, class Value, class Space>
std::int64_t chunk_rows(const Table& table, const array_ref<Value, Space>& values) {
  constexpr bool in_place =
      decodes_at_once<Path, Exec, Space, typename Table::memory_space, typename Table::scale_space>;
  return rows_per_chunk<!in_place>(values.rows(), values.width() * static_cast<std::int64_t>(sizeof(Value)) +
                                                      static_cast<std::int64_t>(table.row_bytes()));
}

template <class Path, class Exec, class Value, class FromSpace, class Q, class Space, class ScaleSpace>
void quantize_table(launch_context<Exec>& call, const array_ref<Value, FromSpace>& source,
                    quantized_tensor<Q, Space, ScaleSpace>& table) {
  const auto label = label_of("quantize", Path::name);
  const std::int64_t chunk = chunk_rows<Path, Exec>(table, source);
  const auto values = chunks_of<Path>(call, read_only(source), chunk, "values");
  const auto codes = chunks_of<Path>(call, make_ref(stored(table)), chunk, "codes");
  const auto scales = chunks_of<Path>(call, scales_ref(table), chunk, "scales");
  for (std::int64_t first = 0; first < source.rows(); first += chunk) {
    const std::int64_t count = std::min(chunk, source.rows() - first);
    values.fetch(call, first, count);
    launch_encode<Q>(call.exec(), label, values.rows(first, count), codes.rows(first, count),
                     scales.rows(first, count), table.scale());
    codes.put(call, first, count);
    scales.put(call, first, count);
  }
}

template <class Path, class Exec, class Q, class Space, class ScaleSpace, class Out, class OutSpace>
void dequantize_table(launch_context<Exec>& call, const quantized_tensor<Q, Space, ScaleSpace>& table,
                      const array_ref<Out, OutSpace>& target) {
  const auto label = label_of("dequantize", Path::name);
  const std::int64_t chunk = chunk_rows<Path, Exec>(table, target);
  const auto codes = chunks_of<Path>(call, make_ref(stored(table)), chunk, "codes");
  const auto scales = chunks_of<Path>(call, scales_ref(table), chunk, "scales");
  const auto values = chunks_of<Path>(call, target, chunk, "values");
  for (std::int64_t first = 0; first < target.rows(); first += chunk) {
    const std::int64_t count = std::min(chunk, target.rows() - first);
    codes.fetch(call, first, count);
    scales.fetch(call, first, count);
    auto rows = codes.rows(first, count);
    if constexpr (Q::in_records) rows.extents[1] = target.width();
    launch_gather(call.exec(), label, rows_of_codes<Q>(rows, scales.rows(first, count), table.scale()),
                  values.rows(first, count), kernels::identity{}, count);
    values.put(call, first, count);
  }
}

}  // namespace ferry::detail
