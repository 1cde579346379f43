// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded_tables.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_tables.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// step_bags on several sharded tables. `extra` is no_array or the weights of the positions.
template <class... Policies, class Exec, class Rule, class Table, class States, class Indices, class Offsets,
          class Grads, class Extra>
ticket step_tables_of_shards(const Exec& exec, const Rule& rule, const std::vector<Table*>& list,
                             States& states, const Indices& indices, const Offsets& offsets,
                             const Grads& pooled_grads, const Extra& extra) {
  const char* verb_name = "step_bags";
  using bag = bag_policies<Policies...>;
  using chosen = typename bag::chosen;
  const auto grads = read_only(make_ref(pooled_grads));
  const auto named = index_ref(indices);
  const auto bags = bags_named_by(offsets);
  using value = std::remove_const_t<typename decltype(grads)::value_type>;
  joined_tables<Table> tables(verb_name, list);
  auto note =
      note_of_tables<chosen, typename bag::pooling, value, Rule, typename Extra::value_type>(verb_name, list);
  add_options(note, rule);
  for (const auto& state : states)
    note.add_hidden(note_part::state, state.number())
        .add_hidden(note_part::state, state.seed())
        .add_hidden(note_part::state, state.steps_for(verb_name));
  states_of_tables<States> moments{states};
  using grads_type = std::remove_const_t<decltype(grads)>;
  using bags_type = std::remove_const_t<decltype(bags)>;
  using tables_type = joined_tables<Table>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using compute = step_type<typename Table::value_type, typename states_of_tables<States>::value_type, value>;
  using items_type = bag_batch<bag, Exec, tables_type, bags_type, grads_type, Extra, compute>;
  using home = typename items_type::home;
  using sent = typename items_type::sent;
  constexpr bool reads = reads_in_place<chosen, Exec, tables_type, sent, home>;
  collective call(tables.comm(), note);
  return call.guarded([&]() -> ticket {
    ticket refused;
    require_steps_of_tables<typename bag::pooling, count_policy, compute>(verb_name, call, exec, rule, tables,
                                                                          moments, named, bags, grads, extra);
    launch_context<Exec> work(exec, verb_name);
    tables.bring(work);
    const auto near_bags = bags_near(work, bags);
    buckets bucket;
    const auto rows = bucket_tables<bounds_policy>(work, tables, named, near_bags, bucket, grads);
    const std::int64_t* const row_of = std::is_same_v<bounds_policy, bounds::skip> ? rows.data : nullptr;
    sharded_batch<Exec, tables_type> batch(call, verb_name, exec, tables);
    batch.use(std::move(bucket));
    items_type items(call, exec, tables, bags, grads, extra);
    const auto count = static_cast<std::int64_t>(tables.parts().size());
    items.list(batch.items(), row_of, near_bags, {tables.near_columns(), count, fast_divisor(grads.rows())});
    work.finish().drop();
    table_values<sent, typename decltype(items.gradients())::memory_space, Table> owned{
        items.values(), items.lists().keys, &tables};
    batch_findings scanned = items.template scan<nonfinite_policy>();
    scanned.bags = grads.rows();
    batch.meet(scanned, batch.template offer<reads>(owned));
    if (batch.refuses(refused)) return refused;
    if (batch.template refuses_gradients<nonfinite_policy>(refused, moments)) return refused;
    const auto received = batch.template receive<home>(owned, tables.widest());
    const auto columns =
        batch.is_in_place() ? tables.first_column() : std::vector<std::int64_t>(tables.parts().size(), 0);
    write_jointly(call.first(), call.last(), [&](int r) {
      const auto& received_of = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      step_shards_of_tables<chosen, items_type::weighs>(verb_name, shard_exec, r, rule, tables, moments,
                                                        received_of.plan, received_of.values, columns);
    });
    call.agree();  // no rank returns before all have written
    call.close();
    return {};
  });
}

/// gather_bags from several sharded tables. `extra` is no_array or the weights of the positions.
template <class... Policies, class Exec, class Table, class Indices, class Offsets, class Pooled, class Extra>
ticket pool_tables_of_shards(const Exec& exec, const std::vector<Table*>& list, const Indices& indices,
                             const Offsets& offsets, Pooled& pooled, const Extra& extra) {
  const char* verb_name = "gather_bags";
  using bag = bag_policies<Policies...>;
  using table_type = const std::remove_const_t<Table>;
  const std::vector<table_type*> parts(list.begin(), list.end());
  const auto sink = make_ref(pooled);
  const auto named = index_ref(indices);
  const auto bags = bags_named_by(offsets);
  joined_tables<table_type> tables(verb_name, parts);
  using chosen = typename bag::chosen;
  using sink_type = std::remove_const_t<decltype(sink)>;
  using named_type = std::remove_const_t<decltype(named)>;
  using home = payload_space<Exec, typename Table::memory_space, typename sink_type::memory_space>;
  using element = std::remove_const_t<typename Table::value_type>;
  const tables_pooling<bag, Exec, table_type, named_type, std::remove_const_t<decltype(bags)>, sink_type,
                       Extra>
      pooling(exec, tables, named, bags, sink, extra);
  collective call(tables.comm(), note_of_tables<>(verb_name, parts));
  return call.guarded([&]() -> ticket {
    pooling.check(call);
    if (agree_to_read_batch<chosen, typename sink_type::memory_space>(call, exec, tables, named)) {
      if constexpr (reads_peers<Exec, joined_tables<table_type>, typename sink_type::memory_space>) {
        ticket read = pooling.pool_in_place();
        call.agree();  // no rank leaves before all have read: the rows are those of one point in time
        call.close();
        return read;
      }
    }
    row_requests<Exec, joined_tables<table_type>> requests(call, verb_name, exec, tables);
    const buckets bucket = pooling.bucket();
    requests.ask(bucket);
    const auto read = [&](const Exec& shard_exec, const auto&, int rank, const auto& rows, auto& part) {
      if constexpr (!is_plan<std::remove_cvref_t<decltype(rows)>>)  // of several tables there is none
        pooling.read_shards(shard_exec, rank, rows, part);
    };
    const auto arrived = requests.template fetch<element, home>(read, tables.widest());
    if constexpr (table_type::sharding_type::replicates) call.agree();  // as ranks that read in place
    call.close();
    const auto slots = requests.slots();
    return pooling.pool_arrived(arrived, slots);
  });
}

}  // namespace ferry::detail
