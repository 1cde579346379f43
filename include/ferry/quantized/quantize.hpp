// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
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

/// Rows of a chunk of both sides, which take about 32 MiB of scratch; all rows if no scratch is needed.
template <class Path, class Exec, class Table, class Value, class Space>
std::int64_t chunk_rows(const Table& table, const array_ref<Value, Space>& values) {
  if (decodes_at_once<Path, Exec, Space, typename Table::memory_space, typename Table::scale_space>)
    return values.rows();
  const std::int64_t row_bytes = bytes_of_rows(values, 1) + static_cast<std::int64_t>(table.row_bytes());
  return std::min(values.rows(), std::max<std::int64_t>(1, (std::int64_t{1} << 25) / row_bytes));
}

template <class Path, class Exec, class Table>
void quantize_table(launch_context<Exec>& call, const auto& source, Table& table) {
  const auto label = label_of("quantize", Path::name);
  const std::int64_t chunk = chunk_rows<Path, Exec>(table, source);
  const auto values = chunks_of<Path>(call, read_only(source), chunk, "values");
  const auto codes = chunks_of<Path>(call, make_ref(stored(table)), chunk, "codes");
  const auto scales = chunks_of<Path>(call, scales_ref(table), chunk, "scales");
  for (std::int64_t first = 0; first < source.rows(); first += chunk) {
    const std::int64_t count = std::min(chunk, source.rows() - first);
    values.fetch(call, first, count);
    launch_encode<typename Table::quantization>(call.exec(), label, values.rows(first, count),
                                                codes.rows(first, count), scales.rows(first, count),
                                                table.scale());
    codes.put(call, first, count);
    scales.put(call, first, count);
  }
}

template <class Path, class Exec, class Table>
void dequantize_table(launch_context<Exec>& call, const Table& table, const auto& target) {
  using quantization = typename Table::quantization;
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
    if constexpr (quantization::in_records) rows.extents[1] = target.width();
    launch_gather(call.exec(), label,
                  rows_of_codes<quantization>(rows, scales.rows(first, count), table.scale()),
                  values.rows(first, count), kernels::identity{}, count);
    values.put(call, first, count);
  }
}

}  // namespace ferry::detail

namespace ferry {

/// Codes and scales of each row of a table = those of the row of `values`, encoded as its quantization says.
/// Numbers of double are rounded to float first. Of a quantization with one factor for the table, set
/// the factor before.
///
///   values    rows x width of float, double, half_t or bhalf_t, any memory space
///   table     the extents of `values`, any memory spaces
///   policies  path  default path::automatic, for data that travels to or from the execution space
///
/// Enqueued on `exec`, in chunks if a side is not in its memory. Through slots it occupies the calling
/// thread. The operands must live until the work has ended, see ferry::ticket. Throws invalid_argument for
/// shapes that differ.
template <class Exec, class From, class Q, class Space, class ScaleSpace, class... Policies>
  requires(detail::Fits<detail::quantize_arguments, const Exec&, const From&,
                        quantized_tensor<Q, Space, ScaleSpace>&, Policies...>)
[[nodiscard]] ticket quantize(const Exec& exec, const From& values,
                              quantized_tensor<Q, Space, ScaleSpace>& table, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_table_verb<Exec, From, quantized_tensor<Q, Space, ScaleSpace>, chosen>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto source = make_ref(values);
  detail::require_same_rows("quantize", source, detail::numbers_of(table));
  detail::launch_context<Exec> call(exec, "quantize");
  if (source.size() != 0) detail::quantize_table<path_policy>(call, source, table);
  return call.finish();
}

/// out = the values of a table of quantized rows, decoded as its quantization says and rounded once. Shapes,
/// policies, ordering and errors are those of quantize.
template <class Exec, class Q, class Space, class ScaleSpace, class To, class... Policies>
  requires(detail::Fits<detail::dequantize_arguments, const Exec&,
                        const quantized_tensor<Q, Space, ScaleSpace>&, To, Policies...>)
[[nodiscard]] ticket dequantize(const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table,
                                To&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_table_verb<Exec, To, quantized_tensor<Q, Space, ScaleSpace>, chosen>();
  detail::require_output<To>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto sink = make_ref(out);
  detail::require_same_rows("dequantize", detail::numbers_of(table), sink);
  detail::launch_context<Exec> call(exec, "dequantize");
  if (sink.size() != 0) detail::dequantize_table<path_policy>(call, table, sink);
  return call.finish();
}

}  // namespace ferry
