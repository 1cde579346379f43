// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/pool_bags.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/bag_route.hpp>
#include <ferry/distributed/sharded/detail/gather_peers.hpp>
#include <ferry/distributed/sharded/detail/gather_together.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/ticket.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  const auto whole = whole_ref(table);
  if constexpr (is_sharded_plan<Named>)
    require_sharded_plan<Chosen>(verb, named, table);
  else
    require_bag_indices<Exec, Chosen>(verb, named, whole);
  require_bags(verb, bags, routed_positions(named), batch);
  require_shapes(verb, whole, batch.rows(), batch);
  require_apart(verb, call, table, batch);
}

/// True if a position with a bad index is an error.
template <class Bounds, class Named>
bool is_checked(const Named& named) {
  if constexpr (is_sharded_plan<Named>)
    return named.storage().bounds == bounds::check::name;
  else
    return is_strict<Bounds>(named);
}

/// Pools rows that have arrived: position p has row slots[p], or none for -1.
template <class Pooling, class Bounds, class Exec, class Bags, class Arrived, class Wire, class Extra,
          class Out, class OutSpace>
void pool_slots(const Exec& exec, const Arrived& arrived, const tensor<std::int64_t, Wire>& slots,
                const Bags& bags, const Extra& extra, const array_ref<Out, OutSpace>& out) {
  pool_bags<path::automatic, Pooling, Bounds>(exec, access_to<Arrived, true>(arrived, "gather_bags"),
                                              read_only(make_ref(slots)), bags, extra, out)
      .join();
}

/// Pools rows that have arrived: position p has row slot[p], or none for -1. The errors of the offsets and of
/// bad positions within bags are those of an ordinary table.
template <class Pooling, class Bounds, class Exec, class Table, class Named, class Bags, class Arrived,
          class Wire, class Extra, class Out, class OutSpace>
ticket pool_arrived(const char* verb, const Exec& exec, const Table& table, const Named& named,
                    const Bags& bags, const row_route<Wire>& route, const Arrived& arrived,
                    const Extra& extra, const array_ref<Out, OutSpace>& out) {
  constexpr bool looks = !std::is_same_v<Bounds, bounds::unchecked>;
  const auto slots = slots_of(route);
  const bool strict = is_checked<Bounds>(named);
  host_bags<Exec, Bags> list(exec, bags, out.rows(), route.positions, looks);
  index_report report = list.look();
  if (strict && route.report.out_of_range != 0) {
    if constexpr (is_plan<Named> || is_sharded_plan<Named>) {
      report = route.report;
    } else {
      std::vector<std::remove_const_t<typename Named::value_type>> room;
      const auto* indices = host_values(exec, named, room);
      unsigned int raised = 0;
      const report_writer writer{&report, &raised};
      for (std::int64_t bag = 0; bag < out.rows(); ++bag) {
        const kernels::bag_range range = list.list().range(bag, false);
        for (std::int64_t p = range.begin; p < range.end; ++p)
          if (slots.data()[p] < 0)
            writer.out_of_range(p, static_cast<std::uint64_t>(static_cast<std::int64_t>(indices[p])));
      }
    }
  }
  try {
    if constexpr (!looks)
      pool_slots<Pooling, bounds::unchecked>(exec, arrived, slots, bags, extra, out);
    else if (strict)
      pool_slots<Pooling, bounds::check>(exec, arrived, slots, bags, extra, out);
    else
      pool_slots<Pooling, bounds::skip>(exec, arrived, slots, bags, extra, out);
  } catch (const ferry::out_of_range&) {  // the error below is in the terms of the whole table
  }
  if (report.out_of_range == 0) return {};
  const auto note = whole_ref(table).note();
  return ticket_of_error(found_error(report, verb, note, note, static_cast<std::int64_t>(table.width()),
                                     route.positions, route.signed_indices));
}

/// The policies of gather_bags on a sharded table.
template <class Bag, class Reader, class Table>
struct pool_choice : read_choice<typename Bag::chosen, typename sharded_kind<Table>::wired, Reader> {
  using pooling = typename Bag::pooling;
};

/// The different rows of a plan, fetched from a sharded table into a buffer. Whole: the table for checks.
template <class T, class Whole>
class fetched_rows : public rows_of_kernels<T, typename Whole::memory_space> {
 public:
  fetched_rows(const Whole& whole, const array_ref<const T, device_space>& buffer)
      : whole_(whole), buffer_(buffer) {}

