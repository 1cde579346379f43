// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/gather_sharded.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace ferry::detail {

/// Checks the types of bags on a sharded table, as for an ordinary one.
template <class Exec, class Table, class Indices, class Offsets, class Batch, class Chosen, bool TakesStep>
consteval void require_sharded_bags() {
  require_sharded_verb<Exec, Table, Indices, Batch, Chosen, TakesStep, TakesStep>();
  require_offsets<Exec, Offsets>();
}

/// Checks the shapes of the indices and bags of this rank.
template <class Chosen, class Exec, class Table, class Named, class Bags, class Batch>
void require_sharded_bag_batch(const char* verb, const collective& call, const Table& table,
                               const Named& named, const Bags& bags, const Batch& batch) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  const auto whole = whole_ref(table);
  const std::int64_t positions = routed_positions(named);
  if constexpr (is_sharded_plan<Named>) {
    require_sharded_plan<Chosen>(verb, named, table);
  } else if constexpr (is_plan<Named>) {
    require_plan<Exec, Chosen>(verb, named, whole);
  } else {
    require_rank_one(verb, named);
    require_a_row_to_clamp_to<bounds_policy>(verb, whole, positions);
  }
  require_bags(verb, bags, positions, batch);
  require_shapes(verb, whole, batch.rows(), batch);
  require_apart(verb, call, table, batch);
}

/// Whether a position with a bad index is an error.
template <class Bounds, class Named>
bool is_checked(const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().bounds == bounds::check::name;
  else
    return is_strict<Bounds>(named);
}

/// Pools rows that have arrived: position p has row slot[p], or none for -1. The errors of the offsets and of
/// bad positions within bags are those of an ordinary table.
template <class Pooling, class Bounds, class Exec, class Table, class Named, class Bags, class T, class Wire,
          class Payload, class Weights, class Chosen, class Out, class OutSpace>
ticket pool_arrived(const char* verb, const Exec& exec, const Table& table, const Named& named,
                    const Bags& bags, const row_route<Wire>& route, const tensor<T, Payload>& arrived,
                    const Weights& weights, const Chosen& chosen, const array_ref<Out, OutSpace>& out) {
  constexpr bool looks = !std::is_same_v<Bounds, bounds::unchecked>;
  const auto slots = slots_of(route);
  const auto where = read_only(make_ref(slots));
  const auto from = read_only(make_ref(arrived));
  const bool strict = is_checked<Bounds>(named);
  host_bags<Exec, Bags> here(exec, bags, out.rows(), route.positions, looks);
  index_report found = here.look();
  if (strict && route.report.out_of_range != 0) {
    if constexpr (is_plan<Named> || is_sharded_plan<Named>) {
      found = route.report;
    } else {
      std::vector<std::remove_const_t<typename Named::value_type>> room;
      const auto* indices = host_values(exec, named, room);
      unsigned int raised = 0;
      const report_writer writer{&found, &raised};
      for (std::int64_t bag = 0; bag < out.rows(); ++bag) {
        const kernels::bag_range range = here.list().range(bag, false);
        for (std::int64_t p = range.begin; p < range.end; ++p)
          if (slots.data()[p] < 0)
            writer.out_of_range(p, static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[p])));
      }
    }
  }
  const auto pool = [&](auto bounds) {
    gather_bags_by<path::automatic, Pooling, decltype(bounds)>(exec, plain_rows(from), where, bags, weights,
                                                               chosen, out)
        .join();
  };
  try {
    if constexpr (!looks)
      pool(bounds::unchecked{});
    else if (strict)
      pool(bounds::check{});
    else
      pool(bounds::skip{});
  } catch (const ferry::out_of_range&) {  // told below, in the terms of the whole table
  }
  if (found.out_of_range == 0) return {};
  const auto note = whole_ref(table).note();
  return ticket_of_error(found_error(found, verb, note, note, static_cast<std::int64_t>(table.width()),
                                     route.positions, route.signed_indices));
}

/// gather_bags from a sharded table, within a call of its ranks: fetches the rows of this rank's positions,
/// then pools them here.
template <class Pooling, class Bounds, class Path, class Exec, class Table, class Named, class Bags,
          class Weights, class Chosen, class Out, class OutSpace>
ticket pool_by_routes(const char* verb, collective& call, const Exec& exec, const Table& table,
                      const Named& named, const Bags& bags, const Weights& weights, const Chosen& chosen,
                      bool once, const array_ref<Out, OutSpace>& out) {
  using element = typename Table::value_type;
  using home = payload_space<Exec, typename Table::memory_space, OutSpace>;
  return fetch_by_routes<home, element, Bounds>(
      call, exec, table, named, once,
      [&](int rank, const auto& rows, const auto& into) {
        gather(shard_instance(table.comm(), rank, exec), table.shard(rank), rows, into, Path{},
               bounds::unchecked{})
            .join();
      },
      [&](const auto& route, const auto& arrived) {
        return pool_arrived<Pooling, Bounds>(verb, exec, table, named, bags, route, arrived, weights, chosen,
                                             out);
      });
}

}  // namespace ferry::detail
