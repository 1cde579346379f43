// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>

namespace ferry {

/// Row indices[p] of a table of quantized rows = values[p], encoded as its quantization says. A row is
/// replaced as a whole, so its blocks get new scales; a factor of the table stays. Indices, policies,
/// ordering and errors are those of scatter for any table; duplicates::sum and duplicates::mean combine in
/// the accumulation type, before rows are encoded once. A batch with bad indices leaves the table unchanged.
/// The execution space encodes, and codes and scales travel. Records are encoded where they lie if the table
/// is in its memory and the path is direct.
template <class Exec, class Q, class Space, class ScaleSpace, class Indices, class Values, class... Policies>
  requires(detail::Fits<detail::scatter_arguments, const Exec&, quantized_tensor<Q, Space, ScaleSpace>&,
                        const Indices&, const Values&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter(
    const Exec& exec, quantized_tensor<Q, Space, ScaleSpace>& table, const Indices& indices,
    const Values& values, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, Values, chosen, true>();
  detail::require_reach<Exec, tensor<std::byte, ScaleSpace>>();
  detail::require_quantizable<Values>();
  return detail::scatter_numbers<chosen>(exec, table, detail::numbers_of(table), indices, make_ref(values));
}

}  // namespace ferry
