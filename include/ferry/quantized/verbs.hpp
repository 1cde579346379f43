// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/refusals.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry {

// gather from a table of quantized rows into an array of float, double, half_t or bhalf_t is that of any
// table: its values are decoded as its quantization says and rounded once. On path::direct and path::ordered
// one kernel reads codes and scales where they lie, decodes, and finds bad indices; path::automatic is
// path::direct unless memory of one side is pageable and the instance a device's. Otherwise codes and scales
// are gathered first.

/// Codes and scales of row p of `batch` = those of row indices[p] of a table of the same quantization, as
/// they are; the batch gets the table's factor. Rows of the batch have the table's width. Indices, policies,
/// ordering and errors are those of gather for any table.
template <class Exec, class Q, class Space, class ScaleSpace, class Indices, class BatchSpace,
          class BatchScaleSpace, class... Policies>
  requires(!Q::in_records &&
           detail::Fits<detail::gather_arguments, const Exec&, const quantized_tensor<Q, Space, ScaleSpace>&,
                        const Indices&, quantized_tensor<Q, BatchSpace, BatchScaleSpace>&, Policies...>)
[[nodiscard]] ticket gather(const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table,
                            const Indices& indices, quantized_tensor<Q, BatchSpace, BatchScaleSpace>& batch,
                            Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, tensor<std::byte, BatchSpace>, chosen,
                           false>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto numbers = detail::numbers_of(table);
  const auto& selection = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather", numbers, selection, detail::numbers_of(batch));
  detail::launch_context<Exec> call(exec, "gather");
  if constexpr (detail::is_plan<Indices>) call.use(selection.storage());
  detail::refuse_capture_of_staging<path_policy, Space, ScaleSpace, BatchSpace, BatchScaleSpace>(call);
  if (batch.size() != 0) {
    const auto rows = detail::resolved_rows<bounds_policy>(call, selection, numbers.rows());
    gather(exec, table.codes(), rows, batch.codes(), path_policy{}, bounds::skip{}).drop();
    if constexpr (has_scales<Q>)
      gather(exec, table.scales(), rows, batch.scales(), path::automatic{}, bounds::skip{}).drop();
  } else if constexpr (!detail::is_plan<Indices>) {
    detail::look_at_bounds<bounds_policy>(call, selection, numbers.rows());
  }
  if constexpr (Q::has_tensor_scale) batch.set_scale(table.scale());
  return call.finish(numbers, detail::positions_of(selection), detail::has_signed_indices(selection));
}

/// Refuses a batch of another quantization, and one of records. Does not compile.
template <class Exec, class Table, class Indices, class Q, class Space, class ScaleSpace, class... Policies>
  requires(detail::Fits<detail::gather_arguments, const Exec&, const Table&, const Indices&,
                        quantized_tensor<Q, Space, ScaleSpace>&, Policies...>)
ticket gather(const Exec&, const Table&, const Indices&, quantized_tensor<Q, Space, ScaleSpace>&,
              Policies...) {
  static_assert(
      sizeof(Table) == 0,
      "ferry: gather into a quantized_tensor copies codes and scales as they are, from a quantized_tensor of its quantization with scales in an array; into an array of numbers it decodes rows.");
  return {};
}

// scatter to a table of quantized rows: row indices[p] = values[p], encoded as its quantization says. A row
// is replaced as a whole, so its blocks get new scales; a factor of the table stays. Arguments and errors
// are those of scatter for any table; duplicates::sum and duplicates::mean combine in the accumulation type,
// before rows are encoded once. A batch with bad indices leaves the table unchanged. The execution space
// encodes, and codes and scales travel.

/// Codes and scales of `target` = those of another table of the same quantization and extents, as they are;
/// the target gets the factor of the source. Spaces, policies, ordering and errors are those of copy for
/// arrays.
template <class Exec, class Q, class FromSpace, class FromScaleSpace, class ToSpace, class ToScaleSpace,
          class... Policies>
  requires(
      detail::Fits<detail::copy_arguments, const Exec&, const quantized_tensor<Q, FromSpace, FromScaleSpace>&,
                   quantized_tensor<Q, ToSpace, ToScaleSpace>&, Policies...>)
[[nodiscard]] ticket copy(const Exec& exec, const quantized_tensor<Q, FromSpace, FromScaleSpace>& source,
                          quantized_tensor<Q, ToSpace, ToScaleSpace>& target, Policies... policies) {
  detail::require_same_rows("copy", detail::numbers_of(source), detail::numbers_of(target));
  detail::launch_context<Exec> call(exec, "copy");
  copy(exec, detail::stored(source), detail::stored(target), policies...).drop();
  if constexpr (detail::has_scale_array<Q>) copy(exec, source.scales(), target.scales(), policies...).drop();
  if constexpr (Q::has_tensor_scale) target.set_scale(source.scale());
  return call.finish();
}

}  // namespace ferry
