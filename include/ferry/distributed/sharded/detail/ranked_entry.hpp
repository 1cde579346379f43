// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The ranks of a communicator, as a checkpoint knows them.
class ranks_of_group final : public checkpoint_ranks {
 public:
  explicit ranks_of_group(communicator comm) : comm_(std::move(comm)) {}

  [[nodiscard]] const communicator& comm() const { return comm_; }
  [[nodiscard]] const void* group() const override { return comm_.group().get(); }
  [[nodiscard]] bool acts_for_one() const override { return comm_.acting_rank() >= 0; }
  void save(const ranks_call& call, const io::save_options& options) const override;
  void load(const ranks_call& call, const io::load_options& options) const override;
  [[nodiscard]] bool exists(const ranks_call& call, const io::load_options& options) const override;

 private:
  communicator comm_;
};

/// An object of a checkpoint whose rows are spread over ranks. By itself it serves a thread that acts for all
/// of them; a thread that acts for one rank works with acting().
class ranked_entry : public checkpoint_entry {
 public:
  /// `number`: of the object in its group.
  ranked_entry(std::string name, const communicator& comm, std::uint64_t number)
      : checkpoint_entry(std::move(name)), ranks_(comm), number_(number) {}

  [[nodiscard]] const checkpoint_ranks* ranks() const override { return &ranks_; }
  [[nodiscard]] const communicator& comm() const { return ranks_.comm(); }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// The object with the shards of the ranks that the calling thread acts for. `leads`: it also sets on load
  /// what ranks of one process share. Throws invalid_argument if a shard is not there.
  [[nodiscard]] virtual std::unique_ptr<checkpoint_entry> acting(bool leads) const = 0;

  void describe(manifest_entry& entry, std::vector<checkpoint_array>& arrays) const override;
  void prepare(const load_source& source, const manifest_entry& stored,
               std::vector<load_step>& steps) override;
  void commit() noexcept override;

 protected:
  /// The ranks that the calling thread acts for: first, and the one after the last.
  [[nodiscard]] std::pair<int, int> acting_ranks() const;
  [[noreturn]] void fail_without(int rank) const;

 private:
  ranks_of_group ranks_;
  std::uint64_t number_;
  std::unique_ptr<checkpoint_entry> now_;
};

}  // namespace ferry::detail
