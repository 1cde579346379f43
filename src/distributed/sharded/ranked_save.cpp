// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/ranked_entry.hpp>

#include "../../../backends/enabled.hpp"
#include "chunk_shares.hpp"
#include "rank_content.hpp"
#include "sharded_rows.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_files.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/chunk_threads.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/piece_file.hpp>
#include <ferry/io/detail/save_job.hpp>
#include <ferry/io/save_options.hpp>
#include <ferry/memory/detail/process_identity.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// A save by all ranks, one thread each. Every rank writes a data file of its own with a share of the chunks,
/// whose rows their owners send. When all files are on the disk, rank 0 writes the manifest that names them.
///
/// A rank that has voted for the save does not know whether rank 0 has all votes, so its file stays, whatever
/// happens. Only rank 0 removes files by their names, while it has the lock of the folder: a rank that comes
/// back late must not remove those of a later save. What nobody removes goes with the next save.
class ranked_save {
 public:
  ranked_save(collective& call, const communicator& comm, const std::string& folder,
              checkpoint_content& content)
      : call_(call),
        folder_(folder),
        content_(content),
        threads_(chunk_threads_of_rank(comm.group()->local_count())) {}
  ranked_save(const ranked_save&) = delete;
  ranked_save& operator=(const ranked_save&) = delete;
  /// After a failure that all ranks know of.
  ~ranked_save() {
    if (done_ || base_ == 0 || !process_.is_here()) return;
    if (!is_first()) {
      if (data_ != nullptr && !voted_) data_->abandon();
    } else if (!may_be_current(folder_, made_.number)) {
      for (int r = 0; r < call_.ranks(); ++r) ::unlink(data_path(folder_, number_of(r)).c_str());
    }
  }

  void run() {
    begin();
    for (auto& entry : content_.entries)
      for (auto& each : entry.arrays)
        shares_.emplace_back(each, array_of(shares_.size()), call_.ranks(), false);
    for (std::size_t i = 0; i < shares_.size(); ++i) write_array(array_of(i), shares_[i]);
    const auto pieces = collect();
    const auto sizes = vote();
    if (is_first()) commit(pieces, sizes);
    call_.agree();
    call_.close();
    done_ = true;
    if (is_first()) remove_leftovers(folder_, made_);
  }

 private:
  /// What is not on the disk yet waits for no more than this many bytes, so that the last wait is short.
  static constexpr std::uint64_t most_unsynced = std::uint64_t{1} << 28;

  /// A chunk in the data file of its rank.
  struct stored_chunk {
    std::uint64_t offset;
    std::uint64_t checksum;
  };

  [[nodiscard]] bool is_first() const { return call_.rank() == 0; }
  [[nodiscard]] const checkpoint_array& array_of(std::size_t i) const { return content_.arrays[i]; }
  [[nodiscard]] std::uint64_t number_of(int rank) const { return base_ + static_cast<std::uint64_t>(rank); }

  /// Rank 0 keeps others from saving into the folder, and chooses the numbers of the files.
  void begin() {
    std::uint64_t next = 0;
    if (is_first()) {
      make_folder(folder_);
      lock_.emplace(folder_);
      bool missing = false;
      const manifest old = read_manifest(folder_, &missing);
      remove_leftovers(folder_, old);
      next = next_number(folder_, old);
    }
    base_ = call_.all_gather(std::span<const std::uint64_t>(&next, 1)).front();
    made_.number = number_of(call_.ranks() - 1);
  }

  void write_array(const checkpoint_array& array, const chunk_shares& shares) {
    const sharded_rows* const rows = rows_of_shards(array);
    const int here = call_.rank();
    rank_buffers moved(call_.ranks());
    for (std::size_t round = 0; round < shares.rounds(); ++round) {
      const auto mine = shares.of(here, round);
      std::vector<chunk_rows> located(mine.size());
      std::vector<std::size_t> expected(static_cast<std::size_t>(call_.ranks()), 0);
      moved.clear();
      if (rows != nullptr) {
        for (int r = 0; r < call_.ranks(); ++r)
          if (r == here || !rows->spread().replicates()) pack_for(r, *rows, shares, round, located, moved);
        for (const auto& each : located)
          for (int r = 0; r < call_.ranks(); ++r) expected[static_cast<std::size_t>(r)] += each.bytes_of(r);
      }
      moved.exchange(call_, expected);
      if (!mine.empty()) write_chunks(array, shares, mine, located, moved);
    }
  }
  /// The rows of this rank in the chunks that rank `to` writes in a round.
  void pack_for(int to, const sharded_rows& rows, const chunk_shares& shares, std::size_t round,
                std::vector<chunk_rows>& located, rank_buffers& moved) {
    const int here = call_.rank();
    chunk_rows other;
    std::size_t i = 0;
    for (const std::size_t place : shares.of(to, round)) {
      const chunk_span at = shares.span_of(place);
      chunk_rows& of = to == here ? located[i++] : other;
      of.locate(rows.spread(), rows.row_bytes(), at.offset, at.bytes, here);
      const std::size_t bytes = of.bytes_of(here);
      auto& buffer = moved.out[static_cast<std::size_t>(to)];
      if (bytes != 0 && rows.is_on_device()) {
        std::byte* const between = bounce_.room(bytes);
        rows.pack(of, here, between);
        buffer.insert(buffer.end(), between, between + bytes);
      } else if (bytes != 0) {
        rows.pack(of, here, rank_buffers::more(buffer, bytes));
      }
    }
  }
  void write_chunks(const checkpoint_array& array, const chunk_shares& shares,
                    std::span<const std::size_t> mine, const std::vector<chunk_rows>& located,
                    const rank_buffers& moved) {
    if (data_ == nullptr) {
      data_ = std::make_unique<piece_file>(folder_, number_of(call_.rank()));
      data_->keep();
    }
    // Where the rows of each chunk begin in what the ranks have sent.
    std::vector<std::vector<const std::byte*>> from(located.size());
    std::vector<std::size_t> before(moved.in.size(), 0);
    for (std::size_t i = 0; i < located.size() && rows_of_shards(array) != nullptr; ++i)
      for (std::size_t r = 0; r < before.size(); ++r) {
        from[i].push_back(moved.in[r].data() + before[r]);
        before[r] += located[i].bytes_of(static_cast<int>(r));
      }
    const std::size_t first = stored_.size();
    stored_.resize(first + mine.size());
    for_each_chunk(mine.size(), threads_, [&] {
      return [&, now = std::vector<std::byte>(), scratch = std::vector<std::byte>()](std::size_t i) mutable {
        const chunk_span at = shares.span_of(mine[i]);
        const std::byte* whole = array.in_place(at.offset);
        if (whole == nullptr) {
          now.resize(at.bytes);
          if (rows_of_shards(array) != nullptr)
            located[i].join(from[i], now.data());
          else
            array.read(at.offset, at.bytes, now.data(), scratch);
          whole = now.data();
        }
        const manifest_piece made = data_->append(whole, at.bytes);
        stored_[first + i] = {made.offset, made.checksum};
      };
    });
    if (data_->written() - synced_ < most_unsynced) return;
    data_->sync();
    synced_ = data_->written();
  }

