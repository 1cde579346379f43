// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/gather_quantized.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>

#include <cstddef>
#include <type_traits>

namespace ferry {

/// out[p] = the values of row indices[p] of a table of quantized rows, decoded as its quantization says and
/// rounded once to float, double, half_t or bhalf_t.
///
///   exec      the execution space instance that the work is enqueued on
///   table     rows x width numbers; codes and scales in any memory spaces
///   indices   rank-1 array of int32, uint32, int64 or uint64, or a row_plan
///   out       one row of `width` numbers per index, any memory space
///   policies  path    default path::automatic
///             bounds  default bounds::check; a plan has its own
///
/// On path::direct and path::ordered one kernel reads codes and scales where they lie, decodes, and finds bad
/// indices; path::automatic is path::direct unless memory of one side is pageable and `exec` is a device's.
/// Otherwise codes and scales are gathered first. Ordering and errors are those of gather for any table.
template <class Exec, class Q, class Space, class ScaleSpace, class Indices, class Out, class... Policies>
  requires(detail::AnArray<Out>&&
               detail::Fits<detail::gather_arguments, const Exec&,
                            const quantized_tensor<Q, Space, ScaleSpace>&, const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table, const Indices& indices, Out&& out,
    Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  using access_type = detail::table_access<quantized_tensor<Q, Space, ScaleSpace>>;
  detail::require_row_verb<Exec, typename access_type::checked, Indices, Out, chosen, false>();
  access_type::template require<Exec, chosen, true>();
  detail::require_output<Out>();
  detail::require_quantizable<Out>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto batch = make_ref(out);
  const access_type access(table, "gather");
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather", access.table(), named, batch);
  if constexpr (detail::decodes_at_once<path_policy, Exec, typename decltype(batch)::memory_space, Space,
                                        ScaleSpace>) {
    using way = std::conditional_t<path_policy::chosen_at_run_time, path::direct, path_policy>;
    return detail::run_gather<way, bounds_policy>(exec, access, named, batch);
  } else {
    return detail::gather_and_decode<path_policy, bounds_policy>(exec, table, named, batch);
  }
}

/// Codes and scales of row p of `batch` = those of row indices[p] of a table of the same quantization, as
/// they are; the batch gets the table's factor. Rows of the batch have the table's width. Indices, policies,
/// ordering and errors are those of gather for any table.
template <class Exec, class Q, class Space, class ScaleSpace, class Indices, class BatchSpace,
          class BatchScaleSpace, class... Policies>
  requires(!Q::in_records &&
           detail::Fits<detail::gather_arguments, const Exec&, const quantized_tensor<Q, Space, ScaleSpace>&,
                        const Indices&, quantized_tensor<Q, BatchSpace, BatchScaleSpace>&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table, const Indices& indices,
    quantized_tensor<Q, BatchSpace, BatchScaleSpace>& batch, Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, tensor<std::byte, BatchSpace>, chosen,
                           false>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather", detail::numbers_of(table), named, detail::numbers_of(batch));
  return detail::gather_codes<path_policy, bounds_policy>(exec, table, named, batch);
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

}  // namespace ferry
