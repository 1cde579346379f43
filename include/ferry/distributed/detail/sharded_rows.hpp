// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator.hpp>
#include <ferry/distributed/detail/chunk_rows.hpp>
#include <ferry/distributed/detail/row_spread.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/change_marks.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The shard of a rank as a file sees it. Rows at any places of a shard on a device move by kernels.
struct shard_part {
  checkpoint_array array;
  /// Rows in host memory, one after the other = those at `places`, and the other way round. Block. Null where
  /// the host reaches the shard.
  void (*gather)(const communicator&, int rank, const checkpoint_array& from,
                 const std::vector<std::int64_t>& places, std::byte* to) = nullptr;
  void (*scatter)(const communicator&, int rank, const checkpoint_array& to,
                  const std::vector<std::int64_t>& places, const std::byte* from) = nullptr;
};

template <class Space, class Byte>
tensor_view<Byte, Space> bytes_of_shard(const checkpoint_array& of) {
  return tensor_view<Byte, Space>(of.data, of.schema.extents[0], of.row_bytes);
}
/// Places and rows in memory that kernels of a device reach.
template <class Dependent>
struct basic_rows_on_wire {
  tensor<std::int64_t, pinned_space> places;
  tensor<std::byte, pinned_space> rows;

  basic_rows_on_wire(const std::vector<std::int64_t>& at, std::uint64_t row_bytes)
      : places("places", at.size()), rows("rows of a shard", at.size(), row_bytes) {
    std::memcpy(places.data(), at.data(), at.size() * sizeof(std::int64_t));
  }
};
using rows_on_wire = basic_rows_on_wire<void>;

template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void gather_places(const communicator& comm, int rank, const checkpoint_array& from,
                   const std::vector<std::int64_t>& places, std::byte* to) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard on(exec);
  rows_on_wire wire(places, from.row_bytes);
  gather(exec, bytes_of_shard<Space, const std::byte>(from), wire.places, wire.rows, bounds::unchecked{})
      .join();
  std::memcpy(to, wire.rows.data(), wire.rows.size());
}
template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void scatter_places(const communicator& comm, int rank, const checkpoint_array& to,
                    const std::vector<std::int64_t>& places, const std::byte* from) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard on(exec);
  rows_on_wire wire(places, to.row_bytes);
  std::memcpy(wire.rows.data(), from, wire.rows.size());
  auto shard = bytes_of_shard<Space, std::byte>(to);
  scatter(exec, shard, wire.places, wire.rows, duplicates::assume_unique{}, bounds::unchecked{}).join();
}

template <class Space>
shard_part part_of_shard(checkpoint_array&& array) {
  shard_part made;
  made.array = std::move(array);
  if constexpr (!Space::is_host_accessible && !device_is_host<Space>) {
    made.gather = &gather_places<Space>;
    made.scatter = &scatter_places<Space>;
  }
  return made;
}

/// The rows of an array in the shards of the ranks that the calling thread acts for.
template <class Dependent>
class basic_sharded_rows final : public rows_apart {
 public:
  /// `parts`: those of ranks first, first + 1 and so on; one, or all.
  basic_sharded_rows(communicator comm, std::shared_ptr<const row_spread> spread, int first,
                     std::vector<shard_part>&& parts)
      : comm_(std::move(comm)), spread_(std::move(spread)), first_(first), parts_(std::move(parts)) {}

  [[nodiscard]] const row_spread& spread() const { return *spread_; }
  [[nodiscard]] std::uint64_t row_bytes() const { return parts_.front().array.row_bytes; }
  /// Whether rows lie in memory that the host does not reach.
  [[nodiscard]] bool is_on_device() const { return parts_.front().gather != nullptr; }

  void wait_for_writes() const {
    for (const auto& each : parts_)
      if (each.array.accesses != nullptr) each.array.accesses->wait_for_writes();
  }
  void wait_for_all() const {
    for (const auto& each : parts_)
      if (each.array.accesses != nullptr) each.array.accesses->wait_for_all();
  }

