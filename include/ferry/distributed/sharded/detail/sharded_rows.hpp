// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// A sharding of a number of rows over a number of ranks, for host code that does not know its type.
class row_spread {
 public:
  row_spread(std::int64_t rows, int ranks, bool replicates, std::uint64_t digest)
      : rows_(rows), ranks_(ranks), replicates_(replicates), digest_(digest) {}
  row_spread(const row_spread&) = delete;
  row_spread& operator=(const row_spread&) = delete;
  virtual ~row_spread() = default;

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  /// True if every rank has all rows.
  [[nodiscard]] bool replicates() const { return replicates_; }
  /// Equal for all shardings of one type and with the same options.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  /// The rank that has a row.
  [[nodiscard]] virtual int owner(std::int64_t row) const = 0;
  /// The owners of rows [first, first + owners.size()), and their places in the shards.
  virtual void locate(std::int64_t first, std::vector<int>& owners,
                      std::vector<std::int64_t>& places) const = 0;

 private:
  std::int64_t rows_;
  int ranks_;
  bool replicates_;
  std::uint64_t digest_;
};

template <class Spread>
class spread_of final : public row_spread {
 public:
  spread_of(const Spread& spread, std::int64_t rows, int ranks, std::uint64_t digest)
      : row_spread(rows, ranks, Spread::replicates, digest), spread_(spread) {}

  [[nodiscard]] int owner(std::int64_t row) const override { return spread_.owner(row, rows(), ranks()); }
  void locate(std::int64_t first, std::vector<int>& owners,
              std::vector<std::int64_t>& places) const override {
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const std::int64_t row = first + static_cast<std::int64_t>(i);
      owners[i] = spread_.owner(row, rows(), ranks());
      places[i] = spread_.local_row(row, rows(), ranks());
    }
  }

 private:
  Spread spread_;
};

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

/// The shard of a rank as a file sees it. Rows at any places of a shard on a device move by kernels.
struct shard_part {
  checkpoint_array array;
  /// Rows in host memory, one after the other = those at `places`, and the other way round. Block. Null if
  /// the host reaches the shard.
  void (*gather)(const communicator&, int rank, const checkpoint_array& array,
                 const std::vector<std::int64_t>& places, std::byte* out) = nullptr;
  void (*scatter)(const communicator&, int rank, const checkpoint_array& array,
                  const std::vector<std::int64_t>& places, const std::byte* rows) = nullptr;
};

template <class Space, class Byte>
tensor_view<Byte, Space> bytes_of_shard(const checkpoint_array& array) {
  return tensor_view<Byte, Space>(array.data, array.schema.extents[0], array.row_bytes);
}
/// Numbers of rows of a shard, and the rows, in memory that kernels of a device reach.
struct rows_on_wire {
  tensor<std::int64_t, pinned_space> numbers;
  tensor<std::byte, pinned_space> rows;

  rows_on_wire(const std::vector<std::int64_t>& list, std::uint64_t row_bytes);
};

template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void gather_places(const communicator& comm, int rank, const checkpoint_array& array,
                   const std::vector<std::int64_t>& places, std::byte* out) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard guard(exec);
  rows_on_wire wire(places, array.row_bytes);
  gather(exec, bytes_of_shard<Space, const std::byte>(array), wire.numbers, wire.rows, bounds::unchecked{})
      .join();
  std::memcpy(out, wire.rows.data(), wire.rows.size());
}
template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void scatter_places(const communicator& comm, int rank, const checkpoint_array& array,
                    const std::vector<std::int64_t>& places, const std::byte* rows) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard guard(exec);
  rows_on_wire wire(places, array.row_bytes);
  std::memcpy(wire.rows.data(), rows, wire.rows.size());
  auto shard = bytes_of_shard<Space, std::byte>(array);
  scatter(exec, shard, wire.numbers, wire.rows, duplicates::assume_unique{}, bounds::unchecked{}).join();
}

template <class Space>
shard_part part_of_shard(checkpoint_array&& array) {
  shard_part part;
  part.array = std::move(array);
  if constexpr (!Space::is_host_accessible && !device_is_host<Space>) {
    part.gather = &gather_places<Space>;
    part.scatter = &scatter_places<Space>;
  }
  return part;
}

/// The whole array, of which the parts are rows: those of ranks first, first + 1 and so on; one, or all.
[[nodiscard]] checkpoint_array array_of_shards(const communicator& comm,
                                               std::shared_ptr<const row_spread> spread, int first,
                                               std::vector<shard_part>&& parts);

}  // namespace ferry::detail
