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
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// out[k] = the bag of position place[k]. One thread for each item.
template <class Offset>
struct find_bags {
  bag_list<Offset> bags;
  const std::int64_t* place;
  std::int64_t* out;

  static std::int64_t bytes_each() { return 4 * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t k) const { out[k] = bags.bag_of(place[k]); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The bags of a batch for the owners of its rows: the gradient of a position is that of its bag.
template <class Compute, class Payload>
struct bag_lists {
  std::shared_ptr<void> memory{};
  const std::int64_t* bags = nullptr;  ///< [routed] the bag of each item of the route
  tensor<Compute, Payload> divided{};  ///< the gradients divided by the sizes of the bags, if `divides`
  index_report report{};               ///< of the offsets
};

/// Makes such lists by kernels, and checks the offsets if `checks`. `place` has the positions of the items,
/// `row_of` the row of each position, or is null if all positions have rows. Blocks.
template <bool Divides, class Compute, class Payload, class Exec, class Bags, class Value, class Space>
bag_lists<Compute, Payload> list_bags(const Exec& exec, const std::int64_t* place, std::int64_t items,
                                      const std::int64_t* row_of, const Bags& bags, std::int64_t positions,
                                      bool checks, const array_ref<Value, Space>& grads) {
  using value = std::remove_const_t<Value>;
  bag_lists<Compute, Payload> lists;
  launch_context<Exec> call(exec, "step_bags");
  const std::string& label = call.label("bags");
  call.reads_from(grads, true);
  lists.memory = engine::get(exec)->device_scratch(
      static_cast<std::size_t>(std::max<std::int64_t>(items, 1)) * sizeof(std::int64_t));
  auto* const bag_of_item = static_cast<std::int64_t*>(lists.memory.get());
  lists.bags = bag_of_item;
  const report_writer report = call.report();
  const offset_type<Bags>* offsets = nullptr;
  if constexpr (!std::is_same_v<Bags, std::int64_t>) offsets = indices_for_kernels(call, bags);
  const std::int64_t count = grads.rows();
  const auto list = list_of_bags(bags, offsets, count, positions, checks, report);
  if (checks && count > 0)
    launch(exec, call.label_part(label, "check"), count,
           kernels::check_step_bags<offset_type<Bags>>{list, nullptr});
  if (items > 0)
    launch(exec, call.label_part(label, "find"), items,
           kernels::find_bags<offset_type<Bags>>{list, place, bag_of_item});
  if constexpr (Divides) {
    lists.divided = payload<Compute, Payload>(exec, "divided gradients", count, grads.width());
    const auto near_grads = values_for_kernels(call, label, grads);
    using number = pooling_number<Exec, Compute>;
    if (lists.divided.size() != 0)
      launch(exec, call.label_part(label, "divide"), count * grads.width(),
             kernels::divide_by_sizes<number, Compute, offset_type<Bags>, value>{
                 list, row_of, near_grads.data, near_grads.row_stride(), lists.divided.data(),
                 fast_divisor(grads.width())});
  }
  execution_backend<Exec>::fence(exec, label);
  lists.report = read_report<Exec>(report);
  call.finish().drop();
  return lists;
}

}  // namespace ferry::detail
