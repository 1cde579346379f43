// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/buckets.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace ferry::detail {

/// The findings of a rank in its batch. Ranks send it to each other as it is.
struct batch_findings {
  std::uint64_t out_of_range = 0, first_position = 0, first_index = 0;
  std::uint64_t first_bag = 0;  ///< that of first_position, if the verb has several tables
  std::uint64_t nonfinite = 0, first_value = 0;
  std::uint64_t duplicates = 0, first_row = ~std::uint64_t{0};  ///< of the rows that the rank owns
  std::int64_t positions = 0;
  std::int64_t signed_indices = 1;
  std::uint64_t bad_bags = 0;
  index_report offsets{};  ///< of the bags
  std::int64_t bags = 0;   ///< of each table, if the verb has several

  /// Takes what is wrong with the offsets of the batch's bags.
  void take_offsets(const index_report& report) {
    bad_bags = report.bad_bags;
    offsets = report;
  }
  /// Takes the values of another scan that are infinite or not a number.
  void take_values(const batch_findings& scanned) {
    nonfinite = scanned.nonfinite;
    first_value = scanned.first_value;
  }
};

/// The findings of all ranks in the order of a verb's errors. With `is_whole` one thread acts for all.
class all_findings {
 public:
  /// `tables`: those of a verb on several, else empty.
  all_findings(const char* verb, const array_note& table, const std::vector<batch_findings>& findings,
               bool is_whole, const std::vector<array_note>& tables = {})
      : verb_(verb), table_(table), findings_(findings), whole_(is_whole), tables_(tables) {}

  /// True if error() has one.
  [[nodiscard]] bool has_error() const;
  [[nodiscard]] std::uint64_t nonfinite() const { return sum(&batch_findings::nonfinite); }
  /// The error of bad offsets, else of bad indices, else of rows that duplicates::reject forbids; null if
  /// there are none.
  [[nodiscard]] std::exception_ptr error() const;
  [[nodiscard]] std::exception_ptr nonfinite_error(std::int64_t width) const;

 private:
  using count_of = std::uint64_t batch_findings::*;
  [[nodiscard]] std::exception_ptr offsets_error() const;
  [[nodiscard]] std::exception_ptr bounds_error() const;
  [[nodiscard]] std::exception_ptr duplicates_error() const;
  [[nodiscard]] std::uint64_t sum(count_of count) const;
  [[nodiscard]] std::size_t first(count_of count) const;
  [[nodiscard]] std::string begin() const;
  [[nodiscard]] std::string of_rank(std::size_t r) const;
  /// The tables, as the rest of a sentence about their rows.
  [[nodiscard]] std::string rows_of_tables() const;
  /// "bag 1 of 'users' ..." for a bag of the batch of a rank.
  [[nodiscard]] std::string bag_of_table(std::size_t r, std::uint64_t bag) const;

  const char* verb_;
  array_note table_;
  const std::vector<batch_findings>& findings_;
  bool whole_;
  std::vector<array_note> tables_;
};

/// A ticket of work that has ended; wait() throws the error. Without an error an empty one.
ticket ticket_of_error(const std::exception_ptr& error);

/// A batch whose lists and values the owners of its rows may read: addresses in the memory of the process.
/// Ranks send it to each other as it is.
struct batch_offer {
  const std::int64_t* place = nullptr;  ///< see buckets; null: item k has row k of the values
  const std::int64_t* rows = nullptr;
  const std::byte* values = nullptr;
  const double* factors = nullptr;  ///< of the items; null: 1
  std::int64_t value_step = 0;      ///< bytes from a row of the values to the next
  std::int32_t lists_device = -1;   ///< that has the lists; -1: host memory
  std::int32_t values_device = -1;  ///< that has the values; -1: host memory
  std::int32_t owner_device = -1;   ///< of the instance that works on the shard of the rank
  std::int32_t is_made = 0;         ///< true if kernels may read all this: the work that makes it has ended
  std::int32_t is_share = 0;        ///< true if the lists have the items of one owner alone
};

/// Headers of the batches of all ranks.
struct batch_headers {
  std::vector<batch_findings> findings;  ///< by rank; one if a thread acts for the group
  std::vector<batch_offer> offers;       ///< by rank
  std::vector<std::int64_t> before;      ///< by rank, its items for lower owners than this rank; see count()
  std::vector<std::int64_t> in_begin;    ///< [ranks + 1] begin of each rank's items for the own shard

  /// Items of the batch of `rank` for this one. Groups of at most most_shards ranks know `before`, too.
  [[nodiscard]] std::int64_t count(std::size_t rank) const { return in_begin[rank + 1] - in_begin[rank]; }
};

