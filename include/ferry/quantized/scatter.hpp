// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The values in memory near the execution space, whose kernels read them twice.
template <class Path, class Exec, class Value, class Space>
auto near_values(launch_context<Exec>& call, const array_ref<Value, Space>& values) {
  if constexpr (is_near<Exec, Space>) {
    require_direct_reach(call.verb(), call.exec(), values);
    call.reads_from(values);
    return values;
  } else {
    using plain = std::remove_const_t<Value>;
    using way = std::conditional_t<in_batch_order<Path>, path::direct, path::automatic>;
    if constexpr (in_batch_order<Path>) require_direct_reach(call.verb(), call.exec(), values);
    const auto flat = piece_of(values, 0, values.rows());
    const auto near_batch = near_rows<plain>(call, values.rows(), values.width(), "values");
    copy(call.exec(), flat, near_batch, way{}).drop();
    return near_batch;
  }
}

/// The combined values of each row, at the first position that names the row: the result of an ordinary
/// scatter to a table with one row per position.
template <class Duplicates, class Exec, class Value, class Space>
auto combined_values(launch_context<Exec>& call, const std::string& label, const row_plan& plan,
                     const array_ref<Value, Space>& values) {
  using sum = accumulation_t<Value>;
  const std::int64_t n = plan.positions();
  const auto combined = near_rows<sum>(call, n, values.width(), "combined");
  auto* heads = call.template scratch<std::int64_t>(n);
  auto at_heads = std::make_shared<plan_storage>(*plan.storage());
  launch(call.exec(), label + "::heads", n,
         kernels::list_heads{at_heads->segment_begin, at_heads->order, at_heads->unique_count, heads});
  at_heads->rows = n;
  at_heads->unique_rows = heads;
  at_heads->sorted_rows = nullptr;
  at_heads->run_begin = nullptr;
  at_heads->run_count = nullptr;
  scatter(call.exec(), combined, row_plan(std::move(at_heads)), values, Duplicates{}, path::direct{}).drop();
  return combined;
}

template <class Path, class Duplicates, class Exec, class Space, class Value, class ValueSpace>
void scatter_quantized(launch_context<Exec>& call, rowwise_int8_tensor<Space>& table, const row_plan& plan,
                       const array_ref<Value, ValueSpace>& values) {
  const auto label = label_of("scatter", Path::name);
  const auto bytes = static_cast<std::int64_t>(table.row_bytes());
  const auto& store = *plan.storage();
  if constexpr (Duplicates::forbids)  // found here too, so that the ticket names the table's own extents
    report_repeats(call, label, plan);
  const auto near_batch = near_values<Path>(call, values);
  const auto records = near_rows<std::byte>(call, plan.positions(), bytes, "records");
  const kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                             std::is_same_v<Duplicates, duplicates::last>};
  if constexpr (Duplicates::combines)
    launch_quantize(call.exec(), label, combined_values<Duplicates>(call, label, plan, near_batch),
                    records.data, bytes, deciding);
  else
    launch_quantize(call.exec(), label, near_batch, records.data, bytes, deciding);
  using which = std::conditional_t<Duplicates::combines, duplicates::first, Duplicates>;
  scatter(call.exec(), table.records(), plan, records, which{}, record_path<Path, Exec, Space>{}).drop();
}

