// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/whole_table.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

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
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket quantize(
    const Exec& exec, const From& values, quantized_tensor<Q, Space, ScaleSpace>& table, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_whole_table_verb<Exec, From, quantized_tensor<Q, Space, ScaleSpace>, chosen>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  const auto source = make_ref(values);
  detail::require_same_rows("quantize", source, detail::numbers_of(table));
  detail::launch_context<Exec> call(exec, "quantize");
  if (source.size() != 0) detail::quantize_table<path_policy>(call, source, table);
  return call.finish();
}

}  // namespace ferry
