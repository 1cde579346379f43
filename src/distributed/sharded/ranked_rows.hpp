// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chunk_rows.hpp"
#include "chunk_shares.hpp"
#include "sharded_rows.hpp"

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::detail {

/// The memory of one rank for the rows of all sharded arrays of a load, taken before a row changes.
class ranked_row_buffers {
 public:
  ranked_row_buffers(int ranks, int threads);

  rank_buffers moved;
  std::vector<std::vector<std::byte>> chunks;              ///< of a round
  std::vector<std::vector<std::byte>> converted, patches;  ///< of each thread
  std::vector<std::vector<chunk_rows>> located;            ///< of each rank, the chunks of a round
  chunk_rows last;                                         ///< of a chunk of many rows
  std::vector<std::size_t> expected;
  std::vector<std::byte*> parts;
  std::vector<std::byte> scratch;
  bounce_buffer bounce;
};

/// The rows of one sharded array on their way from the file to their owners. Each rank reads a share of the
/// chunks, and sends the rows to the owners.
class ranked_rows {
  using buffers = ranked_row_buffers;

 public:
  ranked_rows(const load_step& step, int rank, int ranks);

  /// Takes the memory that load() needs, by a look at all rows of the rank.
  void reserve(buffers& room) const;

  /// Fills the shard of this rank. The call itself takes no memory but for scattered rows on a device; the
  /// messages of a transport may.
  void load(collective& call, const checkpoint_files& files, buffers& room) const;

 private:
  /// Rows of a chunk whose places are kept for the round; others are looked up anew.
  static constexpr std::size_t most_kept = std::size_t{1} << 16;

  void begin(std::size_t round, buffers& room) const;
  /// Calls visit(i, rows of the chunk) for the chunks that rank `r` reads in a round.
  void for_each_chunk_of(int r, std::size_t round, buffers& room,
                         function_ref<void(std::size_t, const chunk_rows&)> visit) const;
  void unpack(const chunk_rows& rows, const std::byte* packed, std::size_t bytes, buffers& room) const;
  /// Chunks of the file as elements of the array.
  void read_elements(const checkpoint_files& files, std::span<const std::size_t> places, buffers& room) const;

  const load_step& step_;
  const sharded_rows& rows_;
  chunk_shares shares_;
  int rank_;
  int ranks_;
};

}  // namespace ferry::detail
