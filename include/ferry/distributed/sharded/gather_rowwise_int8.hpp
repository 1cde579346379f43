// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/gather_sharded.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_rowwise_int8.hpp>
#include <ferry/int8/gather.hpp>
#include <ferry/rows/gather.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry {

/// out[p] = the values of row indices[p] of a sharded 8-bit table, as gather from a rowwise_int8_tensor has
/// them. Indices may also be a sharded_plan of table.records(), or a row_plan for tables of as many rows.
/// Policies, errors and collective meaning are those of gather from a sharded_table.
template <class Exec, class Space, class Spread, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const sharded_rowwise_int8<Space, Spread>& table, const Indices& indices, Out&& out,
    Policies...) {
  using asked = detail::chosen_policies<Policies...>;
  using chosen = detail::local_policies<asked>;
  using records = typename sharded_rowwise_int8<Space, Spread>::records_type;
  detail::require_sharded_verb<Exec, records, Indices, Out, chosen, false>();
  detail::require_output<Out>();
  using path_policy = detail::shard_read_path_t<chosen, Exec, Space>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  const auto to = make_ref(out);
  using home = detail::payload_space<Exec, Space, typename decltype(to)::memory_space>;
  const auto& codes = table.records();
  const auto& named = detail::sharded_rows_named_by(indices);
  detail::collective call(codes.comm(), detail::add_plan(detail::note_of<>("gather", codes), indices,
                                                         detail::fetches_once<asked>));
  return call.guarded([&] {
    auto whole = detail::whole_ref(codes);
    whole.extents[1] = static_cast<std::int64_t>(table.width());
    whole.make_dense();
    if constexpr (detail::is_sharded_plan<Indices>) {
      detail::require_sharded_plan<chosen>("gather", named, codes);
      detail::require_shapes("gather", whole, named.positions(), to);
    } else {
      detail::require_batch<Exec, chosen>("gather", whole, named, to);
    }
    detail::require_apart("gather", call, codes, to);
    return detail::fetch_by_routes<home, std::byte, bounds_policy>(
        call, exec, codes, named, detail::should_fetch_once<asked>(codes, named),
        [&](int rank, const auto& rows, const auto& into) {
          gather(detail::shard_instance(codes.comm(), rank, exec), codes.shard(rank), rows, into,
                 path_policy{}, bounds::unchecked{})
              .join();
        },
        [&](const auto& route, auto& arrived) {
          const auto slots = detail::slots_of(route);
          rowwise_int8_tensor<home> here(table.label(), 0, table.width());
          here.records() = std::move(arrived);
          gather(exec, here, slots, out, bounds::skip{}).join();
          if (route.report.out_of_range == 0) return ticket();
          return detail::ticket_of_report("gather", route, codes);
        });
  });
}

}  // namespace ferry
