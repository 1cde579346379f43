// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/distributed/sharded/detail/batch_offer.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/rows/copy.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

/// Routes that are made when a verb first needs them.
template <class Wire>
struct routing_when_needed {
  std::once_flag is_made;
  routing<Wire> routes;
};

/// The tables that a plan is for, and the thread that made it.
struct planned_tables {
  communicator comm;
  std::uint64_t spread;  ///< digest of the sharding
  std::int64_t rows;
  std::string_view bounds;
  int first;                 ///< the first rank that the thread acts for
  std::uint64_t number = 0;  ///< in its group, the same on all ranks
};

/// Throws invalid_argument unless the plan is for tables like the one that `wanted` and `describe` tell of.
/// Without a name of bounds a plan with any bounds will do.
void require_planned(const char* verb, const planned_tables& plan, bool by_group, const planned_tables& call,
                     function_ref<std::string()> describe);

/// The routes of a batch and a plan for each shard that the thread acts for.
template <class Exec>
struct sharded_plan_storage : planned_tables {
  explicit sharded_plan_storage(planned_tables tables) : planned_tables(std::move(tables)) {}

  /// The plan of this rank's batch, on the device of its instance; without storage if the host made the
  /// routes.
  row_plan batch{};
  routing<wire_space<Exec>> routes{};  ///< without lists if they lie on devices
  std::vector<row_plan> plans{};       ///< of the shards from `first` on
  /// True if kernels of all ranks have made and joined the lists.
  bool on_devices = false;
  routed_lists lists{};     ///< of this rank's batch
  batch_headers headers{};  ///< of all ranks
  owned_batch owned{};      ///< of the shard of this rank

  /// The routes with their lists in memory of the host, brought there when a verb first needs them. Blocks.
  [[nodiscard]] const routing<wire_space<Exec>>& routes_on_host(const Exec& exec) const {
    if (!on_devices) return routes;
    std::call_once(on_host_->is_made, [&] {
      auto& brought = on_host_->routes;
      static_cast<route_groups&>(brought.batch) = routes.batch;
      brought.findings = routes.findings;
      brought.is_whole = routes.is_whole;
      brought.in_begin = routes.in_begin;
      bring_to_host(exec, lists, brought.batch);
      brought.rows_in = tensor<std::int64_t, wire_space<Exec>>("rows of the shard", owned.rows.rows());
      copy(exec, owned.rows, brought.rows_in).join();
    });
    return on_host_->routes;
  }
  [[nodiscard]] const routing<wire_space<Exec>>& unique_routes(const Exec& exec) const {
    std::call_once(unique_->is_made, [&] { unique_->routes = routing_once(routes_on_host(exec)); });
    return unique_->routes;
  }

 private:
  using when_needed = routing_when_needed<wire_space<Exec>>;

  std::shared_ptr<when_needed> on_host_ = std::make_shared<when_needed>();
  std::shared_ptr<when_needed> unique_ = std::make_shared<when_needed>();
};

}  // namespace detail

/// The indices of a batch, routed to the ranks that own their rows and sorted there, once for all verbs of
/// the batch on tables of the same rows, sharding and group. Made by make_plan(exec, indices, table). Each
/// rank keeps its own. Copies share the arrays.
template <class Exec>
class sharded_plan {
 public:
  /// For make_plan.
  explicit sharded_plan(std::shared_ptr<const detail::sharded_plan_storage<Exec>> storage)
      : storage_(std::move(storage)) {}

  /// Number of indices of the batch of this rank.
  [[nodiscard]] std::int64_t positions() const { return storage_->routes.batch.positions; }
  /// Number of rows of the tables that the plan is for.
  [[nodiscard]] std::int64_t rows() const { return storage_->rows; }
  /// For the verbs.
  [[nodiscard]] const detail::sharded_plan_storage<Exec>& storage() const { return *storage_; }

 private:
  std::shared_ptr<const detail::sharded_plan_storage<Exec>> storage_;
};

namespace detail {

template <class T>
inline constexpr bool is_sharded_plan = false;
template <class Exec>
inline constexpr bool is_sharded_plan<sharded_plan<Exec>> = true;
template <class Exec>
inline constexpr bool is_plan_object<sharded_plan<Exec>> = true;

/// Adds the plan: all ranks pass their part of the same one. With `once` its owners send each row once.
template <class Indices>
call_note add_plan(call_note note, const Indices& indices, bool unique = false) {
  if constexpr (is_sharded_plan<Indices>) {
    note.add(", plan").add_number(indices.storage().number);
    if (unique) note.add(", each row once");
  }
  return note;
}

template <class Spread>
std::uint64_t digest_of(const Spread& spread) {
  call_note note(Spread::name);
  const std::uint64_t type = typeid(Spread).hash_code();
  note.add({reinterpret_cast<const char*>(&type), sizeof type});
  if constexpr (has_digest<Spread>) {
    const std::uint64_t options = spread.digest();
    note.add({reinterpret_cast<const char*>(&options), sizeof options});
  } else if constexpr (!std::is_empty_v<Spread>) {
    note.add({reinterpret_cast<const char*>(&spread), sizeof spread});
  }
  return note.digest;
}

template <class Chosen, class Exec, class Table>
void require_sharded_plan(const char* verb, const sharded_plan<Exec>& plan, const Table& table) {
  std::string_view bounds;
  if constexpr (Chosen::template names<bounds_category>)
    bounds = Chosen::template get<bounds_category, void>::name;
  const auto& storage = plan.storage();
  require_planned(verb, storage, storage.routes.is_whole,
                  {table.comm(), digest_of(table.sharding()), static_cast<std::int64_t>(table.rows()), bounds,
                   table.comm().acting_rank()},
                  [&table] { return table.describe(); });
}

}  // namespace detail
}  // namespace ferry
