// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace ferry::detail
