// SPDX-License-Identifier: Apache-2.0

#include "../../../backends/enabled.hpp"
#include "chunk_rows.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/error.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/process_wide.hpp>

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

std::string entry_words(const std::string& name) { return "entry '" + name + "'"; }

/// The elements of an array in host memory that the host made for this save.
std::uint64_t digest_of_bytes(const checkpoint_array& array) {
  const std::size_t bytes = static_cast<std::size_t>(array.schema.bytes());
  return call_note(std::string_view(reinterpret_cast<const char*>(array.data), bytes)).digest;
}

/// Variables and recorded steps are those of all ranks: the file has them once.
bool is_compared(const manifest_entry& entry, const manifest_array& schema) {
  return entry.kind == "value" || entry.kind == "text" || entry.kind == "struct" || entry.kind == "random" ||
         schema.name == "history";
}

/// A number as it is, and the digest of everything else.
std::string value_of(const manifest_entry& entry, const checkpoint_array& array) {
  if (entry.kind != "value") return "of digest " + std::to_string(digest_of_bytes(array));
  return element_words(array.schema.dtype, std::span<const std::byte>(array.data, array.schema.bytes()));
}

/// The properties as bytes for other ranks; texts have no byte 0.
std::string packed(const std::vector<agreed_property>& properties) {
  std::string packed_text;
  for (const auto& property : properties) {
    packed_text.append(property.name).push_back('\0');
    packed_text.append(property.value).push_back('\0');
  }
  return packed_text;
}

std::vector<agreed_property> unpacked(std::string_view packed_text) {
  std::vector<agreed_property> properties;
  const auto next = [&] {
    const auto end = packed_text.find('\0');
    std::string text(packed_text.substr(0, end));
    packed_text.remove_prefix(end + 1);
    return text;
  };
  while (!packed_text.empty()) {
    auto& property = properties.emplace_back();
    property.name = next();
    property.value = next();
  }
  return properties;
}

}  // namespace

call_note note_of_checkpoint(const char* verb, const ranks_call& call) {
  call_note note("checkpoint::");
  note.add(verb).add(" of ");
  const char* before = "'";
  for (const auto* entry : call.entries) {
    note.add(before).add(entry->name());
    before = "', '";
  }
  return note.add("'");
}

agreed_property number_of(const ranked_entry& entry) {
  return {entry_words(entry.name()) + ": the object", "number " + std::to_string(entry.number())};
}
std::string digest_text(const sharded_rows& rows) {
  return "of digest " + std::to_string(rows.spread().digest());
}

std::vector<agreed_property> properties_of(const checkpoint_content& content,
                                           const std::vector<checkpoint_entry*>& objects) {
  std::vector<agreed_property> properties;
  std::size_t i = 0, place = 0;
  for (const auto& entry : content.entries) {
    const std::string owner = entry_words(entry.name);
    properties.push_back({owner, "of kind '" + entry.kind + "'"});
    if (const auto* ranked = as_ranked(*objects[place++])) properties.push_back(number_of(*ranked));
    for (const auto& fact : entry.facts) properties.push_back({owner + ": " + fact.name, fact.describe()});
    for (const auto& schema : entry.arrays) {
      const checkpoint_array& array = content.arrays[i++];
      const std::string part = owner + ": " + (schema.name.empty() ? "the array" : schema.name);
      properties.push_back({part, schema.describe()});
      if (const auto* rows = rows_of_shards(array))
        properties.push_back({part + ", sharding", digest_text(*rows)});
      else if (array.data != nullptr && is_compared(entry, schema))
        properties.push_back({part + ", value", value_of(entry, array)});
    }
  }
  return properties;
}

