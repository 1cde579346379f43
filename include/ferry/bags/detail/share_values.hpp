// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The kernels that hand the gradients of bags to positions, without a gradient for each of them.
namespace ferry::kernels {

/// Reports the bags of a step with bad offsets. Here every position must be in a bag, because its row gets a
/// step. Takes over what the making of the plan found. One thread per bag.
template <class Offset>
struct check_step_bags {
  bag_list<Offset> bags;
  const ferry::detail::index_report* earlier;  ///< null: indices were not checked

  static std::int64_t bytes_each() { return 2 * sizeof(Offset); }

  KOKKOS_FUNCTION void operator()(std::int64_t bag) const {
    if (bag == 0 && earlier != nullptr && earlier->out_of_range != 0) {
      bags.report.out_of_range(static_cast<std::int64_t>(earlier->first_position), earlier->first_index,
                               static_cast<std::int64_t>(earlier->first_bag));
      Kokkos::atomic_add(&bags.report.findings->out_of_range, earlier->out_of_range - 1);
    }
    if (bag >= bags.bags || !bags.checks || bags.offsets == nullptr) return;
    if (!bags.range(bag, true).is_good) return;
    if (bag == 0 && bags.begin(0) != 0)
      bags.report_offset(0, bags.begin(0), ferry::detail::offset_fault::late);
    else if (bag + 1 == bags.bags && bags.end(bag) != bags.positions)
      bags.report_offset(bags.bags, bags.end(bag), ferry::detail::offset_fault::early);
  }
};

/// The tables of a list of bags: those of table t are the bags from t * batch on, and its part of their rows
/// begins at column first_column[t].
struct tables_of_bags {
  const std::int64_t* first_column = nullptr;  ///< null: there is one table
  std::int64_t tables = 1;
  detail::fast_divisor batch{};

  /// The row of a batch that a bag has a part of.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t row_of(std::int64_t bag) const {
    return first_column == nullptr ? bag : bag - batch.quotient(bag) * batch.divisor();
  }
  /// The bag whose part of a row has the column.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t bag_of(std::int64_t row, std::int64_t column) const {
    if (first_column == nullptr) return row;
    return last_that(0, tables, [&](std::int64_t i) { return first_column[i] <= column; }) * batch.divisor() +
           row;
  }
};

/// rows[p] = the row of the gradient of position p, which is its bag. One thread per position: neighbours
/// search the offsets along the same path, those of a plan's order would not.
template <class Offset>
struct find_bags_of_positions {
  bag_list<Offset> bags;
  tables_of_bags tables;
  std::int64_t* rows;

  static std::int64_t bytes_each() { return 2 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t position) const {
    rows[position] = tables.row_of(bags.bag_of(position));
  }
};

/// For each entry of the order of a plan: the row of its gradient, and the factor of the gradient there: the
/// weight of the position, over the number of the bag's rows if `divides`. One thread per entry. `Weight` is
/// void if positions have no weights.
template <class Offset, class Weight>
struct share_bags {
  bag_list<Offset> bags;
  const std::int64_t* order;
  const std::int64_t* rows_of_positions;  ///< see find_bags_of_positions
  const Weight* weights;
  const std::int64_t* sizes;  ///< see bag_row_counts; null: each position has a row
  bool divides;               ///< bags of one table
  std::int64_t* rows;
  double* factors;  ///< null: all of them are 1

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t entry) const {
    const std::int64_t position = order[entry], bag = rows_of_positions[position];
    rows[entry] = bag;
    if (factors == nullptr) return;
    double factor = 1.0;
    if constexpr (!std::is_void_v<Weight>) factor = convert<double>(weights[position]);
    if (divides) {
      const bag_range range = bags.range(bag, false);
      const std::int64_t size = sizes != nullptr ? sizes[bag] : range.end - range.begin;
      factor = size > 0 ? factor / static_cast<double>(size) : 0.0;
    }
    factors[entry] = factor;
  }
};

/// scaled[b] = gradient of bag b divided by the number of its rows, in the columns of its table. One thread
/// per element, row-major.
template <class Compute, class Out, class Offset, class Value>
struct divide_by_sizes {
  bag_list<Offset> bags;
  const std::int64_t* sizes;  ///< see bag_row_counts; null: each position has a row
  const Value* values;
  std::int64_t stride;
  Out* scaled;
  detail::fast_divisor width;
  tables_of_bags tables{};

  static std::int64_t bytes_each() { return sizeof(Value) + sizeof(Out); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const std::int64_t column = i - row * width.divisor();
    const std::int64_t bag = tables.bag_of(row, column);
    const bag_range range = bags.range(bag, false);
    const std::int64_t rows = sizes != nullptr ? sizes[bag] : range.end - range.begin;
    const auto value = convert<Compute>(values[row * stride + column]);
    scaled[i] = convert<Out>(rows > 0 ? value / static_cast<Compute>(rows) : Compute(0));
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Launches both kernels for the order of a plan. Weighs: `extra` has the weights of positions.
template <bool Weighs, class Exec, class Offset, class Extra>
void launch_shares(launch_context<Exec>& call, const std::string& label, const plan_storage& plan,
                   const kernels::bag_list<Offset>& bags, const kernels::tables_of_bags& tables,
                   [[maybe_unused]] const Extra& extra, const std::int64_t* sizes, bool divides,
                   std::int64_t* rows, double* factors) {
  using weight = std::conditional_t<Weighs, std::remove_const_t<typename Extra::value_type>, void>;
  auto* const rows_of_positions = call.template scratch<std::int64_t>(plan.positions);
  const weight* weights = nullptr;
  if constexpr (Weighs) weights = indices_for_kernels(call, extra);
  launch(call.exec(), call.label_part(label, "find"), plan.positions,
         kernels::find_bags_of_positions<Offset>{bags, tables, rows_of_positions});
  launch(call.exec(), call.label_part(label, "place"), plan.positions,
         kernels::share_bags<Offset, weight>{bags, plan.order, rows_of_positions, weights, sizes, divides,
                                             rows, factors});
}

}  // namespace ferry::detail
