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
#include <ferry/runtime/detail/count_moves.hpp>
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
  using near_job = replace_job<sum, near_space<Exec>>;
  update_rows<verb::scatter, chosen_policies<path::direct>, Duplicates>(
      call.exec(), plain_rows(combined), near_job{combined}, row_plan(std::move(at_heads)), values)
      .drop();
  return combined;
}

/// Encodes values to scratch, for the positions that `deciding` names, and calls visit(array, rows) for
/// each array of the table with the rows that belong to it.
template <class Exec, class Table, class Value, class ValueSpace, class Visit>
void visit_encoded(launch_context<Exec>& call, const std::string& label, Table& table,
                   const array_ref<Value, ValueSpace>& values, const kernels::deciding_positions& deciding,
                   const Visit& visit) {
  using quantization = typename Table::quantization;
  const auto columns = static_cast<std::int64_t>(stored(table).width());
  const auto codes = near_rows<typename quantization::code_type>(call, values.rows(), columns, "codes");
  const auto encode = [&](const auto& scales) {
    float tensor_scale = 1.0f;
    if constexpr (quantization::has_tensor_scale) tensor_scale = table.scale();
    launch_encode<quantization>(call.exec(), label, values, codes, scales, tensor_scale, deciding);
    visit(stored(table), codes);
  };
  if constexpr (has_scale_array<quantization>) {
    const auto scales = near_rows<typename quantization::scale_type>(
        call, values.rows(), static_cast<std::int64_t>(table.blocks()), "scales");
    encode(scales);
    visit(table.scales(), scales);
  } else {
    encode(no_scale{});
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

/// True if the kernel that encodes records writes to the table: it is near the table, and the path allows it.
template <class Path, class Exec, class Table>
inline constexpr bool encodes_in_place =
    Table::quantization::in_records &&
    (in_batch_order<Path> || Path::chosen_at_run_time) && is_near<Exec, typename Table::memory_space>;

/// Encodes values to the table's records, for the positions that `deciding` names.
template <class Exec, class Table, class Value, class ValueSpace>
void encode_in_place(launch_context<Exec>& call, const std::string& label, Table& table,
                     const array_ref<Value, ValueSpace>& values,
                     const kernels::deciding_positions& deciding) {
  const auto records = make_ref(table.records());
  require_direct_reach(call.verb(), call.exec(), records);
  call.touches(records);
  [[maybe_unused]] const auto traffic =
      count_transfer<path::direct>(call, values, records, values.rows() * records.width());
  launch_encode<typename Table::quantization>(call.exec(), label, values, records, no_scale{}, 1.0f,
                                              deciding);
}

template <class Path, class Duplicates, class Exec, class Table, class Value, class ValueSpace>
void scatter_quantized(launch_context<Exec>& call, Table& table, const row_plan& plan,
                       const array_ref<Value, ValueSpace>& values) {
  const auto label = label_of("scatter", Path::name);
  const auto& store = *plan.storage();
  require_writable_parts<Path>(call, table);
  report_writer repeats{};
  if constexpr (Duplicates::forbids)  // found here too, so that the ticket names the table's own extents
    repeats = report_repeats(call, label, plan);
  const auto near_batch = near_values<Path>(call, values);
  kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                       std::is_same_v<Duplicates, duplicates::last>};
  // Rows that are encoded lie at their positions, wherever the values do.
  const row_plan plan_of_positions = store.values.rows == nullptr ? plan : row_plan(store.base);
  using which = std::conditional_t<Duplicates::combines, duplicates::first, Duplicates>;
  const auto scatter_rows = [&](auto& array, const auto& rows) {
    using path_policy = part_path<Path, Exec, typename traits_of<decltype(array)>::memory_space>;
    scatter(call.exec(), array, plan_of_positions, rows, which{}, path_policy{}).drop();
  };
  const auto write = [&](const auto& rows) {
    if constexpr (encodes_in_place<Path, Exec, Table>) {
      deciding.table_rows = store.row_of;
      deciding.findings = store.checked ? store.report->findings : nullptr;
      deciding.repeats = repeats.findings;
      encode_in_place(call, label, table, rows, deciding);
    } else {
      visit_encoded(call, label, table, rows, deciding, scatter_rows);
    }
  };
  if constexpr (Duplicates::combines) {
    write(combined_values<Duplicates>(call, label, plan, near_batch));
  } else {
    deciding.value_rows = store.values.rows;
    write(near_batch);
  }
}

/// Without sorting: the caller promised that no row is named twice.
template <class Path, class Bounds, class Exec, class Table, class Indices, class Value, class ValueSpace>
void scatter_quantized_unsorted(launch_context<Exec>& call, Table& table, const Indices& indices,
                                const array_ref<Value, ValueSpace>& values) {
  const auto label = label_of("scatter", Path::name);
  const auto table_rows = static_cast<std::int64_t>(table.rows());
  require_writable_parts<Path>(call, table);
  const auto index_array = index_ref(indices);
  const auto near_batch = near_values<Path>(call, values);
  if constexpr (encodes_in_place<Path, Exec, Table>) {
    const std::int64_t n = index_array.rows();
    kernels::deciding_positions deciding{};
    deciding.table_rows = listed(call, rows_for_kernels<Bounds>(call, index_array, table_rows), n).rows;
    if constexpr (Bounds::reports) deciding.findings = call.report().findings;
    encode_in_place(call, label, table, near_batch, deciding);
  } else {
    const auto rows = rows_to_write<Bounds>(call, index_array, table_rows);
    visit_encoded(call, label, table, near_batch, {}, [&](auto& array, const auto& encoded) {
      using path_policy = part_path<Path, Exec, typename traits_of<decltype(array)>::memory_space>;
      scatter(call.exec(), array, rows, encoded, duplicates::assume_unique{}, bounds::skip{}, path_policy{})
          .drop();
    });
  }
}

/// scatter by a plan, after its checks. `target`: the table, as checks and messages take it.
template <class Chosen, class Exec, class Table, class Target, class Value, class ValueSpace>
ticket scatter_numbers_by_plan(const Exec& exec, Table& table, const Target& target, const row_plan& plan,
                               const array_ref<Value, ValueSpace>& source) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::last>;
  launch_context<Exec> call(exec, "scatter");
  refuse_capture_of_staging<path_policy, typename Table::memory_space, ValueSpace>(call);
  call.use(plan.storage());
  if (source.size() != 0)
    scatter_quantized<path_policy, duplicates_policy>(call, table, plan, source);
  else if constexpr (duplicates_policy::forbids)
    report_repeats(call, label_of("scatter", path_policy::name), plan);
  return call.finish(target, plan.positions(), plan.storage()->signed_indices);
}

