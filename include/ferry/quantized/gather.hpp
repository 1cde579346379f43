// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// The parts of gather for tables of quantized rows.
namespace ferry::detail {

/// The row of each position, -1 for none, as an array of rank 1. Findings go to the ticket.
template <class Bounds, class Exec, class Named>
array_ref<const std::int64_t, near_space<Exec>> named_rows(launch_context<Exec>& call, const Named& named,
                                                           std::int64_t table_rows) {
  const std::int64_t n = positions_of(named);
  const std::int64_t* rows = nullptr;
  if constexpr (is_plan<Named>)
    rows = named.storage()->row_of;
  else
    rows = listed(call, rows_for_kernels<Bounds>(call, named, table_rows), n).rows;
  auto list = dense_rows<const std::int64_t, near_space<Exec>>(rows, n, 1, "rows");
  list.rank = 1;
  return list;
}

/// Gathers rows of an array to scratch, on the user's path.
template <class Path, class T, class Exec, class Array, class Rows>
auto rows_to_scratch(launch_context<Exec>& call, const Array& array, const Rows& rows, const char* label) {
  using path_policy = part_path<Path, Exec, typename traits_of<Array>::memory_space>;
  const auto scratch = near_rows<T>(call, rows.rows(), static_cast<std::int64_t>(array.width()), label);
  gather(call.exec(), array, rows, scratch, path_policy{}, bounds::skip{}).drop();
  return scratch;
}

/// The gather that decodes apart from the gathers of codes and scales.
template <class Path, class Bounds, class Exec, class Q, class Space, class ScaleSpace, class Named,
          class Out, class OutSpace>
ticket gather_and_decode(const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table,
                         const Named& named, const array_ref<Out, OutSpace>& out) {
  const auto numbers = numbers_of(table);
  launch_context<Exec> call(exec, "gather");
  if constexpr (is_plan<Named>) call.use(named.storage());
  refuse_capture_of_staging<Path, Space, ScaleSpace, OutSpace>(call);
  if (out.size() != 0) {
    const std::int64_t n = out.rows();
    const auto rows = named_rows<Bounds>(call, named, numbers.rows());
    const std::string& label = call.label(Path::name);
    auto codes = rows_to_scratch<Path, typename Q::code_type>(call, stored(table), rows, "codes");
    if constexpr (Q::in_records) codes.extents[1] = out.width();
    const auto decode = [&](const auto& scales) {
      const auto coded = rows_of_codes<Q>(codes, scales, table.scale());
      const kernels::masked_identity source{rows.data};
      if constexpr (is_read_in_place<Path, Exec, OutSpace>) {
        require_direct_reach("gather", call.exec(), out);
        call.writes_to(out);
        launch_gather(call.exec(), label, coded, out, source, n);
      } else {
        const auto batch = near_rows<Out>(call, n, out.width(), "batch");
        launch_gather(call.exec(), label, coded, batch, source, n);
        auto positions = near_rows<std::int64_t>(call, n, 1, "positions");
        positions.rank = 1;
        launch(call.exec(), call.label(Path::name, "positions"), n,
               kernels::list_positions{rows.data, positions.data});
        gather(call.exec(), batch, positions, out, path::staged{}, bounds::skip{}).drop();
      }
    };
    if constexpr (has_scale_array<Q>)
      decode(rows_to_scratch<Path, typename Q::scale_type>(call, table.scales(), rows, "scales"));
    else
      decode(no_scale{});
  } else if constexpr (!is_plan<Named>) {
    look_at_bounds<Bounds>(call, named, numbers.rows());
  }
  return call.finish(numbers, positions_of(named), has_signed_indices(named));
}

/// Rows of codes and scales as they are, into a table of the same quantization.
template <class Path, class Bounds, class Exec, class Q, class Space, class ScaleSpace, class Named,
          class Batch>
ticket gather_codes(const Exec& exec, const quantized_tensor<Q, Space, ScaleSpace>& table, const Named& named,
                    Batch& batch) {
  const auto numbers = numbers_of(table);
  launch_context<Exec> call(exec, "gather");
  if constexpr (is_plan<Named>) call.use(named.storage());
  refuse_capture_of_staging<Path, Space, ScaleSpace, typename Batch::memory_space,
                            typename Batch::scale_space>(call);
  if (batch.size() != 0) {
    const auto rows = named_rows<Bounds>(call, named, numbers.rows());
    gather(call.exec(), table.codes(), rows, batch.codes(), Path{}, bounds::skip{}).drop();
    if constexpr (has_scales<Q>)
      gather(call.exec(), table.scales(), rows, batch.scales(), path::automatic{}, bounds::skip{}).drop();
  } else if constexpr (!is_plan<Named>) {
    look_at_bounds<Bounds>(call, named, numbers.rows());
  }
  if constexpr (Q::has_tensor_scale) batch.set_scale(table.scale());
  return call.finish(numbers, positions_of(named), has_signed_indices(named));
}

}  // namespace ferry::detail

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
