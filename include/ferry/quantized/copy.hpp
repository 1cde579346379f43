// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/refusals.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

namespace ferry {

/// Codes and scales of `target` = those of another table of the same quantization and extents, as they are;
/// the target gets the factor of the source. Spaces, policies, ordering and errors are those of copy for
/// arrays.
template <class Exec, class Q, class FromSpace, class FromScaleSpace, class ToSpace, class ToScaleSpace,
          class... Policies>
  requires(
      detail::Fits<detail::copy_arguments, const Exec&, const quantized_tensor<Q, FromSpace, FromScaleSpace>&,
                   quantized_tensor<Q, ToSpace, ToScaleSpace>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const quantized_tensor<Q, FromSpace, FromScaleSpace>& source,
    quantized_tensor<Q, ToSpace, ToScaleSpace>& target, Policies... policies) {
  detail::require_same_rows("copy", detail::numbers_of(source), detail::numbers_of(target));
  detail::launch_context<Exec> call(exec, "copy");
  copy(exec, detail::stored(source), detail::stored(target), policies...).drop();
  if constexpr (detail::has_scale_array<Q>) copy(exec, source.scales(), target.scales(), policies...).drop();
  if constexpr (Q::has_tensor_scale) target.set_scale(source.scale());
  return call.finish();
}

}  // namespace ferry
