// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The places of the rows of a piece of a file: bytes [offset, offset + bytes) of an array in the order of
/// the row numbers. The first and the last row may be cut.
class chunk_rows {
 public:
  /// Finds the rows of a piece; among replicas those of `rank`.
  void locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset, std::size_t bytes,
              int rank);

  /// Takes the memory for locate() of at most `rows` rows.
  void reserve(std::size_t rows, int ranks);
  /// Forgets the rows, and keeps their memory.
  void clear() {
    owners_.clear();
    places_.clear();
  }
  /// Number of rows.
  [[nodiscard]] std::size_t rows() const { return owners_.size(); }
  /// The bytes that a rank has.
  [[nodiscard]] std::size_t bytes_of(int rank) const {
    return bytes_of_rank_[static_cast<std::size_t>(rank)];
  }
  /// The places of the rows that a rank has, in their order.
  [[nodiscard]] std::vector<std::int64_t> places_of(int rank) const;
  /// True if no row is cut.
  [[nodiscard]] bool is_whole() const { return skipped_ == 0 && bytes_ % row_bytes_ == 0; }

  /// Calls visit(first byte in the shard, count) for the runs of bytes of a rank that are adjacent in its
  /// shard, in the order of the rows.
  template <class Visit>
  void for_each_run(int rank, const Visit& visit) const {
    std::uint64_t begin = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      if (owners_[i] != rank) continue;
      const std::uint64_t row = static_cast<std::uint64_t>(places_[i]) * row_bytes_ + (i == 0 ? skipped_ : 0);
      if (count != 0 && begin + count != row) {
        visit(begin, count);
        count = 0;
      }
      if (count == 0) begin = row;
      count += bytes_of_row(i);
    }
    if (count != 0) visit(begin, count);
  }

  /// chunk = the rows in the order of their numbers, of which owner r has its own one after the other at
  /// parts[r].
  void join(std::vector<const std::byte*> parts, std::byte* chunk) const;
  /// The other way round; moves the pointers on.
  void part(const std::byte* chunk, std::vector<std::byte*>& parts) const;

 private:
  [[nodiscard]] std::size_t bytes_of_row(std::size_t i) const {
    const std::uint64_t end = skipped_ + bytes_;  // counted from the beginning of the first row
    const std::uint64_t first = i == 0 ? skipped_ : i * row_bytes_;
    return static_cast<std::size_t>(std::min((i + 1) * row_bytes_, end) - first);
  }
  /// Neighbours of one owner at once.
  template <class Visit>
  void for_each_owner(const Visit& visit) const {
    for (std::size_t i = 0; i < owners_.size();) {
      const int owner = owners_[i];
      std::size_t count = 0;
      for (; i < owners_.size() && owners_[i] == owner; ++i) count += bytes_of_row(i);
      visit(owner, count);
    }
  }

  std::uint64_t row_bytes_ = 1;
  std::uint64_t skipped_ = 0;  ///< bytes of the first row that come before
  std::size_t bytes_ = 0;
  std::vector<std::size_t> bytes_of_rank_;  ///< bytes of each rank
  std::vector<int> owners_;
  std::vector<std::int64_t> places_;
};

}  // namespace ferry::detail

/// Which rank writes and reads which chunks of a file, and how their rows get there.
namespace ferry::detail {

/// A chunk of the file in the array, whose elements may be of another size.
struct chunk_span {
  std::uint64_t offset;
  std::size_t bytes;

  chunk_span(const manifest_array& in_file, std::uint32_t element_bytes, std::size_t place)
      : offset(place * in_file.chunk_bytes / in_file.element_bytes * element_bytes),
        bytes(
            static_cast<std::size_t>(in_file.bytes_of_chunk(place) / in_file.element_bytes * element_bytes)) {
  }
};

/// The chunks of an array, dealt out to the ranks. A chunk whose rows lie on one rank is that rank's, so that
/// they need not travel; the others take turns.
class chunk_shares {
 public:
  /// Chunks that a rank works on at once.
  static constexpr std::size_t at_once = 4;

