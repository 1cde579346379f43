// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/quantized/detail/whole_table.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

template <class Path, class Exec, class Value, class FromSpace, class Space>
void quantize_table(launch_context<Exec>& call, const array_ref<Value, FromSpace>& source,
                    rowwise_int8_tensor<Space>& table) {
  using plain = std::remove_const_t<Value>;
  constexpr bool source_is_near = is_near<Exec, FromSpace>;
  constexpr bool target_is_near = is_near<Exec, Space>;
  const auto label = label_of("quantize", Path::name);
  const auto target = make_ref(table.records());
  const auto bytes = target.width();
  // Copies order themselves; only arrays that the kernels access directly need ordering here.
  if constexpr (source_is_near) {
    require_direct_reach("quantize", call.exec(), source);
    call.reads_from(source);
  }
  if constexpr (target_is_near) {
    require_direct_reach("quantize", call.exec(), target);
    call.writes_to(target);
  }
  const std::int64_t wide = source.width();
  const std::int64_t chunk =
      rows_per_chunk < !source_is_near ||
      !target_is_near > (source.rows(), wide * static_cast<std::int64_t>(sizeof(plain)) + bytes);
  array_ref<plain, near_space<Exec>> values;
  array_ref<std::byte, near_space<Exec>> records;
  if constexpr (!source_is_near) values = near_rows<plain>(call, chunk, wide, "values");
  if constexpr (!target_is_near) records = near_rows<std::byte>(call, chunk, bytes, "records");
  for (std::int64_t first = 0; first < source.rows(); first += chunk) {
    const std::int64_t count = std::min(chunk, source.rows() - first);
    std::byte* encoded = target_is_near ? target.data + first * bytes : records.data;
    if constexpr (source_is_near) {
      launch_quantize(call.exec(), label, piece_of(source, first, count), encoded, bytes);
    } else {
      const auto block = rows_from(values, 0, count);
      copy(call.exec(), piece_of(source, first, count), block, Path{}).drop();
      launch_quantize(call.exec(), label, block, encoded, bytes);
    }
    if constexpr (!target_is_near)
      copy(call.exec(), rows_from(records, 0, count), piece_of(target, first, count), Path{}).drop();
  }
}

}  // namespace detail

/// Each row of an 8-bit table = the row of `values`, quantised as rowwise_int8_tensor describes.
///
///   values    rows x width of float, double, half_t or bhalf_t, any memory space
///   table     the extents of `values`, any memory space
///   policies  path  default path::automatic, for data that travels to or from the execution space
///
/// Enqueued on `exec`, in chunks if a side is not in its memory. Through the ring it occupies the calling
/// thread. The operands must live until the work has ended, see ferry::ticket. Throws invalid_argument for
/// shapes that differ.
template <class Exec, class From, class Space, class... Policies>
  requires(detail::Fits<detail::quantize_arguments, const Exec&, const From&, rowwise_int8_tensor<Space>&,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket quantize(
    const Exec& exec, const From& values, rowwise_int8_tensor<Space>& table, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_table_verb<Exec, From, Space, chosen>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto source = make_ref(values);
  const auto codes = detail::codes_of(table);
  detail::require_same_rows("quantize", source, codes);
  detail::launch_context<Exec> call(exec, "quantize");
  if (source.size() != 0) detail::quantize_table<path_policy>(call, source, table);
  return call.finish();
}

/// Codes and scales of each row of a table = those of the row of `values`, encoded as its quantization says.
/// Numbers of double are rounded to float first. Of a quantization with one factor for the table, set
/// the factor before. Shapes, policies, ordering and errors are as above.
template <class Exec, class From, class Q, class Space, class ScaleSpace, class... Policies>
  requires(detail::Fits<detail::quantize_arguments, const Exec&, const From&,
                        quantized_tensor<Q, Space, ScaleSpace>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket quantize(
    const Exec& exec, const From& values, quantized_tensor<Q, Space, ScaleSpace>& table, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_quantized_verb<Exec, From, quantized_tensor<Q, Space, ScaleSpace>, chosen>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto source = make_ref(values);
  detail::require_same_rows("quantize", source, detail::numbers_of(table));
  detail::launch_context<Exec> call(exec, "quantize");
  if (source.size() != 0) detail::quantize_table<path_policy>(call, source, table);
  return call.finish();
}

}  // namespace ferry