  /// On rank 0: what each rank has written.
  std::vector<std::vector<stored_chunk>> collect() {
    const auto ranks = static_cast<std::size_t>(call_.ranks());
    std::vector<std::vector<stored_chunk>> all(is_first() ? ranks : 0);
    std::vector<outgoing_part> to(ranks);
    std::vector<incoming_part> from(ranks);
    if (!is_first()) to[0] = {reinterpret_cast<const std::byte*>(stored_.data()), bytes_of(stored_)};
    for (std::size_t r = 1; r < all.size(); ++r) {
      std::size_t count = 0;
      for (const auto& each : shares_) count += each.of(static_cast<int>(r)).size();
      all[r].resize(count);
      from[r] = {reinterpret_cast<std::byte*>(all[r].data()), bytes_of(all[r])};
    }
    call_.exchange(to, from);
    if (is_first()) all[0] = std::move(stored_);
    return all;
  }
  static std::size_t bytes_of(const std::vector<stored_chunk>& of) {
    return of.size() * sizeof(stored_chunk);
  }

  /// All ranks have their files on the disk. Returns the sizes.
  std::vector<std::uint64_t> vote() {
    std::uint64_t bytes = 0;
    if (data_ != nullptr) {
      bytes = data_->size();
      data_->finish();
    }
    voted_ = true;
    try {
      return call_.all_gather(std::span<const std::uint64_t>(&bytes, 1));
    } catch (const peer_error&) {  // a rank has not voted for it: rank 0 knows, or will
      voted_ = false;
      throw;
    }
  }

  /// By rank 0: makes the files the current checkpoint.
  void commit(const std::vector<std::vector<stored_chunk>>& pieces, const std::vector<std::uint64_t>& sizes) {
    std::vector<std::uint32_t> position(sizes.size());
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      position[r] = static_cast<std::uint32_t>(made_.files.size());
      if (sizes[r] != 0) made_.files.push_back({number_of(static_cast<int>(r)), sizes[r]});
    }
    std::vector<std::size_t> next(sizes.size(), 0);
    auto shares = shares_.begin();
    for (auto& entry : content_.entries)
      for (auto& array : entry.arrays) {
        array.chunks.resize(static_cast<std::size_t>(array.chunk_count()));
        for (std::size_t r = 0; r < sizes.size(); ++r)
          for (const std::size_t place : shares->of(static_cast<int>(r))) {
            const stored_chunk& from = pieces[r][next[r]++];
            array.chunks[place].piece = {position[r], from.offset, static_cast<std::uint32_t>(from.checksum)};
          }
        ++shares;
      }
    made_.entries = content_.entries;
    bool gone = false;
    const checkpoint_files seen(folder_, made_, &gone);
    if (gone)
      throw_io_error("checkpoint", folder_,
                     "rank 0 does not see what other ranks have written; all ranks need the same folder");
    write_manifest(folder_, made_);
  }

  collective& call_;
  const std::string& folder_;
  checkpoint_content& content_;
  int threads_;
  std::optional<folder_lock> lock_;  ///< of rank 0
  std::uint64_t base_ = 0;
  manifest made_;
  std::vector<chunk_shares> shares_;  ///< of each array
  std::vector<stored_chunk> stored_;  ///< by this rank, in the order of the shares
  std::unique_ptr<piece_file> data_;
  std::uint64_t synced_ = 0;
  bool voted_ = false;
  bool done_ = false;
  process_mark process_;
  bounce_buffer bounce_;
};

}  // namespace

void ranks_of_group::save(const ranks_call& of, const io::save_options& options) const {
  checkpoint_content content;
  std::string difference;
  const call_note note = note_of_checkpoint("save", of);
  collective before(comm_, note);
  before.guarded([&] {
    if (options.changes)
      throw invalid_argument(
          "ferry::io::checkpoint::save: ranks save everything; save_options::changes is for a thread that acts "
          "for the group as a whole");
    content = content_of_rank(of);
    difference = difference_of_ranks(before, properties_of(content, of.entries));
    before.close();
  });
  require_no_difference(comm_, note, difference);
  collective call(comm_, note);
  ranked_save saving(call, comm_, of.path, content);
  call.guarded([&] { saving.run(); });
}

}  // namespace ferry::detail
