// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/sharded_entries.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_state.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/io/checkpoint.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_refusals.hpp>
#include <ferry/io/detail/state_entry.hpp>
#include <ferry/optim/chain.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// @file
/// Sharded tables and states in checkpoints, in the order of the row numbers:
///
///   ferry::io::checkpoint run("run.ckpt");
///   run.add("weights", big);                     // a sharded_table, or a sharded_quantized_table
///   run.add("adam", adam, state);                // a rule or a chain, and a sharded_state
///   run.add("epoch", epoch);
///   run.save();
///
/// The files do not know of shards: a checkpoint loads into any number of ranks, any sharding, and ordinary
/// tables, and the other way round.
///
/// A thread that acts for one rank makes collective calls of save() and load(): all ranks make them, on
/// objects of their own or on one that threads share, to which the same was added under the same names, and
/// with the same folder on a file system that all of them see. Each rank writes and reads a share of the
/// file, and rows travel between their owners and these ranks. No rank holds more than its shards and some
/// megabytes. A save is committed when all ranks have brought their part to the disk and said so: then rank 0
/// writes the manifest and renames it. If that does not happen, the folder holds the checkpoint of before.
///
/// A rank that fails throws its own error, the others peer_error. Ranks that differ in names, tables, states,
/// options of rules, steps, seeds or numbers get protocol_error, which names what differs. If a rank does
/// not come, the others get communication_error. Ordinary arrays are saved from rank 0 and loaded by all.
/// save_options::changes and save_async are for a thread that acts for the group as a whole, for which save()
/// and load() are as with ordinary tables.

namespace ferry::detail {

/// Calls add(rank) for the ranks of this process.
template <class Add>
void for_each_local_rank(const communicator& comm, const Add& add) {
  const auto& group = *comm.group();
  for (int r = group.first_local(); r < group.first_local() + group.local_count(); ++r) add(r);
}

template <class T, class Space, class Spread>
std::unique_ptr<checkpoint_entry> entry_of_shards(const std::string& name, const char* kind,
                                                  std::vector<manifest_fact> facts,
                                                  sharded_table<T, Space, Spread>& table) {
  std::vector<std::optional<shard_part>> shards;
  for_each_local_rank(table.comm(), [&](int r) {
    auto& shard = shards.emplace_back();
    if (table.holds(r)) shard = part_of_shard<Space>(as_stored("", make_ref(table.shard(r)), name));
  });
  return sharded_array_entry(
      name, table.comm(), table.number(), kind, std::move(facts),
      std::make_shared<const spread_of<Spread>>(table.sharding(), static_cast<std::int64_t>(table.rows()),
                                                table.comm().size(), digest_of(table.sharding())),
      std::move(shards));
}

template <class T, class Space, class Spread>
struct checkpoint_part<sharded_table<T, Space, Spread>> {
  static std::unique_ptr<checkpoint_entry> entry(const std::string& name,
                                                 sharded_table<T, Space, Spread>& table) {
    return entry_of_shards(name, "array", {}, table);
  }
};

template <class Q, class Space, class ScaleSpace, class Spread>
inline constexpr bool is_kept_in_parts<sharded_quantized_table<Q, Space, ScaleSpace, Spread>> =
    !Q::in_records;

template <class Space, class Spread>
struct checkpoint_part<sharded_rowwise_int8<Space, Spread>> {
  static std::unique_ptr<checkpoint_entry> entry(const std::string& name,
                                                 sharded_rowwise_int8<Space, Spread>& table) {
    return entry_of_shards(name, "rowwise_int8",
                           {{"width", manifest_fact::natural, {}, {std::uint64_t{table.width()}}}},
                           table.records());
  }
};

template <class StateRule, class T, class Space>
struct checkpoint_part<sharded_state<StateRule, T, Space>> {
  template <class Rule>
  static std::unique_ptr<checkpoint_entry> entry(const std::string& name, Rule& rule, bool stays,
                                                 sharded_state<StateRule, T, Space>& state) {
    using plain = std::remove_const_t<Rule>;
    using optim::detail::rule_of;
    static_assert(
        std::is_same_v<rule_of<plain>, StateRule>,
        "ferry: a checkpoint needs the state that make_state made for this optimizer, not for another one.");
    const auto make_entry =
        [&]<class Kept>(std::shared_ptr<Kept> rule_owner) -> std::unique_ptr<checkpoint_entry> {
      using entry_type = sharded_state_entry<Kept, Space>;
      std::vector<std::optional<typename entry_type::shard_type>> shards;
      for_each_local_rank(state.comm(), [&](int r) {
        auto& shard = shards.emplace_back();
        if (!state.holds(r)) return;
        auto& content = state.shard(r);
        shard.emplace();
        for (auto& field : fields_of_state(optim::detail::transforms_of<plain>::rule_in(rule), content, name))
          shard->fields.push_back(part_of_shard<Space>(std::move(field)));
        shard->clock = {content.clock(), state.rows_of(r)};
      });
      return std::make_unique<entry_type>(name, state.comm(), state.number(), std::move(rule_owner),
                                          state.spread(), std::move(shards));
    };
    if (!stays) return make_entry(std::shared_ptr<const plain>(std::make_shared<plain>(rule)));
    return make_entry(std::shared_ptr<Rule>(&rule, [](Rule*) {}));
  }
};

}  // namespace ferry::detail