/// Without sorting: the caller promised that no row is named twice.
template <class Path, class Bounds, class Exec, class Space, class Indices, class Value, class ValueSpace>
void scatter_quantized_unsorted(launch_context<Exec>& call, rowwise_int8_tensor<Space>& table,
                                const Indices& indices, const array_ref<Value, ValueSpace>& values) {
  const auto label = label_of("scatter", Path::name);
  const auto bytes = static_cast<std::int64_t>(table.row_bytes());
  const auto index_array = index_ref(indices);
  if constexpr (Bounds::reports) {  // found here too, so that the ticket names the table's own extents
    using plain = std::remove_const_t<typename decltype(index_array)::value_type>;
    const kernels::index_rows<plain, Bounds> source{indices_for_kernels(call, index_array),
                                                    static_cast<std::int64_t>(table.rows()), call.report()};
    launch(call.exec(), label + "::validate", index_array.rows(),
           kernels::resolve_indices<plain, Bounds>{source, nullptr, nullptr, nullptr});
  }
  const auto near_batch = near_values<Path>(call, values);
  const auto records = near_rows<std::byte>(call, index_array.rows(), bytes, "records");
  launch_quantize(call.exec(), label, near_batch, records.data, bytes);
  scatter(call.exec(), table.records(), indices, records, duplicates::assume_unique{}, Bounds{},
          record_path<Path, Exec, Space>{})
      .drop();
}

}  // namespace detail

/// Row indices[p] of an 8-bit table = values[p], quantised. A row is replaced as a whole, so it gets a new
/// scale and offset. Indices, policies, ordering and errors are those of scatter for any table;
/// duplicates::sum and duplicates::mean combine in the accumulation type, before the one quantisation. A
/// batch with bad indices leaves the table unchanged. The execution space quantises, and records travel.
template <class Exec, class Space, class Indices, class Values, class... Policies>
  requires(detail::Fits<detail::scatter_arguments, const Exec&, rowwise_int8_tensor<Space>&, const Indices&,
                        const Values&, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket scatter(
    const Exec& exec, rowwise_int8_tensor<Space>& table, const Indices& indices, const Values& values,
    Policies...) {
  using chosen = detail::chosen_policies<Policies...>;
  detail::require_row_verb<Exec, tensor<std::byte, Space>, Indices, Values, chosen, true>();
  detail::require_quantizable<Values>();
  using path_policy = typename chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename chosen::template get<duplicates_category, duplicates::last>;
  static_assert(
      !detail::in_any_order<duplicates_policy>,
      "ferry: duplicates::sum_any_order adds to rows where they lie, which scatter_add and step do; scatter replaces rows, so it takes duplicates::sum.");
  const auto target = detail::codes_of(table);
  const auto source = make_ref(values);
  const auto by_plan = [&](const row_plan& plan) {
    detail::launch_context<Exec> call(exec, "scatter");
    detail::refuse_capture_of_staging<path_policy, Space, typename decltype(source)::memory_space>(call);
    call.use(plan.storage());
    if (source.size() != 0)
      detail::scatter_quantized<path_policy, duplicates_policy>(call, table, plan, source);
    else if constexpr (duplicates_policy::forbids)
      detail::report_repeats(call, detail::label_of("scatter", path_policy::name), plan);
    return call.finish(target, plan.positions(), plan.storage()->signed_indices);
  };
  if constexpr (detail::is_plan<Indices>) {
    detail::require_plan<Exec, chosen>("scatter", indices, target);
    detail::require_shapes("scatter", target, indices.positions(), source);
    return by_plan(indices);
  } else {
    const auto index_array = detail::index_ref(indices);
    detail::require_rank_one("scatter", index_array);
    detail::require_shapes("scatter", target, index_array.rows(), source);
    detail::require_a_row_to_clamp_to<bounds_policy>("scatter", target, index_array.rows());
    if constexpr (duplicates_policy::needs_plan) {
      return by_plan(detail::plan_rows_of<bounds_policy>(exec, index_array, target.rows()));
    } else {
      detail::launch_context<Exec> call(exec, "scatter");
      detail::refuse_capture_of_staging<path_policy, Space, typename decltype(source)::memory_space>(call);
      if (source.size() != 0)
        detail::scatter_quantized_unsorted<path_policy, bounds_policy>(call, table, indices, source);
      else
        detail::look_at_bounds<bounds_policy>(call, index_array, target.rows());
      return call.finish(target, index_array.rows(),
                         std::is_signed_v<std::remove_const_t<typename decltype(index_array)::value_type>>);
    }
  }
}

}  // namespace ferry