  [[nodiscard]] const Whole& table() const { return whole_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(buffer_, 1); }

  template <class Exec>
  const array_ref<const T, device_space>& rows(launch_context<Exec>& call) const {
    call.reads_from(buffer_);
    return buffer_;
  }
  template <class Exec, class Source>
  static kernels::listed_rows places(launch_context<Exec>&, const Source&, std::int64_t,
                                     const std::shared_ptr<plan_storage>& plan) {
    return {plan->inverse};
  }

 private:
  const Whole& whole_;
  array_ref<const T, device_space> buffer_;
};

/// gather_bags from a sharded table, as read_together takes it. Kernels pool the rows where they read them.
/// Otherwise this rank fetches the rows of its positions, then pools them here. `extra` are the weights of
/// the positions, or under pooling::max the positions of the maxima.
template <class Choice, class Exec, class Table, class Named, class Bags, class Out, class Extra>
struct sharded_pool : sharded_read<Choice, Exec, Table, Named, Out> {
  using base = sharded_read<Choice, Exec, Table, Named, Out>;
  using pooling = typename Choice::pooling;
  static constexpr bool weighs = !std::is_same_v<Extra, no_array> && !pooling::selects;
  static constexpr bool finds = !std::is_same_v<Extra, no_array> && pooling::selects;
  static constexpr bool reads_by_kernels =
      is_host_exec<Exec> || !finds || !std::is_same_v<typename Extra::memory_space, pageable_space>;
  using element = typename sharded_kind<Table>::gathered;

  const Bags& bags;
  const Extra& extra;
  tensor<element, device_space> fetched{};

  sharded_pool(const Exec& instance, Table& rows, const Named& indices, const Bags& lists, const Out& sink,
               const Extra& more, const call_note& note)
      : base("gather_bags", instance, rows, indices, sink, note), bags(lists), extra(more) {}

  void check() {
    require_sharded_bag_batch<typename Choice::chosen, Exec>(this->verb, this->call, this->table, this->named,
                                                             bags, this->out);
    require_extra_output<pooling>(this->verb, extra, routed_positions(this->named), this->out);
  }
  void apply() {
    this->result = pool_arrived<pooling, typename Choice::bounds_policy>(
        this->verb, this->exec, this->table, this->named, bags, this->current_routes().batch, this->arrived,
        extra, this->out);
  }
  template <class List>
  [[nodiscard]] ticket read_peers(const List& list) {
    const auto whole = whole_ref(this->table);
    if constexpr (fetches_once<typename Choice::asked>) {
      const row_plan plan = plan_of_list<bounds_policy>(this->exec, list, whole.rows());
      if (is_plan<List> || !has_bad_rows(plan)) return pool_once(whole, plan);
    } else if constexpr (is_plan<List>) {
      if (prefers_once(this->table, list)) return pool_once(whole, list);
    }
    return pool_rows_of(peer_rows<std::remove_const_t<Table>>(this->table), list);
  }

 private:
  using bounds_policy = typename Choice::bounds_policy;

  /// True if a plan of this call has bad indices: those outside of all bags are no error, but a plan that
  /// the kernels took would report them, too. Waits for the plan.
  [[nodiscard]] static bool has_bad_rows(const row_plan& plan) {
    return plan.storage()->checked && plan.unique_count() != plan.positions() &&
           plan.storage()->read_report().out_of_range != 0;
  }
  /// Pools each row after it has come once.
  template <class Whole>
  [[nodiscard]] ticket pool_once(const Whole& whole, const row_plan& plan) {
    const std::int64_t count = plan.unique_count();
    fetched = payload<element, device_space>(this->exec, "different rows", std::max<std::int64_t>(count, 1),
                                             whole.width());
    const auto sink = fetched.first(static_cast<std::size_t>(count));
    gather_from_peers<bounds::unchecked>(
        this->exec, this->table, index_ref(plan.unique_rows<space_of_plans<Exec>>()), make_ref(sink), false)
        .drop();
    return pool_rows_of(fetched_rows<element, Whole>(whole, read_only(make_ref(fetched))), plan);
  }
  template <class Access, class List>
  [[nodiscard]] ticket pool_rows_of(const Access& rows, const List& list) {
    return pool_bags<path::automatic, pooling, bounds_policy>(this->exec, rows, list, bags, extra, this->out);
  }
};

}  // namespace ferry::detail