/// The whole verb, but for the checks of its types. `target`: the table, as checks and messages take it.
template <class Chosen, class Exec, class Table, class Target, class Indices, class Value, class ValueSpace>
ticket scatter_numbers(const Exec& exec, Table& table, const Target& target, const Indices& indices,
                       const array_ref<Value, ValueSpace>& source) {
  using path_policy = typename Chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using duplicates_policy = typename Chosen::template get<duplicates_category, duplicates::last>;
  using space = typename Table::memory_space;
  static_assert(
      !in_any_order<duplicates_policy>,
      "ferry: duplicates::sum_any_order adds to rows where they lie, which scatter_add and step do; scatter replaces rows, so it takes duplicates::sum.");
  if constexpr (is_plan<Indices>) {
    require_plan<Exec, Chosen>("scatter", indices, target);
    require_shapes("scatter", target, indices.positions(), source);
    return scatter_numbers_by_plan<Chosen>(exec, table, target, indices, source);
  } else {
    const auto index_array = index_ref(indices);
    require_rank_one("scatter", index_array);
    require_shapes("scatter", target, index_array.rows(), source);
    require_a_row_to_clamp_to<bounds_policy>("scatter", target, index_array.rows());
    if constexpr (duplicates_policy::needs_plan) {
      return scatter_numbers_by_plan<Chosen>(
          exec, table, target, plan_rows_of<bounds_policy>(exec, index_array, target.rows()), source);
    } else {
      launch_context<Exec> call(exec, "scatter");
      refuse_capture_of_staging<path_policy, space, ValueSpace>(call);
      if (source.size() != 0)
        scatter_quantized_unsorted<path_policy, bounds_policy>(call, table, indices, source);
      else
        look_at_bounds<bounds_policy>(call, index_array, target.rows());
      return call.finish(target, index_array.rows(),
                         std::is_signed_v<std::remove_const_t<typename decltype(index_array)::value_type>>);
    }
  }
}

}  // namespace ferry::detail
