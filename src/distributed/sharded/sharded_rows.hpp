// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chunk_rows.hpp"

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/detail/row_spread.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The rows of an array in the shards of the ranks that the calling thread acts for.
class sharded_rows final : public rows_apart {
 public:
  /// `parts`: those of ranks first, first + 1 and so on; one, or all.
  sharded_rows(communicator comm, std::shared_ptr<const row_spread> spread, int first,
               std::vector<shard_part>&& parts)
      : comm_(std::move(comm)), spread_(std::move(spread)), first_(first), parts_(std::move(parts)) {}

  [[nodiscard]] const row_spread& spread() const { return *spread_; }
  [[nodiscard]] std::uint64_t row_bytes() const { return parts_.front().array.row_bytes; }
  /// True if rows lie in memory that the host does not reach.
  [[nodiscard]] bool is_on_device() const { return parts_.front().gather != nullptr; }

  void wait_for_writes() const;
  void wait_for_all() const;

  /// The rows of a rank among `rows`, one after the other in host memory.
  void pack(const chunk_rows& rows, int rank, std::byte* out) const;
  /// The scratch that unpack() of `bytes` bytes needs at most.
  [[nodiscard]] std::size_t most_scratch_bytes(std::size_t bytes) const;
  /// The other way round. Takes no memory beyond `scratch`, but for scattered rows on a device.
  void unpack(const chunk_rows& rows, int rank, const std::byte* packed,
              std::vector<std::byte>& scratch) const;

  /// For a thread that acts for all ranks.
  /// @{
  void read(std::uint64_t offset, std::size_t bytes, std::byte* out) const override;
  void write(std::uint64_t offset, std::size_t bytes, const std::byte* data,
             const std::shared_ptr<void>& room) const override;
  void reserve(std::shared_ptr<void>& room, std::size_t bytes) const override;
  /// @}

 private:
  struct write_room {
    chunk_rows rows;
    std::vector<std::byte> packed;  ///< by owner
    std::vector<std::byte> scratch;
    std::vector<std::byte*> parts;  ///< the bytes of each owner
  };

  [[nodiscard]] const shard_part& part_of(int rank) const {
    return parts_.at(static_cast<std::size_t>(rank - first_));
  }
  /// True if a device's rows lie so scattered that copies of runs would take too long.
  [[nodiscard]] bool by_kernel(const chunk_rows& rows, int rank) const;

  communicator comm_;
  std::shared_ptr<const row_spread> spread_;
  int first_;
  std::vector<shard_part> parts_;
  mutable std::mutex instance_;  ///< one thread launches at a time
};

/// The rows of such an array; null for one that lies in one piece.
[[nodiscard]] inline const sharded_rows* rows_of_shards(const checkpoint_array& array) {
  return static_cast<const sharded_rows*>(array.apart.get());
}

}  // namespace ferry::detail
