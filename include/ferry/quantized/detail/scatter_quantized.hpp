// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/update_rows.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

/// The parts of scatter for tables of quantized rows: rows are encoded to scratch, and scattered from there.
namespace ferry::detail {

/// The values in memory near the execution space, whose kernels read them twice.
template <class Path, class Exec, class Value, class Space>
auto local_values(launch_context<Exec>& call, const array_ref<Value, Space>& values) {
  if constexpr (is_local<Exec, Space>) {
    require_direct_reach(call.verb(), call.exec(), values);
    call.reads_from(values);
    return values;
  } else {
    using plain = std::remove_const_t<Value>;
    using way = std::conditional_t<in_batch_order<Path>, path::direct, path::automatic>;
    if constexpr (in_batch_order<Path>) require_direct_reach(call.verb(), call.exec(), values);
    const auto flat = piece_of(values, 0, values.rows());
    const auto local_batch = near_rows<plain>(call, values.rows(), values.width(), "values");
    copy(call.exec(), flat, local_batch, way{}).drop();
    return local_batch;
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
  using local_job = replace_job<sum, near_space<Exec>>;
  update_rows<verb::scatter, chosen_policies<path::direct>, Duplicates>(
      row_update{call.exec(), plain_rows(combined), local_job{combined}, row_plan(std::move(at_heads)),
                 values})
      .drop();
  return combined;
}

/// Encodes values to scratch, for the positions that `deciding` names, and calls visit(array, rows) for codes
/// and for scales of the table with the rows that belong to them.
template <class Exec, class Rows, class Visit>
void visit_encoded(launch_context<Exec>& call, const std::string& label, const Rows& table,
                   const auto& values, const kernels::deciding_positions& deciding, const Visit& visit) {
  using Q = typename decltype(table.for_kernels())::quantization;
  const std::int64_t n = values.rows();
  const auto codes = near_rows<typename Rows::value_type>(call, n, table.codes.width(), "codes");
  if constexpr (has_scale_array<Q>) {
    const auto scales = near_rows<typename Q::scale_type>(call, n, table.scales.width(), "scales");
    launch_encode<Q>(call.exec(), label, values, codes, scales, table.tensor_scale, deciding);
    visit(table.codes, codes);
    visit(table.scales, scales);
  } else {
    launch_encode<Q>(call.exec(), label, values, codes, no_scale{}, table.tensor_scale, deciding);
    visit(table.codes, codes);
  }
}
/// Codes and scales are written one after the other, so both must be writable before either changes.
template <class Path, class Exec, class Table>
void require_writable_parts(launch_context<Exec>& call, Table& table) {
  using quantization = typename Table::quantization;
  if constexpr (has_scale_array<quantization>) {
    const auto require = [&]<class T, class Space>(const array_ref<T, Space>& array) {
      using path_policy = part_path<Path, Exec, Space>;
      if constexpr (!path_policy::chosen_at_run_time && !by_host_alone<path_policy>)
        require_direct_reach(call.verb(), call.exec(), array);
      call.require_write_to(array);
    };
    require(make_ref(table.codes()));
    require(make_ref(table.scales()));
  }
}

template <class Chosen, class Exec, class Table, class Named, class Value, class ValueSpace>
ticket scatter_numbers(const Exec& exec, Table& table, const Named& batch,
                       const array_ref<Value, ValueSpace>& values) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::last>;
  constexpr bool by_plan = is_plan<Named>;  // else the caller promised that no row comes twice
  const auto target = numbers_of(table);
  if constexpr (!by_plan && duplicates_policy::needs_plan) {
    return scatter_numbers<Chosen>(exec, table, plan_rows_of<bounds_policy>(exec, batch, target.rows()),
                                   values);
  } else {
    launch_context<Exec> call(exec, "scatter");
    refuse_capture_of_staging<path_policy, typename Table::memory_space, ValueSpace>(call);
    const auto label = label_of("scatter", path_policy::name);
    if constexpr (by_plan) call.use(batch.storage());
    if (values.size() != 0) require_writable_parts<path_policy>(call, table);
    kernels::deciding_positions deciding{};
    if constexpr (by_plan) {
      const plan_storage& store = *batch.storage();
      deciding = {store.inverse, store.segment_begin, store.order,
                  std::is_same_v<duplicates_policy, duplicates::last>};
      // Found here too, so that the ticket names the table's own extents.
      if constexpr (duplicates_policy::forbids) report_repeats(call, label, batch);
    }
    const auto write = [&](const auto& rows) {
      using quantization = typename Table::quantization;
      const auto stored_rows =
          rows_of_codes<quantization>(make_ref(stored(table)), scales_ref(table), table.scale());
      const auto scatter_parts = [&](const auto& targets, auto... policies) {
        visit_encoded(call, label, stored_rows, rows, deciding, [&](const auto& array, const auto& encoded) {
          using part = part_path<path_policy, Exec, typename traits_of<decltype(array)>::memory_space>;
          scatter(exec, array, targets, encoded, policies..., part{}).drop();
        });
      };
      if constexpr (by_plan) {
        using which = std::conditional_t<duplicates_policy::combines, duplicates::first, duplicates_policy>;
        // Rows that are encoded lie at their positions, wherever the values do.
        scatter_parts(batch.storage()->values.rows == nullptr ? batch : row_plan(batch.storage()->base),
                      which{});
      } else {
        scatter_parts(rows_to_write<bounds_policy>(call, batch, target.rows()), duplicates::assume_unique{},
                      bounds::skip{});
      }
    };
    if (values.size() != 0) {
      const auto local_batch = local_values<path_policy>(call, values);
      if constexpr (by_plan && duplicates_policy::combines) {
        write(combined_values<duplicates_policy>(call, label, batch, local_batch));
      } else {
        if constexpr (by_plan) deciding.value_rows = batch.storage()->values.rows;
        write(local_batch);
      }
    } else if constexpr (!by_plan) {
      look_at_bounds<bounds_policy>(call, batch, target.rows());
    }
    return call.finish(target, positions_of(batch), has_signed_indices(batch));
  }
}

}  // namespace ferry::detail
