// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/call_note.hpp>
#include <ferry/distributed/detail/sharded_rows.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/memory/detail/owned.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The ranks of a communicator, as a checkpoint knows them.
template <class Dependent>
class basic_ranks_of_group final : public checkpoint_ranks {
 public:
  explicit basic_ranks_of_group(communicator comm) : comm_(std::move(comm)) {}

  [[nodiscard]] const communicator& comm() const { return comm_; }
  [[nodiscard]] const void* group() const override { return comm_.group().get(); }
  [[nodiscard]] bool acts_for_one() const override { return comm_.acting_rank() >= 0; }
  void save(const ranks_call& of, const io::save_options& options) const override;
  void load(const ranks_call& of, const io::load_options& options) const override;

 private:
  communicator comm_;
};
using ranks_of_group = basic_ranks_of_group<void>;

/// An object of a checkpoint whose rows are spread over ranks. By itself it serves a thread that acts for all
/// of them; a thread that acts for one rank works with acting().
template <class Dependent>
class basic_ranked_entry : public checkpoint_entry {
 public:
  /// `number`: of the object in its group.
  basic_ranked_entry(std::string name, const communicator& comm, std::uint64_t number)
      : checkpoint_entry(std::move(name)), ranks_(comm), number_(number) {}

  [[nodiscard]] const checkpoint_ranks* ranks() const override { return &ranks_; }
  [[nodiscard]] const communicator& comm() const { return ranks_.comm(); }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// The object with the shards of the ranks that the calling thread acts for. `leads`: it also sets on load
  /// what ranks of one process share. Throws invalid_argument where a shard is not there.
  [[nodiscard]] virtual owned<checkpoint_entry> acting(bool leads) const = 0;

  void describe(manifest_entry& to, std::vector<checkpoint_array>& arrays) const override {
    const std::size_t first = arrays.size();
    acting(true)->describe(to, arrays);
    for (std::size_t i = first; i < arrays.size(); ++i)
      if (const auto* rows = rows_of_shards(arrays[i])) rows->wait_for_writes();
  }
  void prepare(const load_source& from, const manifest_entry& stored, std::vector<load_step>& to) override {
    const std::size_t first = to.size();
    now_ = acting(true);
    now_->prepare(from, stored, to);
    for (std::size_t i = first; i < to.size(); ++i)
      if (const auto* rows = rows_of_shards(to[i].to)) rows->wait_for_all();
  }
  void commit() noexcept override {
    now_->commit();
    now_ = nullptr;
  }

 protected:
  /// The ranks that the calling thread acts for: first, and the one after the last.
  [[nodiscard]] std::pair<int, int> acting_ranks() const {
    const int here = comm().acting_rank();
    if (here >= 0) return {here, here + 1};
    const int first = comm().group()->first_local();
    return {first, first + comm().group()->local_count()};
  }
  [[noreturn]] void fail_without(int rank) const {
    throw invalid_argument("ferry::io::checkpoint: '" + name() +
                           "': the object that was added does not hold the shard of rank " +
                           std::to_string(rank));
  }

 private:
  ranks_of_group ranks_;
  std::uint64_t number_;
  owned<checkpoint_entry> now_;
};
using ranked_entry = basic_ranked_entry<void>;

/// The entry as one whose rows are spread; null for all others.
template <class...>
const ranked_entry* as_ranked(const checkpoint_entry& entry) {
  return entry.ranks() == nullptr ? nullptr : static_cast<const ranked_entry*>(&entry);
}

/// "checkpoint::<verb> of 'a', 'b'"
template <class...>
call_note note_of_checkpoint(const char* verb, const ranks_call& of) {
  call_note note("checkpoint::");
  note.add(verb).add(" of ");
  const char* before = "'";
  for (const auto* each : of.entries) {
    note.add(before).add(each->name());
    before = "', '";
  }
  return note.add("'");
}

}  // namespace ferry::detail
