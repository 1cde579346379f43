// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/scan_values.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/detail/write_sharded.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The parts of step_bags on a sharded table. Each owner gets the bags that name its rows, with the positions
/// that name them, and each such bag's gradient once.
namespace ferry::detail {

/// The gradients of bags divided by the number of their rows, as step_bags divides them. Blocks.
template <class Compute, class Payload, class Exec, class Wire, class Bags, class Value, class Space>
tensor<Compute, Payload> divided_gradients(const Exec& exec, const row_route<Wire>& rows, const Bags& list,
                                           const array_ref<Value, Space>& grads) {
  static const std::string label = "ferry::step_bags::divide";
  using value = std::remove_const_t<Value>;
  const auto sizes = sizes_of_bags(rows, list);
  auto here = payload<value, Payload>(exec, "gradients", grads.rows(), grads.width());
  auto made = payload<Compute, Payload>(exec, "divided gradients", grads.rows(), grads.width());
  copy(exec, grads, here).join();
  using number = pooling_number<Exec, Compute>;
  const typename execution_backend<Exec>::device_guard on(exec);  // Kokkos leaves its own device current
  const kernels::bag_list<std::int64_t> bags{sizes.data(), 0, list.bags, rows.routed(), false, false, {}};
  launch(exec, label, static_cast<std::int64_t>(made.size()),
         kernels::divide_by_sizes<number, Compute, std::int64_t, value>{
             bags, nullptr, here.data(), grads.width(), made.data(), fast_divisor(grads.width())});
  execution_backend<Exec>::fence(exec, label);
  return made;
}

/// One array that travels with the positions or with the bags, on both sides of the exchange.
template <class T, class Payload>
struct moved_values {
  tensor<T, Payload> own, in;

  template <class Exec, class Wire>
  void move(collective& call, const Exec& exec, const Exec& there, const routing<Wire>& by,
            std::int64_t width) {
    if (call.is_whole()) return;
    in = width < 0 ? payload<T, Payload>(there, "values of others", by.in_begin.back())
                   : payload<T, Payload>(there, "values of others", by.in_begin.back(), width);
    move_payload<false>(call, exec, there, by, own, in);
  }
  template <class Wire>
  [[nodiscard]] tensor_slice<const T, Payload> part(const routing<Wire>& by, int owner) const {
    if (!by.is_whole) return in.first(in.rows());
    const auto [first, last] = by.own.group(owner);
    return own.rows_between(first, last);
  }
};

/// The offsets of the bags that an owner got.
template <class Wire>
std::vector<std::int64_t> offsets_of(const tensor_slice<const std::int64_t, Wire>& sizes) {
  std::vector<std::int64_t> made{0};
  for (std::size_t b = 0; b < sizes.rows(); ++b) made.push_back(made.back() + sizes.data()[b]);
  return made;
}

/// Sends the bags of all ranks to the owners of their rows and calls `apply(rank, named rows, offsets,
/// gradients, extra...)` there; `extra` are the weights of the positions or the positions of the maxima.
template <class Pooling, class Exec, class Table, class Named, class Bags, class Value, class GradSpace,
          class Extra, class Apply>
void step_bags_by_routes(collective& call, const Exec& exec, const Table& table, const Named& named,
                         const routing<wire_space<Exec>>& by, const Bags& list,
                         const array_ref<Value, GradSpace>& grads, const Extra& extra, const Apply& apply) {
  using wire = wire_space<Exec>;
  constexpr bool weighs = !std::is_same_v<Extra, no_array> && !Pooling::selects;
  const auto width = static_cast<std::int64_t>(table.width());
  const routing<wire> bags = complete_routing(call, table, route_bags(by.own, list), {});
  using home = payload_space<Exec, typename Table::memory_space, GradSpace>;
  const Exec own_shard = shard_instance(table.comm(), call.first(), exec);
  moved_values<std::remove_const_t<Value>, home> gradients;
  gradients.own = values_by_route<home>(exec, bags.own, grads);
  gradients.move(call, exec, own_shard, bags, width);

  const auto apply_all = [&](const auto&... more) {
    for (int r = call.first(); r < call.last(); ++r) {
      const auto offsets = offsets_of(bags.rows_for(r));
      const Exec there = shard_instance(table.comm(), r, exec);
      const auto step_on = [&](const auto& rows) {
        with_rows_near(call.is_whole() ? exec : there, there, gradients.part(bags, r),
                       [&](const auto& of_bags) { apply(r, rows, offsets, of_bags, more(r)...); });
      };
      if constexpr (is_sharded_plan<Named>)
        step_on(named.storage().plans[static_cast<std::size_t>(r - named.storage().first)]);
      else
        step_on(by.rows_for(r));
    }
  };
  if constexpr (weighs) {
    using weight = std::remove_const_t<typename Extra::value_type>;
    moved_values<weight, wire> weights;
    weights.own = tensor<weight, wire>("weights", by.own.routed());
    gather(exec, extra, by.own.place, weights.own, bounds::unchecked{}).join();
    weights.move(call, exec, own_shard, by, -1);
    apply_all([&](int r) { return weights.part(by, r); });
  } else if constexpr (Pooling::selects) {
    moved_values<std::int64_t, wire> chosen;
    chosen.own = tensor<std::int64_t, wire>("positions of maxima", bags.own.routed(), width);
    gather(exec, extra, bags.own.place, chosen.own, bounds::unchecked{}).join();
    number_for_owners(by.own, bags.own, chosen.own);
    chosen.move(call, exec, own_shard, bags, width);
    if (!call.is_whole())  // each rank numbered its positions from 0
      for (std::size_t r = 0; r + 1 < bags.in_begin.size(); ++r)
        for (std::int64_t i = bags.in_begin[r] * width; i < bags.in_begin[r + 1] * width; ++i)
          if (chosen.in.data()[i] >= 0) chosen.in.data()[i] += by.in_begin[r];
    apply_all([&](int r) { return chosen.part(bags, r); });
  } else {
    apply_all();
  }
  if (!call.is_whole()) call.agree();
}

}  // namespace ferry::detail