/// The ranks tell each other their findings, the items for each owner, and an offer: one phase, which also
/// ends reads of the call before; one exchange more in groups of more than most_shards ranks. `scanned` has
/// the findings besides those of the buckets. Others may read what is offered, up to agree() or
/// cancel_reads() of the call.
[[nodiscard]] batch_headers exchange_headers(collective& call, const buckets& items, batch_findings scanned,
                                             const batch_offer& offer);
/// The headers of a plan, with the findings of the ranks and what they offer for a verb. Others may read it,
/// as above.
[[nodiscard]] batch_headers exchange_offers(collective& call, batch_headers planned,
                                            const batch_findings& batch, const batch_offer& offer);
/// The begin of what each rank has for this one, if `groups` are what this one has for the others: an
/// exchange.
[[nodiscard]] std::vector<std::int64_t> in_begin_of(collective& call, const item_groups& groups);

/// True if each owner can read its items of all batches by a kernel; the same on all ranks. `reach` tells
/// whether kernels of a device reach the memory of another one.
[[nodiscard]] bool can_pull(const std::vector<batch_offer>& offers, bool (*reach)(int device, int memory));

/// The begin of each rank's items for the shard of `rank`, and their end, in groups of items for the owners.
/// `in_begin` has them unless one thread acts for all ranks, whose items are one batch.
[[nodiscard]] inline std::vector<std::int64_t> begins_for(const collective& call, const item_groups& groups,
                                                          const std::vector<std::int64_t>& in_begin,
                                                          int rank) {
  if (!call.is_whole()) return in_begin;
  return {0, groups.group(rank).second - groups.group(rank).first};
}

/// An exchange of lists between the batches of all ranks and the shard of one: one list after the other, each
/// with a part for each rank. If `is_local`, this thread has the only batch, and copies.
class exchange_parts {
 public:
  exchange_parts(collective& call, int rank) : exchange_parts(call, rank, call.is_whole()) {}
  exchange_parts(collective& call, int rank, bool is_local)
      : call_(call),
        first_(is_local ? rank : 0),
        last_(is_local ? rank + 1 : call.ranks()),
        local_(is_local) {}
  /// A list of the batch, in its groups, goes to the owners, who have room from `in_begin` on.
  template <class T>
  void add(const item_groups& groups, const T* batch, const std::vector<std::int64_t>& in_begin, T* shard,
           std::int64_t elements) {
    for (int r = first_; r < last_; ++r) {
      const auto [first, last] = groups.group(r);
      const auto bytes = static_cast<std::size_t>((last - first) * elements) * sizeof(T);
      outgoing_.push_back({reinterpret_cast<const std::byte*>(batch + first * elements), bytes});
      incoming_.push_back(part_of_shard(shard, in_begin, r, elements));
    }
  }
  /// A list of the owner goes back to the ranks of the batches.
  template <class T>
  void add_back(const item_groups& groups, T* batch, const std::vector<std::int64_t>& in_begin, T* shard,
                std::int64_t elements) {
    for (int r = first_; r < last_; ++r) {
      const auto [first, last] = groups.group(r);
      const auto bytes = static_cast<std::size_t>((last - first) * elements) * sizeof(T);
      const incoming_part owned_part = part_of_shard(shard, in_begin, r, elements);
      outgoing_.push_back({owned_part.data, owned_part.bytes});
      incoming_.push_back({reinterpret_cast<std::byte*>(batch + first * elements), bytes});
    }
  }
  /// Moves the parts, which lie in Space: those that leave on the device of `sends`. Blocks. The parts are
  /// gone; without any, on all ranks alike, the ranks do not meet.
  template <class Space, class Exec>
  void move(const Exec& sends, const Exec& takes) {
    if (outgoing_.empty()) return;
    if (local_) {
      static const std::string label = "ferry::distributed::packed";
      execution_backend<Exec>::fence(sends, label);
      for (std::size_t i = 0; i < outgoing_.size(); ++i)
        copy_home(takes, incoming_[i].data, sends, outgoing_[i].data, outgoing_[i].bytes);
    } else {
      exchange_payload<Space>(call_, sends, takes, outgoing_, incoming_);
    }
    outgoing_.clear();
    incoming_.clear();
  }

 private:
  template <class T>
  [[nodiscard]] incoming_part part_of_shard(T* shard, const std::vector<std::int64_t>& in_begin, int rank,
                                            std::int64_t elements) const {
    const auto r = static_cast<std::size_t>(rank - first_);
    return {reinterpret_cast<std::byte*>(shard + in_begin[r] * elements),
            static_cast<std::size_t>((in_begin[r + 1] - in_begin[r]) * elements) * sizeof(T)};
  }

  collective& call_;
  int first_, last_;
  bool local_;
  std::vector<outgoing_part> outgoing_;
  std::vector<incoming_part> incoming_;
};

}  // namespace ferry::detail
