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

template <class Path, class Exec, class Space, class Out, class OutSpace>
void dequantize_table(launch_context<Exec>& call, const rowwise_int8_tensor<Space>& table,
                      const array_ref<Out, OutSpace>& target) {
  constexpr bool source_is_near = is_near<Exec, Space>;
  constexpr bool target_is_near = is_near<Exec, OutSpace>;
  const auto label = label_of("dequantize", Path::name);
  const auto source = make_ref(table.records());
  const auto bytes = source.width();
  // Copies order themselves; only arrays that the kernels access directly need ordering here.
  if constexpr (source_is_near) {
    require_direct_reach("dequantize", call.exec(), source);
    call.reads_from(source);
  }
  if constexpr (target_is_near) {
    require_direct_reach("dequantize", call.exec(), target);
    call.writes_to(target);
  }
  const std::int64_t wide = target.width();
  const std::int64_t chunk =
      rows_per_chunk < !source_is_near ||
      !target_is_near > (target.rows(), wide * static_cast<std::int64_t>(sizeof(Out)) + bytes);
  array_ref<std::byte, near_space<Exec>> records;
  array_ref<Out, near_space<Exec>> values;
  if constexpr (!source_is_near) records = near_rows<std::byte>(call, chunk, bytes, "records");
  if constexpr (!target_is_near) values = near_rows<Out>(call, chunk, wide, "values");
  for (std::int64_t first = 0; first < target.rows(); first += chunk) {
    const std::int64_t count = std::min(chunk, target.rows() - first);
    const std::byte* stored = source_is_near ? source.data + first * bytes : records.data;
    if constexpr (!source_is_near)
      copy(call.exec(), piece_of(source, first, count), rows_from(records, 0, count), Path{}).drop();
    if constexpr (target_is_near) {
      launch_dequantize(call.exec(), label, stored, bytes, piece_of(target, first, count),
                        kernels::identity{});
    } else {
      const auto block = rows_from(values, 0, count);
      launch_dequantize(call.exec(), label, stored, bytes, block, kernels::identity{});
      copy(call.exec(), block, piece_of(target, first, count), Path{}).drop();
    }
  }
}

}  // namespace detail

/// out = the values of an 8-bit table, computed in double and rounded once to float, double, half_t or
/// bhalf_t. Shapes, policies, ordering and errors are those of quantize.
template <class Exec, class Space, class To, class... Policies>
  requires(detail::Fits<detail::dequantize_arguments, const Exec&, const rowwise_int8_tensor<Space>&, To,
                        Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket dequantize(
    const Exec& exec, const rowwise_int8_tensor<Space>& table, To&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_table_verb<Exec, To, Space, chosen>();
  detail::require_output<To>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto codes = detail::codes_of(table);
  const auto sink = make_ref(out);
  detail::require_same_rows("dequantize", codes, sink);
  detail::launch_context<Exec> call(exec, "dequantize");
  if (sink.size() != 0) detail::dequantize_table<path_policy>(call, table, sink);
  return call.finish();
}

/// out = the values of a table of quantized rows, decoded as its quantization says and rounded once. Shapes,
/// policies, ordering and errors are those of quantize.
template <class Exec, class Q, class Space, class ScaleSpace, class To, class... Policies>
  requires(detail::Fits<detail::dequantize_arguments, const Exec&,
                        const quantized_tensor<Q, Space, ScaleSpace>&, To, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket dequantize(
    const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table, To&& out, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_quantized_verb<Exec, To, quantized_tensor<Q, Space, ScaleSpace>, chosen>();
  detail::require_output<To>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto sink = make_ref(out);
  detail::require_same_rows("dequantize", detail::numbers_of(table), sink);
  detail::launch_context<Exec> call(exec, "dequantize");
  if (sink.size() != 0) detail::dequantize_table<path_policy>(call, table, sink);
  return call.finish();
}

}  // namespace ferry