  /// `rows`: null for an array that is no sharded one; its chunks are rank 0's. `replicas`: each rank works
  /// on all chunks of an array that is replicated, instead of a share.
  chunk_shares(const manifest_array& in_file, const checkpoint_array& array, int ranks, bool replicas);

  [[nodiscard]] chunk_span span_of(std::size_t place) const { return {*file_, element_bytes_, place}; }
  /// Rounds until all ranks are through; the same on all ranks.
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// All chunks of a rank.
  [[nodiscard]] const std::vector<std::size_t>& places_of(int rank) const {
    return shares_[static_cast<std::size_t>(rank)];
  }
  /// The places of one round.
  [[nodiscard]] std::span<const std::size_t> places_of(int rank, std::size_t round) const;

 private:
  const manifest_array* file_;
  std::uint32_t element_bytes_;
  std::vector<std::vector<std::size_t>> shares_;
  std::size_t rounds_ = 0;
};

/// Bytes for and from each rank; those for this rank itself stay where they are.
class rank_buffers {
 public:
  explicit rank_buffers(int ranks)
      : out(static_cast<std::size_t>(ranks)),
        in(static_cast<std::size_t>(ranks)),
        outgoing_(static_cast<std::size_t>(ranks)),
        incoming_(static_cast<std::size_t>(ranks)) {}

  std::vector<std::vector<std::byte>> out, in;

  void clear() {
    for (auto& buffer : out) buffer.clear();
  }
  /// Room for more bytes at the end.
  static std::byte* more(std::vector<std::byte>& buffer, std::size_t bytes) {
    buffer.resize(buffer.size() + bytes);
    return buffer.data() + (buffer.size() - bytes);
  }
  /// Sends out[r] to rank r. `expected`: bytes that each rank sends. Takes no memory if `in` has room.
  void exchange(collective& call, const std::vector<std::size_t>& expected);

 private:
  std::vector<outgoing_part> outgoing_;
  std::vector<incoming_part> incoming_;
};

/// Threads for the chunks of one rank, of which others may lie in this process.
[[nodiscard]] int chunk_threads_of_rank(int local_ranks);

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

class sharded_rows;

/// The entry as one whose rows are spread; null for all others.
[[nodiscard]] inline const ranked_entry* as_ranked(const checkpoint_entry& entry) {
  return entry.ranks() == nullptr ? nullptr : static_cast<const ranked_entry*>(&entry);
}

/// "checkpoint::<verb> of 'a', 'b'"
[[nodiscard]] call_note note_of_checkpoint(const char* verb, const ranks_call& call);

/// A property of an object that the ranks must agree on, and its value as text.
struct agreed_property {
  std::string name;
  std::string value;
};

/// Tables and states that were made one after the other have different numbers, also if they are alike.
[[nodiscard]] agreed_property number_of(const ranked_entry& entry);
[[nodiscard]] std::string digest_text(const sharded_rows& rows);

/// Properties that a save by ranks agrees on: everything but the elements of arrays. Of numbers the value,
/// too, and of states the recorded steps.
[[nodiscard]] std::vector<agreed_property> properties_of(const checkpoint_content& content,
                                                         const std::vector<checkpoint_entry*>& objects);

/// Collective: why the ranks' properties differ, the same text on all; empty if they agree.
[[nodiscard]] std::string difference_of_ranks(collective& call,
                                              const std::vector<agreed_property>& properties);

/// Throws protocol_error on all ranks, and breaks the group, unless `difference` is empty.
void require_no_difference(const communicator& comm, const call_note& note, const std::string& difference);

/// The objects as this rank has them.
[[nodiscard]] checkpoint_content content_of_rank(const ranks_call& call);

}  // namespace ferry::detail