std::string difference_of_ranks(collective& call, const std::vector<agreed_property>& properties) {
  const std::string bytes = packed(properties);
  const std::array<std::uint64_t, 2> digest{call_note(bytes).digest, bytes.size()};
  const auto digests = call.all_gather(std::span<const std::uint64_t>(digest));
  const auto ranks = static_cast<std::size_t>(call.ranks());
  std::size_t rank = 1;
  while (rank < ranks && digests[2 * rank] == digests[0] && digests[2 * rank + 1] == digests[1]) ++rank;
  if (rank >= ranks) return {};
  std::vector<std::string> arrived(ranks);
  std::vector<outgoing_part> outgoing(ranks,
                                      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  std::vector<incoming_part> incoming(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    arrived[r].resize(static_cast<std::size_t>(digests[2 * r + 1]));
    incoming[r] = {reinterpret_cast<std::byte*>(arrived[r].data()), arrived[r].size()};
  }
  call.exchange(outgoing, incoming);
  const auto first = unpacked(arrived[0]), second = unpacked(arrived[rank]);
  std::size_t i = 0;
  while (i < first.size() && i < second.size() && first[i].name == second[i].name &&
         first[i].value == second[i].value)
    ++i;
  const auto words_of = [&](std::size_t r, const std::vector<agreed_property>& facts) {
    const std::string who = "rank " + std::to_string(r) + " has ";
    return i < facts.size() ? who + facts[i].name + " " + facts[i].value : who + "no more";
  };
  return words_of(0, first) + ", " + words_of(rank, second);
}

void require_no_difference(const communicator& comm, const call_note& note, const std::string& difference) {
  if (difference.empty()) return;
  try {
    collective call(comm, call_note(note).add_hidden(note_part::content, comm.rank()));
    call.agree();
  } catch (const protocol_error&) {
    throw protocol_error("ferry::io::" + std::string(note.words()) + ": the ranks differ: " + difference);
  }
}

checkpoint_content content_of_rank(const ranks_call& call) {
  checkpoint_content content;
  for (const auto* entry : call.entries) {
    manifest_entry& described = content.entries.emplace_back();
    described.name = entry->name();
    entry->describe(described, content.arrays);
  }
  for (const auto& array : content.arrays)
    if (array.accesses != nullptr) array.accesses->wait_for_writes();
  return content;
}

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
              const checkpoint_target& target, checkpoint_content& content)
      : call_(call),
        folder_(folder),
        target_(target),
        content_(content),
        threads_(chunk_threads_of_rank(comm.group()->local_count())) {}
  ranked_save(const ranked_save&) = delete;
  ranked_save& operator=(const ranked_save&) = delete;
  /// After a failure that all ranks know of.
  ~ranked_save() {
    if (is_done_ || base_ == 0 || !process_.is_here()) return;
    if (!is_first()) {
      if (data_ != nullptr && !voted_) data_->abandon();
    } else if (!may_be_current(folder_, manifest_.number, target_)) {
      for (int r = 0; r < call_.ranks(); ++r) ::unlink(data_path(folder_, number_of(r)).c_str());
    }
  }

  void run() {
    begin();
    for (auto& entry : content_.entries)
      for (auto& array : entry.arrays)
        shares_.emplace_back(array, array_of(shares_.size()), call_.ranks(), false);
    for (std::size_t i = 0; i < shares_.size(); ++i) write_array(array_of(i), shares_[i]);
    const auto pieces = collect();
    const auto sizes = vote();
    if (is_first()) commit(pieces, sizes);
    call_.agree();
    call_.close();
    is_done_ = true;
    if (!is_first()) return;
    remove_generations(folder_, manifest_, target_);
    remove_leftovers(folder_, manifest_);
  }

 private:
  /// Data that is not on the disk yet waits for no more than this many bytes, so that the last wait is short.
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
    manifest_.number = number_of(call_.ranks() - 1);
  }

  void write_array(const checkpoint_array& array, const chunk_shares& shares) {
    const sharded_rows* const rows = rows_of_shards(array);
    const int own_rank = call_.rank();
    rank_buffers moved(call_.ranks());
    for (std::size_t round = 0; round < shares.rounds(); ++round) {
      const auto places = shares.places_of(own_rank, round);
      std::vector<chunk_rows> located(places.size());
      std::vector<std::size_t> expected(static_cast<std::size_t>(call_.ranks()), 0);
      moved.clear();
      if (rows != nullptr) {
        for (int r = 0; r < call_.ranks(); ++r)
          if (r == own_rank || !rows->spread().replicates())
            pack_for(r, *rows, shares, round, located, moved);
        for (const auto& chunk : located)
          for (int r = 0; r < call_.ranks(); ++r) expected[static_cast<std::size_t>(r)] += chunk.bytes_of(r);
      }
      moved.exchange(call_, expected);
      if (!places.empty()) write_chunks(array, shares, places, located, moved);
    }
  }
  /// The rows of this rank in the chunks that `rank` writes in a round.
  void pack_for(int rank, const sharded_rows& rows, const chunk_shares& shares, std::size_t round,
                std::vector<chunk_rows>& located, rank_buffers& moved) {
    const int own_rank = call_.rank();
    chunk_rows remote;
    std::size_t i = 0;
    for (const std::size_t place : shares.places_of(rank, round)) {
      const chunk_span span = shares.span_of(place);
      chunk_rows& chunk = rank == own_rank ? located[i++] : remote;
      chunk.locate(rows.spread(), rows.row_bytes(), span.offset, span.bytes, own_rank);
      const std::size_t bytes = chunk.bytes_of(own_rank);
      auto& buffer = moved.out[static_cast<std::size_t>(rank)];
      if (bytes != 0 && rows.is_on_device()) {
        std::byte* const packed = bounce_.room(bytes);
        rows.pack(chunk, own_rank, packed);
        buffer.insert(buffer.end(), packed, packed + bytes);
      } else if (bytes != 0) {
        rows.pack(chunk, own_rank, rank_buffers::more(buffer, bytes));
      }
    }
  }
  void write_chunks(const checkpoint_array& array, const chunk_shares& shares,
                    std::span<const std::size_t> places, const std::vector<chunk_rows>& located,
                    const rank_buffers& moved) {
    if (data_ == nullptr) {
      data_ = std::make_unique<piece_file>(folder_, number_of(call_.rank()));
      data_->keep();
    }
    // The begin of the rows of each chunk in the ranks' data.
    std::vector<std::vector<const std::byte*>> packed_parts(located.size());
    std::vector<std::size_t> before(moved.in.size(), 0);
    for (std::size_t i = 0; i < located.size() && rows_of_shards(array) != nullptr; ++i)
      for (std::size_t r = 0; r < before.size(); ++r) {
        packed_parts[i].push_back(moved.in[r].data() + before[r]);
        before[r] += located[i].bytes_of(static_cast<int>(r));
      }
    const std::size_t first = stored_.size();
    stored_.resize(first + places.size());
    parallel(static_cast<std::int64_t>(places.size()), 1, threads_for_chunks(threads_),
             [&](front_queue& turns, int) {
               std::vector<std::byte> bytes, scratch;
               for (std::size_t i = 0; turns.take(i);) {
                 const chunk_span span = shares.span_of(places[i]);
                 const std::byte* whole = array.in_place(span.offset);
                 if (whole == nullptr) {
                   bytes.resize(span.bytes);
                   if (rows_of_shards(array) != nullptr)
                     located[i].join(packed_parts[i], bytes.data());
                   else
                     array.read(span.offset, span.bytes, bytes.data(), scratch);
                   whole = bytes.data();
                 }
                 const manifest_piece piece = data_->append(whole, span.bytes);
                 stored_[first + i] = {piece.offset, piece.checksum};
               }
             });
    if (data_->written() - synced_ < most_unsynced) return;
    data_->sync();
    synced_ = data_->written();
  }

  /// On rank 0: what each rank has written.
  std::vector<std::vector<stored_chunk>> collect() {
    const auto ranks = static_cast<std::size_t>(call_.ranks());
    std::vector<std::vector<stored_chunk>> chunks_of_ranks(is_first() ? ranks : 0);
    std::vector<outgoing_part> outgoing(ranks);
    std::vector<incoming_part> incoming(ranks);
    if (!is_first()) outgoing[0] = {reinterpret_cast<const std::byte*>(stored_.data()), bytes_of(stored_)};
    for (std::size_t r = 1; r < chunks_of_ranks.size(); ++r) {
      std::size_t count = 0;
      for (const auto& share : shares_) count += share.places_of(static_cast<int>(r)).size();
      chunks_of_ranks[r].resize(count);
      incoming[r] = {reinterpret_cast<std::byte*>(chunks_of_ranks[r].data()), bytes_of(chunks_of_ranks[r])};
    }
    call_.exchange(outgoing, incoming);
    if (is_first()) chunks_of_ranks[0] = std::move(stored_);
    return chunks_of_ranks;
  }
  static std::size_t bytes_of(const std::vector<stored_chunk>& chunks) {
    return chunks.size() * sizeof(stored_chunk);
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
      position[r] = static_cast<std::uint32_t>(manifest_.files.size());
      if (sizes[r] != 0) manifest_.files.push_back({number_of(static_cast<int>(r)), sizes[r]});
    }
    std::vector<std::size_t> next(sizes.size(), 0);
    auto shares = shares_.begin();
    for (auto& entry : content_.entries)
      for (auto& array : entry.arrays) {
        array.chunks.resize(static_cast<std::size_t>(array.chunk_count()));
        for (std::size_t r = 0; r < sizes.size(); ++r)
          for (const std::size_t place : shares->places_of(static_cast<int>(r))) {
            const stored_chunk& chunk = pieces[r][next[r]++];
            array.chunks[place].piece = {position[r], chunk.offset,
                                         static_cast<std::uint32_t>(chunk.checksum)};
          }
        ++shares;
      }
    manifest_.entries = content_.entries;
    bool gone = false;
    const checkpoint_files files(folder_, manifest_, &gone);
    if (gone)
      throw_io_error("checkpoint", folder_,
                     "rank 0 does not see what other ranks have written; all ranks need the same folder");
    write_manifest(folder_, manifest_, target_);
  }

  collective& call_;
  const std::string& folder_;
  checkpoint_target target_;
  checkpoint_content& content_;
  int threads_;
  std::optional<folder_lock> lock_;  ///< of rank 0
  std::uint64_t base_ = 0;
  manifest manifest_;
  std::vector<chunk_shares> shares_;  ///< of each array
  std::vector<stored_chunk> stored_;  ///< by this rank, in the order of the shares
  std::unique_ptr<piece_file> data_;
  std::uint64_t synced_ = 0;
  bool voted_ = false;
  bool is_done_ = false;
  process_mark process_;
  bounce_buffer bounce_;
};

}  // namespace

void ranks_of_group::save(const ranks_call& request, const io::save_options& options) const {
  checkpoint_content content;
  std::string difference;
  const checkpoint_target target{request.keep, options.name};
  call_note note = note_of_checkpoint("save", request);
  note.add_hidden(note_part::values, target.keep)
      .add_hidden_bytes(note_part::values, target.name.data(), target.name.size());
  collective before(comm_, note);
  before.guarded([&] {
    require_checkpoint_name("save", target.name);
    if (options.changes)
      throw invalid_argument(
          "ferry::io::checkpoint::save: ranks save everything; save_options::changes is for a thread that acts "
          "for the group as a whole");
    content = content_of_rank(request);
    difference = difference_of_ranks(before, properties_of(content, request.entries));
    before.close();
  });
  require_no_difference(comm_, note, difference);
  collective call(comm_, note);
  ranked_save saving(call, comm_, request.path, target, content);
  call.guarded([&] { saving.run(); });
}

}  // namespace ferry::detail
