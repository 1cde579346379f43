// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/whole_table.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

namespace ferry {

/// out = the values of a table of quantized rows, decoded as its quantization says and rounded once. Shapes,
/// policies, ordering and errors are those of quantize.
template <class Exec, class Q, class Space, class ScaleSpace, class To, class... Policies>
  requires(detail::Fits<detail::dequantize_arguments, const Exec&,
                        const quantized_tensor<Q, Space, ScaleSpace>&, To, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket dequantize(
    const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table, To&& out, Policies...) {
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
