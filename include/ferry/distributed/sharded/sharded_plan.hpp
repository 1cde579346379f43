// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/sharded/detail/received_rows.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/plan/row_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace ferry {

namespace detail {

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

/// The buckets of a batch, and the rows of each shard that the thread acts for, sorted.
template <class Exec>
struct sharded_plan_storage : planned_tables {
  explicit sharded_plan_storage(planned_tables tables) : planned_tables(std::move(tables)) {}

  row_plan batch{};                       ///< of this thread's batch
  buckets items{};                        ///< of the same
  batch_headers headers{};                ///< of all ranks
  std::vector<owned_rows<Exec>> owned{};  ///< of the shards from `first` on
  bool is_whole = true;                   ///< one thread acts for all ranks
  bool in_place = false;                  ///< owners have read the lists of all ranks where they are

  [[nodiscard]] const owned_rows<Exec>& owned_by(int rank) const {
    return owned[static_cast<std::size_t>(rank - first)];
  }
  /// The findings of the batch of this thread.
  [[nodiscard]] const batch_findings& findings_of(const collective& call) const {
    return headers.findings[call.is_whole() ? 0 : static_cast<std::size_t>(call.rank())];
  }
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
  [[nodiscard]] std::int64_t positions() const { return storage_->items.positions; }
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
  require_planned(verb, storage, storage.is_whole,
                  {table.comm(), digest_of(table.sharding()), static_cast<std::int64_t>(table.rows()), bounds,
                   table.comm().acting_rank()},
                  [&table] { return table.describe(); });
}

}  // namespace detail
}  // namespace ferry
