// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/bag_plan.hpp>
#include <ferry/bags/detail/launch_tables.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/bags/detail/step_tables.hpp>
#include <ferry/bags/step_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/agreed_options.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/fetch_rows.hpp>
#include <ferry/distributed/sharded/detail/joined_tables.hpp>
#include <ferry/distributed/sharded/detail/pool_sharded_tables.hpp>
#include <ferry/distributed/sharded/detail/publish_batch.hpp>
#include <ferry/distributed/sharded/detail/read_shards.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_rule.hpp>
#include <ferry/distributed/sharded/detail/sharded_batch.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/detail/step_sharded_bags.hpp>
#include <ferry/distributed/sharded/detail/values_of_batch.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/nonfinite.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::kernels {

/// packed[k] = the part of the gradients of bag bags[k] that its table has, and zeros after it. One thread
/// per element, row-major.
template <class Value>
struct pack_parts {
  const std::int64_t* bags;
  tables_of_bags tables;  ///< one more column follows: the end
  const Value* grads;
  std::int64_t stride;
  Value* packed;
  detail::fast_divisor width;

  static std::int64_t bytes_each() { return 2 * sizeof(Value); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = width.quotient(i);
    const std::int64_t column = i - item * width.divisor();
    const std::int64_t bag = bags[item], table = tables.batch.quotient(bag);
    const std::int64_t first = tables.first_column[table];
    packed[i] = column < tables.first_column[table + 1] - first
                    ? grads[tables.row_of(bag) * stride + first + column]
                    : convert<Value>(0.0f);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The gradients of bags of several tables for the owners of their rows: in place a bag has a row of the
/// batch, of which the owner reads the columns of the table; while they travel each bag's columns are a row.
template <class T, class Space, class Table>
struct table_values : batch_values<T, Space> {
  const std::int64_t* bag_of_item = nullptr;
  joined_tables<Table>* tables = nullptr;

  [[nodiscard]] const std::int64_t* keys() const { return bag_of_item; }
  template <class Exec, class Sink>
  void pack(const Exec& exec, const std::int64_t* list, std::int64_t count, Sink& sink) const {
    if (count == 0 || tables->widest() == 0) return;
    const auto parts = static_cast<std::int64_t>(tables->parts().size());
    launch_context<Exec> work(exec, "step_bags");
    tables->bring(work);
    const std::string& label = work.label("tables", "pack");
    const auto near_grads = values_for_kernels(work, label, this->rows);
    launch(exec, label, count * tables->widest(),
           kernels::pack_parts<T>{list,
                                  {tables->near_columns(), parts, fast_divisor(this->rows.rows())},
                                  near_grads.data,
                                  near_grads.row_stride(),
                                  sink.data(),
                                  fast_divisor(tables->widest())});
    execution_backend<Exec>::fence(exec, label);
    work.finish().drop();
  }
};

/// Refuses what the steps on the tables would, so that no shard is written before.
template <class Pooling, class StepCount, class Compute, class Exec, class Rule, class Table, class States,
          class Named, class Bags, class Grads, class Extra>
void require_steps_of_tables(const char* verb, const collective& call, const Exec& exec, const Rule& rule,
                             const joined_tables<Table>& table, States& states, const Named& named,
                             const Bags& bags, const Grads& grads, const Extra& extra) {
  const std::int64_t positions = named.rows();
  require_rank_one(verb, named);
  require_joined(verb, call, table, grads);
  const auto& parts = table.parts();
  for (std::size_t t = 0; t < parts.size(); ++t)
    for (std::size_t earlier = 0; earlier < t; ++earlier)
      if (parts[earlier] == parts[t])
        throw invalid_argument(joined("ferry::", verb, ": tables ", earlier, " and ", t,
                                      " of for_each_table are one, ", parts[t]->describe()));
  require_bags(verb, bags, positions, grads, static_cast<std::int64_t>(table.parts().size()));
  require_a_bag(verb, positions, grads);
  require_extra<Pooling>(verb, extra, positions, grads);
  require_states(verb, parts.size(), static_cast<std::size_t>(std::ranges::distance(states)));
  auto part = parts.begin();
  for (auto& moments : states) {
    Table& stepped = **part++;
    require_sharded_step<StepCount, Compute>(verb, call, rule, stepped, moments);
    for (int r = call.first(); r < call.last(); ++r) {
      require_direct_reach(verb, shard_instance(table.comm(), r, exec), make_ref(stepped.shard(r)));
      for (int f = 0; f < moments.shard(r).fields(); ++f)
        require_direct_reach(verb, shard_instance(table.comm(), r, exec), moments.shard(r).field_ref(f));
    }
  }
}

/// The steps of a rank's shards of several tables, by a plan of their rows, whose positions share the rows of
/// `values`.
template <class Chosen, bool Weighs, class Exec, class Rule, class Table, class States, class Value,
          class ValueSpace>
void step_shards_of_tables(const char* verb, const Exec& shard_exec, int rank, const Rule& rule,
                           const joined_tables<Table>& table, States& states, const row_plan& plan,
                           const array_ref<Value, ValueSpace>& values,
                           const std::vector<std::int64_t>& first_column) {
  using sum = std::conditional_t<Weighs, weighted_sum, duplicates::sum>;
  using element = typename Table::value_type;
  using space = typename Table::memory_space;
  using count_policy = typename Chosen::template get<step_count_category, step_count::global>;
  using state_type = typename States::value_type::shard_type;
  using rule_type = decltype(rule_of_shard(rule, *table.parts().front(), *std::ranges::begin(states), rank));
  // Gradients have been scanned before.
  using call_type = step_call<
      step_policies<count_policy, typename Chosen::template get<rounding_category, rounding::nearest>,
                    nonfinite::keep>,
      rule_type, state_type, array_ref<element, space>>;
  call_type::template require_types<Exec, Value, sum>();
  std::vector<rule_type> rules;
  std::vector<array_ref<element, space>> shards;
  rules.reserve(table.parts().size());
  shards.reserve(table.parts().size());
  table_steps<call_type> steps(table.parts().size());
  auto part = table.parts().begin();
  for (auto& moments : states) {
    rules.push_back(rule_of_shard(rule, **part, moments, rank));
    shards.push_back(make_ref((*part++)->shard(rank)));
    steps.add(rules.back(), shards.back(), moments.shard(rank), std::type_identity<Value>{});
  }
  steps.take_counters(shard_exec);
  launch_context<Exec> work(shard_exec, verb);
  work.use(plan.storage());
  if (plan.positions() != 0) {
    std::vector<std::int64_t> first_row = table.first_local(rank);
    const std::int64_t* const near_rows = records_for_kernels(work, std::vector<std::int64_t>(first_row));
    launch_steps<sum, false>(
        work, work.label("tables"), steps, shards, plan,
        table_layout{
            std::move(first_row), first_column, {near_rows, static_cast<std::int64_t>(table.parts().size())}},
        values);
  }
  ticket launched = work.finish();
  steps.template count<Value>();
  launched.join();
}

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
  using tables_type = joined_tables<Table>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using count_policy = typename chosen::template get<step_count_category, step_count::global>;
  using nonfinite_policy = typename chosen::template get<nonfinite_category, nonfinite::keep>;
  using compute = step_type<typename Table::value_type, typename States::value_type::value_type, value>;
  using items_type = bag_batch<bag, Exec, tables_type, std::remove_const_t<decltype(bags)>,
                               std::remove_const_t<decltype(grads)>, Extra, compute>;
  using sent = typename items_type::sent;
  constexpr bool reads = reads_in_place<chosen, Exec, tables_type, sent, typename items_type::home>;
  collective call(tables.comm(), note);
  return call.guarded([&]() -> ticket {
    ticket refused;
    require_steps_of_tables<typename bag::pooling, count_policy, compute>(verb_name, call, exec, rule, tables,
                                                                          states, named, bags, grads, extra);
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
    if (batch.template refuses_gradients<nonfinite_policy>(refused, states)) return refused;
    const auto received = batch.template receive<typename items_type::home>(owned, tables.widest());
    const auto columns =
        batch.is_in_place() ? tables.first_column() : std::vector<std::int64_t>(tables.parts().size(), 0);
    write_jointly(call.first(), call.last(), [&](int r) {
      const auto& received_of = received[static_cast<std::size_t>(r - call.first())];
      const Exec shard_exec = batch.instance(r);
      const fence_on_exception<Exec> reading(shard_exec);  // memory of other ranks
      step_shards_of_tables<chosen, items_type::weighs>(verb_name, shard_exec, r, rule, tables, states,
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
  using sink_type = std::remove_const_t<decltype(sink)>;
  using home = payload_space<Exec, typename Table::memory_space, typename sink_type::memory_space>;
  const tables_pooling<bag, Exec, table_type, std::remove_const_t<decltype(named)>,
                       std::remove_const_t<decltype(bags)>, sink_type, Extra>
      pooling(exec, tables, named, bags, sink, extra);
  collective call(tables.comm(), note_of_tables<>(verb_name, parts));
  return call.guarded([&]() -> ticket {
    pooling.check(call);
    if (agree_to_read_batch<typename bag::chosen, typename sink_type::memory_space>(call, exec, tables,
                                                                                    named)) {
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
    const auto arrived =
        requests.template fetch<std::remove_const_t<typename Table::value_type>, home>(read, tables.widest());
    if constexpr (table_type::sharding_type::replicates) call.agree();  // as ranks that read in place
    call.close();
    const auto slots = requests.slots();
    return pooling.pool_arrived(arrived, slots);
  });
}

}  // namespace ferry::detail
