// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/dequantize_rows.hpp>
#include <ferry/quantized/detail/quantize_rows.hpp>
#include <ferry/quantized/rowwise_int8_tensor.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// The parts that the verbs on 8-bit tables share. These verbs consist of ordinary verbs on records, which
/// are rows of bytes, and of dense kernels between records and numbers in memory of the execution space. So
/// they support every path and space.
namespace ferry::detail {

/// True if kernels of Exec access Space without a link.
template <class Exec, class Space>
inline constexpr bool is_near = is_host_exec<Exec> || std::is_same_v<Space, device_space>;

/// The user's path for records between the table and the execution space's memory. Staging becomes
/// path::direct if both are on the device.
template <class Path, class Exec, class Space>
using record_path =
    std::conditional_t<(by_host_alone<Path> && !any_host_space<Space, near_space<Exec>>), path::direct, Path>;

/// Before anything is enqueued: refuses capture if host threads would take part in each launch.
template <class Path, class... Spaces, class Exec>
void refuse_capture_of_staging(const launch_context<Exec>& call) {
  if constexpr (by_host_alone<Path> || splits_rows<Path> || (std::is_same_v<Spaces, pageable_space> || ...))
    call.refuse_capture(
        "but the rows would pass through the host's threads each time; use path::direct on device, mapped or pinned memory");
}

/// The codes as rows of `width` bytes, one record apart. Checks and messages use them.
template <class Table>
auto codes_of(Table& table) {
  const auto records = make_ref(table.records());
  auto codes = records;
  codes.extents[1] = static_cast<std::int64_t>(table.width());
  return codes;
}

/// Rows [first, first + count) of an array, with its tracked device writes.
template <class T, class Space>
array_ref<T, Space> piece_of(const array_ref<T, Space>& array, std::int64_t first, std::int64_t count) {
  auto piece = rows_from(array, first, count);
  piece.accesses = array.accesses;
  return piece;
}

/// Scratch of the verb, as a dense table.
template <class T, class Exec>
array_ref<T, near_space<Exec>> near_rows(launch_context<Exec>& call, std::int64_t rows, std::int64_t width,
                                         const char* label) {
  return dense_rows<T, near_space<Exec>>(call.template scratch<T>(rows * width), rows, width, label);
}

/// records[p] = values[p] in 8 bits for each position p that `source` names.
template <class Exec, class Value, class Space, class Source = kernels::identity>
void launch_quantize(const Exec& exec, const std::string& label, const array_ref<Value, Space>& values,
                     std::byte* records, std::int64_t record_bytes, const Source& source = {}) {
  using plain = std::remove_const_t<Value>;
  if (values.rows() == 0) return;
  const auto launch_tiles = [&]<class Tile>(Tile) {
    launch(exec, label, schedule::flat{}, values.rows(), 1,
           kernels::quantize_rows<plain, Source, Tile>{values.data, values.row_stride(), values.width(),
                                                       records, record_bytes, values.rows(), source});
  };
  if constexpr (is_host_exec<Exec>) {
    launch_tiles(kernels::host_tile{});
  } else {
    constexpr int wide = kernels::wide_packed_tile::elements;
    if (values.width() <= wide * kernels::row_sum_order::lanes && in_packets<wide>(values))
      launch_tiles(kernels::wide_packed_tile{});
    else if (in_packets<kernels::packed_tile::elements>(values))
      launch_tiles(kernels::packed_tile{});
    else
      launch_tiles(kernels::single_tile{});
  }
}

/// out[source.position(k)] = the values of record source.row(k) for each item k.
template <class Exec, class Out, class Space, class Source, class Order = schedule::flat>
void launch_dequantize(const Exec& exec, const std::string& label, const std::byte* records,
                       std::int64_t record_bytes, const array_ref<Out, Space>& out, const Source& source,
                       const Order& order = {}) {
  using kernel = kernels::dequantize_rows<Out, Source, is_host_exec<Exec>>;
  const std::int64_t units = kernel::units_of(out.width());
  launch(exec, label, order, out.rows(), units,
         kernel{records, record_bytes, out.width(), out.data, out.row_stride(), fast_divisor(units),
                in_packets<4>(out), source});
}

/// 8-bit rows, which kernels decode: see row_access.hpp.
template <class Byte, class Space>
struct record_rows {
  using value_type = Byte;
  array_ref<Byte, Space> codes;
};
template <class Exec, class Byte, class RowSpace, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const record_rows<Byte, RowSpace>& rows,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t,
                   const Order& order = {}) {
  launch_dequantize(exec, label, rows.codes.data, rows.codes.row_stride(), out, source, order);
}

/// True if rows of the array can be converted to and from 8 bits.
template <class Array>
consteval void require_quantizable() {
  constexpr bool is_floating = FloatingElement<typename traits_of<Array>::value_type>;
  static_assert(is_floating,
                "ferry: quantized rows are converted from and to float, double, half_t and bhalf_t only.");
}

/// Checks the types of quantize and dequantize: the table of numbers and the 8-bit table in Space.
template <class Exec, class Array, class Space, class Chosen>
consteval void require_whole_table_verb() {
  require_execution_space<Exec>();
  require_rows<Array>();
  require_quantizable<Array>();
  require_policies<Chosen, false, false>();
  static_assert(
      !Chosen::template get<path_category, path::automatic>::sorts,
      "ferry: quantize and dequantize take whole tables, so there are no rows to sort; path::ordered and path::cooperative are for verbs that take indices.");
  require_reach<Exec, Array>();
  require_reach<Exec, tensor<std::byte, Space>>();
  require_path<typename Chosen::template get<path_category, path::automatic>,
               typename traits_of<Array>::memory_space, Space>();
}

inline void require_same_rows(const char* verb, const auto& source, const auto& target) {
  require_dense_rows(verb, source);
  require_dense_rows(verb, target);
  if (source.rows() != target.rows() || source.width() != target.width())
    throw invalid_argument(joined("ferry::", verb, ": the rows of ", source.describe(), " and ",
                                  target.describe(), " differ in number or width"));
}

/// Rows per chunk, so that numbers and records take about 32 MiB of scratch; all rows if no scratch is
/// needed.
template <bool Scratch>
std::int64_t rows_per_chunk(std::int64_t rows, std::int64_t row_bytes) {
  if (!Scratch) return rows;
  return std::min(rows, std::max<std::int64_t>(1, (std::int64_t{1} << 25) / row_bytes));
}

}  // namespace ferry::detail
