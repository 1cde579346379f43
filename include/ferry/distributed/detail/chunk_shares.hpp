// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/detail/sharded_rows.hpp>
#include <ferry/distributed/detail/transport.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/save_job.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
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
template <class Dependent>
class basic_chunk_shares {
 public:
  /// Chunks that a rank works on at once.
  static constexpr std::size_t at_once = 4;

  /// `rows`: null for an array that is no sharded one; its chunks are rank 0's. `replicas`: each rank works
  /// on all chunks of an array that is replicated, instead of a share.
  basic_chunk_shares(const manifest_array& in_file, const checkpoint_array& array, int ranks, bool replicas)
      : file_(&in_file), element_bytes_(array.schema.element_bytes), of_(static_cast<std::size_t>(ranks)) {
    const sharded_rows* const rows = rows_of_shards(array);
    for (std::size_t place = 0; place < in_file.chunk_count(); ++place) {
      if (rows != nullptr && replicas && rows->spread().replicates()) {
        for (auto& each : of_) each.push_back(place);
        continue;
      }
      std::size_t who = 0;
      if (rows != nullptr) {
        const chunk_span at = span_of(place);
        const auto owner = [&](std::uint64_t byte) {
          return rows->spread().owner(static_cast<std::int64_t>(byte / rows->row_bytes()));
        };
        const int first = owner(at.offset), last = owner(at.offset + at.bytes - 1);
        who = rows->spread().replicates() || first != last ? place % of_.size()
                                                           : static_cast<std::size_t>(first);
      }
      of_[who].push_back(place);
    }
    for (const auto& each : of_) rounds_ = std::max(rounds_, (each.size() + at_once - 1) / at_once);
  }

  [[nodiscard]] chunk_span span_of(std::size_t place) const { return {*file_, element_bytes_, place}; }
  /// Rounds until all ranks are through; the same on all ranks.
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// All chunks of a rank.
  [[nodiscard]] const std::vector<std::size_t>& of(int rank) const {
    return of_[static_cast<std::size_t>(rank)];
  }
  /// Those of one round.
  [[nodiscard]] std::span<const std::size_t> of(int rank, std::size_t round) const {
    const auto& all = of(rank);
    const std::size_t begin = std::min(all.size(), round * at_once);
    const std::size_t end = std::min(all.size(), begin + at_once);
    return std::span(all).subspan(begin, end - begin);
  }

 private:
  const manifest_array* file_;
  std::uint32_t element_bytes_;
  std::vector<std::vector<std::size_t>> of_;
  std::size_t rounds_ = 0;
};
using chunk_shares = basic_chunk_shares<void>;

/// Bytes for and from each rank; those for this rank itself stay where they are.
template <class Dependent>
class basic_rank_buffers {
 public:
  explicit basic_rank_buffers(int ranks)
      : out(static_cast<std::size_t>(ranks)),
        in(static_cast<std::size_t>(ranks)),
        to_(static_cast<std::size_t>(ranks)),
        from_(static_cast<std::size_t>(ranks)) {}

  std::vector<std::vector<std::byte>> out, in;

  void clear() {
    for (auto& each : out) each.clear();
  }
  /// Room for more bytes at the end.
  static std::byte* more(std::vector<std::byte>& of, std::size_t bytes) {
    of.resize(of.size() + bytes);
    return of.data() + (of.size() - bytes);
  }
  /// Sends out[r] to rank r. `expected`: bytes that each rank sends. Takes no memory where `in` has room.
  template <class Call>
  void exchange(Call& call, const std::vector<std::size_t>& expected) {
    const auto here = static_cast<std::size_t>(call.rank());
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (r == here) continue;
      in[r].resize(expected[r]);
      to_[r] = {out[r].data(), out[r].size()};
      from_[r] = {in[r].data(), in[r].size()};
    }
    call.exchange(to_, from_);
    std::swap(in[here], out[here]);
  }

 private:
  std::vector<outgoing_part> to_;
  std::vector<incoming_part> from_;
};
using rank_buffers = basic_rank_buffers<void>;

/// Threads for the chunks of one rank, of which others may lie in this process.
template <class...>
int chunk_threads_of_rank(int local_ranks) {
  return std::max(1, chunk_threads() / local_ranks);
}

}  // namespace ferry::detail
