// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/resolve_rows.hpp>
#include <ferry/cache/lru.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/policy/overflow.hpp>
#include <ferry/policy/policies.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// The policy of a cached_table; void for anything else.
template <class Hot>
struct cache_policy_of {
  using type = void;
};
template <class Table, class Policy>
struct cache_policy_of<cached_table<Table, Policy>> {
  using type = Policy;
};

/// The checks of the types of a resolve or prefetch. Returns whether these fit.
template <class Exec, class Hot, class Rows, class Choice>
consteval bool require_resolve() {
  require_execution_space<Exec>();
  using policy = typename cache_policy_of<Hot>::type;
  constexpr bool is_cached = !std::is_void_v<policy>;
  static_assert(
      is_cached,
      "ferry: resolve takes a cached_table, not the table itself: ferry::cached_table hot(table, ferry::cache::lru{.slots = 1000}) say.");
  static_assert(
      !is_cached || keeps_order<policy>,
      "ferry: resolve takes a cached_table of cache::lru, whose slots change with each batch; other policies choose their rows themselves.");
  static_assert(
      may_dereference<Exec, device_space>(),
      "ferry: a host execution space can't dereference cached rows in device_space; pass an instance of the device's execution space.");
  static_assert(
      !is_plan<Rows>,
      "ferry: resolve takes the rows themselves, of which it finds equal ones; leave the plan out.");
  static_assert(is_plan<Rows> || AnArray<Rows>,
                "ferry: resolve and prefetch take an array of rows: of int32 or int64, of which -1 is none.");
  if constexpr (!is_plan<Rows> && AnArray<Rows>) {
    using index = std::remove_const_t<typename traits_of<Rows>::value_type>;
    static_assert(std::is_same_v<index, std::int32_t> || std::is_same_v<index, std::int64_t>,
                  "ferry: resolve and prefetch take rows of int32 or int64, of which -1 is none.");
    static_assert(Choice::checks::all_known,
                  "ferry: resolve takes the policies overflow::* and occupancy::* after its arguments.");
    static_assert(Choice::checks::at_most_one, "ferry: at most one policy of each kind may be given.");
    require_reach<Exec, Rows>();
    return keeps_order<policy> &&
           (std::is_same_v<index, std::int32_t> || std::is_same_v<index, std::int64_t>);
  }
  return false;
}

/// The checks of the slots that a resolve writes. Returns whether they fit.
template <class Exec, class Slots>
consteval bool require_slots() {
  require_output<Slots>();
  using slot_type = typename traits_of<Slots>::value_type;
  constexpr bool is_slot = std::is_same_v<slot_type, std::int32_t> || std::is_same_v<slot_type, std::int64_t>;
  static_assert(is_slot || std::is_const_v<slot_type>, "ferry: resolve writes slots of int32 or int64.");
  constexpr bool is_reached = may_dereference<Exec, typename traits_of<Slots>::memory_space>();
  static_assert(is_reached, "ferry: kernels write the slots of a resolve, so they must reach their memory.");
  return is_slot && is_reached;
}

/// Throws invalid_argument unless the rows are a list, or a line for each group.
void require_lists(const char* verb, const untyped_array& rows, const row_cache& cache);
/// Throws invalid_argument unless there is a slot for each row.
void require_slot_for_each(const untyped_array& rows, const untyped_array& slots);

/// resolve and prefetch. `slots`: an array, or null.
template <class Choice, class Exec, class Table, class Policy, class Index, class Space, class Slot>
ticket resolve_lists(const Exec& exec, const char* verb, const cached_table<Table, Policy>& table,
                     const array_ref<Index, Space>& rows, Slot* slots, const auto&... outputs) {
  row_cache& cache = table.core();
  const cache_use use(cache, verb);
  require_lists(verb, rows, cache);
  require_foreign(verb, cache, rows, outputs...);
  launch_context<Exec> call(exec, verb);
  (require_direct_reach(verb, exec, outputs), ...);
  (call.writes_to(outputs), ...);
  const std::int64_t count = rows.size(), groups = cache.memory.uses.groups;
  if (count != 0) {
    array_ref<Index, Space> list = rows;
    const auto size = static_cast<std::size_t>(count);
    list.describe_dense(1, &size);
    list.label = rows.label;
    list.accesses = rows.accesses;
    const kernels::rows_in_list<std::remove_const_t<Index>> source{
        indices_for_kernels(call, list, nullptr, true)};
    const bool by_lines = rows.rank == 2;
    resolve_rows(call, cache, source, batch_lines{by_lines ? count / groups : count, by_lines}, slots,
                 Choice::overflow::spills, most_blocks<typename Choice::occupancy>(exec));
  }
  return call.finish(table.ref(), count, true);
}

/// The policies of a resolve.
template <class... Ps>
struct resolve_policies {
  using asked = chosen_policies<Ps...>;
  using checks = typename asked::template takes<overflow_category, occupancy_category>;
  using overflow = typename asked::template get<overflow_category, ferry::overflow::reject>;
  using occupancy = typename asked::template get<occupancy_category, ferry::occupancy::full>;
};

template <class Exec, class Cached, class Rows, class... Policies>
ticket prefetch_rows(const Exec& exec, const Cached& table, const Rows& rows, Policies...) {
  using choice = resolve_policies<Policies...>;
  if constexpr (require_resolve<Exec, Cached, Rows, choice>())
    return resolve_lists<choice>(exec, "prefetch", table, make_ref(rows),
                                 static_cast<std::int64_t*>(nullptr));
  else
    return {};
}

}  // namespace detail

/// slots[p] = the slot that has row rows[p] in hot.device_rows(), for kernels that read the slots in place:
/// of a sparse attention, or of experts. Rows without a slot take those of their group that were used least
/// recently, and are fetched by the same enqueued work. Slots of rows that the batch names are never taken.
///
///   exec      the execution space instance of the device
///   hot       a cached_table of cache::lru
///   rows      int32 or int64 in any space: rank 1, or rank 2 [groups, k] with the rows of a group in its
///             line. -1 is no row
///   slots     int32 or int64 of equal extents, which the device reaches: the slot, -1 for no row, -2 for a
///             row without a slot
///   policies  overflow   default overflow::reject: a group whose batch has more different rows than slots is
///                        an error and stays as it is; overflow::spill: the rows of the first positions win
///             occupancy  default occupancy::full; blocks and background for fetches beside other work
///
/// Slots depend on the history of the group alone: equal calls give equal slots on every backend. Rows come
/// into the order of use by their first positions. A captured call is repeated by each launch of its graph,
/// with the rows that the list then has. No host thread takes part, but for rows in pageable memory.
///
/// Throws invalid_argument for extents that do not fit. ticket::wait() throws out_of_range for a row outside
/// of the table, or in the line of another group, and invalid_argument under overflow::reject. A group with
/// such a row, of a list of rank 1 all groups, stays as it is.
template <class Exec, class Hot, class Rows, class Slots, class... Policies>
  requires(detail::Fits<detail::resolve_arguments, const Exec&, const Hot&, const Rows&, Slots, Policies...>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket resolve(
    const Exec& exec, const Hot& hot, const Rows& rows, Slots&& slots, Policies...) {
  using choice = detail::resolve_policies<Policies...>;
  if constexpr (detail::require_resolve<Exec, Hot, Rows, choice>() && detail::require_slots<Exec, Slots>()) {
    const auto list = make_ref(rows);
    const auto output = make_ref(slots);
    detail::require_slot_for_each(list, output);
    return detail::resolve_lists<choice>(exec, "resolve", hot, list, output.data, output);
  } else {
    return {};
  }
}

}  // namespace ferry
