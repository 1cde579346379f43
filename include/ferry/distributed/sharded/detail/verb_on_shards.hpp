// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstdint>

namespace ferry::detail {

/// A verb that works on the shards where they lie: no rows of a batch travel. Its phases are check, which
/// refuses arguments on each rank, and apply, which begins on no rank before all of them have checked.
/// collective::run runs the phases; verbs add those that they need.
template <class Table>
struct verb_on_shards {
  Table& table;
  collective call;
  ticket result{};

  verb_on_shards(Table& rows, const call_note& note) : table(rows), call(rows.comm(), note) {}
  verb_on_shards(const verb_on_shards&) = delete;
  verb_on_shards& operator=(const verb_on_shards&) = delete;

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(table.rows()); }
  /// The numbers that the rows of a shard have in the table.
  [[nodiscard]] auto rows_of_shard(int rank) const {
    return table.sharding().global_rows(rank, rows(), call.ranks());
  }

  void route() {}
  void agree() { call.agree(); }
  [[nodiscard]] bool refuse() const { return false; }
  void move() {}
};

}  // namespace ferry::detail