  /// The rows of a rank among `of`, one after the other in host memory.
  void pack(const chunk_rows& of, int rank, std::byte* to) const {
    const shard_part& part = part_of(rank);
    if (by_kernel(of, rank)) {
      const std::lock_guard lock(instance_);
      return part.gather(comm_, rank, part.array, of.places_of(rank), to);
    }
    std::vector<std::byte> scratch;
    of.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
      part.array.read(offset, count, to, scratch);
      to += count;
    });
  }
  /// Before unpack(): the rows are marked as changed when this object ends.
  void begin_writes() const {
    std::call_once(begun_, [this] {
      for (const auto& each : parts_)
        marking_.push_back(make_owned<marked_write>(each.array.accesses, memory_of_rows(each.array)));
    });
  }
  /// The scratch that unpack() of `bytes` bytes needs at most.
  [[nodiscard]] std::size_t most_scratch_bytes(std::size_t bytes) const {
    std::size_t most = 0;
    for (const auto& each : parts_) most = std::max(most, each.array.most_scratch_bytes(bytes));
    return most;
  }
  /// The other way round. Takes no memory beyond `scratch`, but for scattered rows on a device.
  void unpack(const chunk_rows& of, int rank, const std::byte* from, std::vector<std::byte>& scratch) const {
    const shard_part& part = part_of(rank);
    if (by_kernel(of, rank)) {
      const std::lock_guard lock(instance_);
      return part.scatter(comm_, rank, part.array, of.places_of(rank), from);
    }
    of.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
      part.array.write(offset, count, from, scratch);
      from += count;
    });
  }

  /// For a thread that acts for all ranks.
  /// @{
  void read(std::uint64_t offset, std::size_t bytes, std::byte* to) const override {
    chunk_rows rows;
    rows.locate(*spread_, row_bytes(), offset, bytes, first_);
    std::vector<std::vector<std::byte>> packed(parts_.size());
    std::vector<const std::byte*> from;
    for (int r = 0; r < spread_->ranks(); ++r) {
      auto& own = packed[static_cast<std::size_t>(r)];
      const std::size_t count = rows.bytes_of(r);
      if (count == bytes) return pack(rows, r, to);
      own.resize(count);
      if (count != 0) pack(rows, r, own.data());
      from.push_back(own.data());
    }
    rows.join(std::move(from), to);
  }
  void write(std::uint64_t offset, std::size_t bytes, const std::byte* from,
             const std::shared_ptr<void>& room) const override {
    auto& [rows, packed, scratch, to] = *static_cast<write_room*>(room.get());
    if (spread_->replicates()) {
      for (int r = 0; r < spread_->ranks(); ++r) {
        rows.locate(*spread_, row_bytes(), offset, bytes, r);
        unpack(rows, r, from, scratch);
      }
      return;
    }
    rows.locate(*spread_, row_bytes(), offset, bytes, first_);
    packed.resize(bytes);
    to.clear();
    std::size_t begin = 0;
    for (int r = 0; r < spread_->ranks(); begin += rows.bytes_of(r++)) {
      if (rows.bytes_of(r) == bytes) return unpack(rows, r, from, scratch);
      to.push_back(packed.data() + begin);
    }
    rows.part(from, to);
    begin = 0;
    for (int r = 0; r < spread_->ranks(); begin += rows.bytes_of(r++))
      if (rows.bytes_of(r) != 0) unpack(rows, r, packed.data() + begin, scratch);
  }
  void reserve(std::shared_ptr<void>& room, std::size_t bytes) const override {
    begin_writes();
    if (room == nullptr) room = std::make_shared<write_room>();
    auto& own = *static_cast<write_room*>(room.get());
    own.rows.reserve(static_cast<std::size_t>(bytes / std::max<std::uint64_t>(1, row_bytes())) + 2,
                     spread_->ranks());
    own.packed.reserve(bytes);
    own.to.reserve(static_cast<std::size_t>(spread_->ranks()));
    own.scratch.reserve(most_scratch_bytes(bytes));
  }
  /// @}

 private:
  struct write_room {
    chunk_rows rows;
    std::vector<std::byte> packed;  ///< by owner
    std::vector<std::byte> scratch;
    std::vector<std::byte*> to;  ///< the bytes of each owner
  };

  [[nodiscard]] const shard_part& part_of(int rank) const {
    return parts_.at(static_cast<std::size_t>(rank - first_));
  }
  /// Whether a device's rows lie so scattered that copies of runs would take too long.
  [[nodiscard]] bool by_kernel(const chunk_rows& of, int rank) const {
    constexpr std::size_t long_run = std::size_t{1} << 16;
    if (part_of(rank).gather == nullptr || !of.is_whole()) return false;
    std::size_t runs = 0, bytes = 0;
    of.for_each_run(rank, [&](std::uint64_t, std::size_t count) {
      ++runs;
      bytes += count;
    });
    return runs > 1 && bytes / runs < long_run;
  }

  communicator comm_;
  std::shared_ptr<const row_spread> spread_;
  int first_;
  std::vector<shard_part> parts_;
  mutable std::mutex instance_;  ///< one thread launches at a time
  mutable std::once_flag begun_;
  mutable std::vector<owned<marked_write>> marking_;  ///< marks what was written when the object ends
};
using sharded_rows = basic_sharded_rows<void>;

/// The whole array, of which the parts are rows.
template <class...>
checkpoint_array array_of_shards(const communicator& comm, std::shared_ptr<const row_spread> spread,
                                 int first, std::vector<shard_part>&& parts) {
  const checkpoint_array& part = parts.at(0).array;
  checkpoint_array made;
  made.schema = part.schema;
  made.schema.extents.at(0) = static_cast<std::uint64_t>(spread->rows());
  made.label = part.label;
  made.row_bytes = made.row_stride = part.row_bytes;
  made.convert = part.convert;
  made.apart = std::make_shared<const sharded_rows>(comm, std::move(spread), first, std::move(parts));
  return made;
}

/// The rows of such an array; null for one that lies in one piece.
template <class...>
const sharded_rows* rows_of_shards(const checkpoint_array& array) {
  return static_cast<const sharded_rows*>(array.apart.get());
}

}  // namespace ferry::detail
