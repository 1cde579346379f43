// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/gather_quantized.hpp>
#include <ferry/quantized/detail/record_access.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/gather_to.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry {

namespace detail {

/// Converts the records that `rows` names to numbers. One pass if the kernels are near the table and the path
/// allows it; else the ordinary verb gathers the records first, on the user's path.
template <class Path, class Exec, class Space, class Out, class OutSpace>
void gather_records(launch_context<Exec>& call, const std::string& label,
                    const rowwise_int8_tensor<Space>& table, const std::int64_t* rows,
                    const array_ref<Out, OutSpace>& out) {
  const auto bytes = static_cast<std::int64_t>(table.row_bytes());
  if constexpr ((in_batch_order<Path> || Path::chosen_at_run_time) && is_near<Exec, Space>) {
    const auto stored = make_ref(table.records());
    require_direct_reach("gather", call.exec(), stored);
    call.reads_from(stored);
    [[maybe_unused]] const auto traffic = count_transfer<path::direct>(call, stored, out, out.rows() * bytes);
    launch_dequantize(call.exec(), label, stored.data, bytes, out, kernels::listed_rows{rows});
  } else {
    const auto records = near_rows<std::byte>(call, out.rows(), bytes, "records");
    auto named = dense_rows<const std::int64_t, near_space<Exec>>(rows, out.rows(), 1, "rows");
    named.rank = 1;
    gather(call.exec(), table.records(), named, records, record_path<Path, Exec, Space>{}, bounds::skip{})
        .drop();
    launch_dequantize(call.exec(), label, records.data, bytes, out, kernels::masked_identity{rows});
  }
}

/// True if the rows reach `OutSpace` through the ring.
template <class Path, class Exec, class OutSpace>
inline constexpr bool decodes_into_ring =
    !is_near<Exec, OutSpace> &&
    (by_host_alone<Path> || (Path::chosen_at_run_time && std::is_same_v<OutSpace, pageable_space>));

/// True if one kernel gathers and decodes: it is near the table, and the path allows it.
template <class Path, class Exec, class Space, class OutSpace>
inline constexpr bool decodes_in_place =
    (in_batch_order<Path> || Path::chosen_at_run_time) && is_near<Exec, Space> &&
    !decodes_into_ring<Path, Exec, OutSpace>;

template <class Path, class Exec, class Space, class Out, class OutSpace>
void gather_dequantized(launch_context<Exec>& call, const rowwise_int8_tensor<Space>& table,
                        const std::int64_t* rows, const array_ref<Out, OutSpace>& out) {
  const std::string& label = call.label(Path::name);
  if constexpr (decodes_into_ring<Path, Exec, OutSpace>) {
    const std::int64_t n = out.rows();
    const auto batch = near_rows<Out>(call, n, out.width(), "batch");
    gather_records<Path>(call, label, table, rows, batch);
    auto positions = near_rows<std::int64_t>(call, n, 1, "positions");
    positions.rank = 1;
    launch(call.exec(), call.label(Path::name, "positions"), n,
           kernels::list_positions{rows, positions.data});
    gather(call.exec(), batch, positions, out, path::staged{}, bounds::skip{}).drop();
  } else {
    require_direct_reach("gather", call.exec(), out);
    call.writes_to(out);
    gather_records<Path>(call, label, table, rows, out);
  }
}

/// The gather from an 8-bit table that decodes apart from the gather of records.
template <class Path, class Bounds, class Exec, class Space, class Named, class Out, class OutSpace>
ticket gather_apart(const Exec& exec, const rowwise_int8_tensor<Space>& table, const Named& named,
                    const array_ref<Out, OutSpace>& out) {
  const auto codes = codes_of(table);
  launch_context<Exec> call(exec, "gather");
  if constexpr (is_plan<Named>) call.use(named.storage());
  refuse_capture_of_staging<Path, Space, OutSpace>(call);
  if (out.size() != 0) {
    const std::int64_t* rows = nullptr;
    if constexpr (is_plan<Named>)
      rows = named.storage()->row_of;
    else
      rows = listed(call, rows_for_kernels<Bounds>(call, named, codes.rows()), named.rows()).rows;
    gather_dequantized<Path>(call, table, rows, out);
  } else if constexpr (!is_plan<Named>) {
    look_at_bounds<Bounds>(call, named, codes.rows());
  }
  return call.finish(codes, positions_of(named), has_signed_indices(named));
}

}  // namespace detail

/// out[p] = the values of row indices[p] of an 8-bit table, computed in double and rounded once to float,
/// double, half_t or bhalf_t. Indices, policies, ordering and errors are those of gather for any table.
/// Records travel, and the execution space converts them: in the gathering kernel itself if the table is
/// in its memory and the path is direct.
template <class Exec, class Space, class Indices, class Out, class... Policies>
  requires(detail::AnArray<Out>&&
               detail::Fits<detail::gather_arguments, const Exec&, const rowwise_int8_tensor<Space>&,
                            const Indices&, Out, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const rowwise_int8_tensor<Space>& table, const Indices& indices, Out&& out,
    Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  detail::require_quantizable<Out>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto batch = make_ref(out);
  using batch_space = typename decltype(batch)::memory_space;
  const auto& named = detail::rows_named_by(indices);
  detail::require_batch<Exec, chosen>("gather", detail::codes_of(table), named, batch);
  if constexpr (detail::decodes_in_place<path_policy, Exec, Space, batch_space>)
    return detail::run_gather<path::direct, bounds_policy>(
        exec, detail::table_access<rowwise_int8_tensor<Space>>(table, "gather"), named, batch);
  else
    return detail::gather_apart<path_policy, bounds_policy>(exec, table, named, batch);
}

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
