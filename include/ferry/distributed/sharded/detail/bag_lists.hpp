// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// out[k] = the row of the gradients that position place[k] gets, keys[k] = its bag unless it is null,
/// factors[k] = its weight, numbers[k] = k unless it is null. One thread for each item. `Weight` is void if
/// positions have no weights.
template <class Offset, class Weight>
struct find_bags {
  bag_list<Offset> bags;
  const std::int64_t* place;
  const Weight* weights;
  std::int64_t* out;
  double* factors;
  std::int64_t* numbers;
  std::int64_t* keys;
  tables_of_bags tables{};

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t k) const {
    const std::int64_t bag = bags.bag_of(place[k]);
    out[k] = tables.row_of(bag);
    if (keys != nullptr) keys[k] = bag;
    if constexpr (!std::is_void_v<Weight>) factors[k] = convert<double>(weights[place[k]]);
    if (numbers != nullptr) numbers[k] = k;
  }
};

/// shares[k][c] = the gradient of the item's bag in column c, or 0 if another position has the maximum. One
/// thread for each element, row-major.
template <class Value, class Chosen>
struct share_maxima {
  const std::int64_t* place;  ///< the position of each item
  const std::int64_t* bags;   ///< the bag of each item
  const Value* grads;
  std::int64_t stride;
  const Chosen* chosen;
  std::int64_t chosen_stride;
  Value* shares;
  detail::fast_divisor width;

  static std::int64_t bytes_each() { return 2 * sizeof(Value) + sizeof(Chosen); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = width.quotient(i);
    const std::int64_t column = i - item * width.divisor(), bag = bags[item];
    const auto position = static_cast<std::int64_t>(chosen[bag * chosen_stride + column]);
    shares[i] = position == place[item] ? grads[bag * stride + column] : convert<Value>(0.0f);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The bags of a batch for the owners of its rows: the gradient of a position is that of its bag.
template <class Compute, class Payload>
struct bag_lists {
  std::shared_ptr<void> memory{};
  const std::int64_t* bags = nullptr;     ///< [items] the row of the gradients of each item of the route
  const double* factors = nullptr;        ///< [items] the weight of each item; null: 1
  const std::int64_t* numbers = nullptr;  ///< [items] the number of each item, if the pooling selects
  const std::int64_t* keys = nullptr;     ///< [items] the bag of each item
  tensor<Compute, Payload> divided{};     ///< the gradients divided by the sizes of the bags, if it divides
  index_report report{};                  ///< of the offsets
};

/// Makes such lists by kernels, and checks the offsets if `checks`. `place` has the positions of the items,
/// `row_of` the row of each position, or is null if all positions have rows. `weights` may be no_array.
/// `tables`: of bags of several tables, for kernels of `exec`. Blocks.
template <class Pooling, class Compute, class Payload, class Exec, class Bags, class Weights, class Value,
          class Space>
bag_lists<Compute, Payload> list_bags(const Exec& exec, const std::int64_t* place, std::int64_t items,
                                      const std::int64_t* row_of, const Bags& bags, std::int64_t positions,
                                      bool checks, const Weights& weights,
                                      const array_ref<Value, Space>& grads,
                                      const kernels::tables_of_bags& tables = {}) {
  using weight = std::remove_const_t<typename Weights::value_type>;
  constexpr bool weighs = !std::is_void_v<weight>;
  using value = std::remove_const_t<Value>;
  bag_lists<Compute, Payload> lists;
  const fence_on_exception<Exec> work(exec);
  launch_context<Exec> call(exec, "step_bags");
  const std::string& label = call.label("bags");
  call.reads_from(grads, true);
  // More lists follow the bags: weights or numbers, and bags of several tables.
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(items, 1));
  lists.memory = engine::get(exec)->device_scratch(room * 3 * sizeof(std::int64_t));
  auto* const bag_of_item = static_cast<std::int64_t*>(lists.memory.get());
  auto* const factors = weighs ? reinterpret_cast<double*>(bag_of_item + room) : nullptr;
  auto* const numbers = Pooling::selects ? bag_of_item + room : nullptr;
  auto* const keys = tables.first_column != nullptr ? bag_of_item + 2 * room : nullptr;
  lists.bags = bag_of_item;
  lists.keys = keys != nullptr ? keys : bag_of_item;
  lists.factors = factors;
  lists.numbers = numbers;
  const report_writer report = call.report();
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const weight* near_weights = nullptr;
  if constexpr (weighs) near_weights = indices_for_kernels(call, weights);
  const std::int64_t count = grads.rows(), bag_count = count * tables.tables;
  const auto list = list_of_bags(bags, offsets, bag_count, positions, checks, report);
  if (checks && bag_count > 0)
    launch(exec, call.label_part(label, "check"), bag_count,
           kernels::check_step_bags<offset_type<Bags>>{list, nullptr});
  if (items > 0)
    launch(exec, call.label_part(label, "find"), items,
           kernels::find_bags<offset_type<Bags>, weight>{list, place, near_weights, bag_of_item, factors,
                                                         numbers, keys, tables});
  if constexpr (Pooling::divides) {
    lists.divided = payload<Compute, Payload>(exec, "divided gradients", count, grads.width());
    const auto near_grads = values_for_kernels(call, label, grads);
    using number = exact_number<Exec, Compute>;
    if (lists.divided.size() != 0) {
      const auto* const sizes = bag_row_counts(call, label, list, row_of);
      launch(exec, call.label_part(label, "divide"), count * grads.width(),
             kernels::divide_by_sizes<number, Compute, offset_type<Bags>, value>{
                 list, sizes, near_grads.data, near_grads.row_stride(), lists.divided.data(),
                 fast_divisor(grads.width()), tables});
    }
  }
  execution_backend<Exec>::fence(exec, label);
  lists.report = read_report<Exec>(report);
  call.finish().drop();
  return lists;
}

/// Writes the shares of the items of a list, one row for each: of their bags' gradients the columns in which
/// they have the maximum. `chosen` has the position of each maximum. Blocks.
template <class Exec, class Chosen, class ChosenSpace, class Value, class Space, class Shares>
void share_gradients(const Exec& exec, const std::int64_t* place, const std::int64_t* bags,
                     const array_ref<Chosen, ChosenSpace>& chosen, const array_ref<Value, Space>& grads,
                     Shares& shares) {
  if (shares.size() == 0) return;
  launch_context<Exec> call(exec, "step_bags");
  const std::string& label = call.label("bags", "share");
  const auto near_chosen = values_for_kernels(call, label, chosen);
  const auto near_grads = values_for_kernels(call, label, grads);
  launch(exec, label, static_cast<std::int64_t>(shares.size()),
         kernels::share_maxima<std::remove_const_t<Value>, std::remove_const_t<Chosen>>{
             place, bags, near_grads.data, near_grads.row_stride(), near_chosen.data,
             near_chosen.row_stride(), shares.data(), fast_divisor(grads.width())});
  execution_backend<Exec>::fence(exec, label);
  call.finish().drop();
}

}  // namespace ferry::detail
