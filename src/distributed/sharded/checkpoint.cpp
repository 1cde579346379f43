// SPDX-License-Identifier: Apache-2.0

#include "../../../backends/enabled.hpp"

#include <ferry/distributed/communicator/communication_error.hpp>
#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/communicator/detail/transport.hpp>
#include <ferry/distributed/sharded/detail/sharded_entries.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/error.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/process_wide.hpp>
#include <ferry/tensor/tensor.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The rows of a piece of a file: bytes [offset, offset + bytes) of an array in the order of
/// the row numbers. The first and the last row may be cut.
class chunk_rows {
 public:
  /// Finds the rows of a piece; among replicas those of `rank`.
  void locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset, std::size_t bytes,
              int rank) {
    row_bytes_ = row_bytes;
    skipped_ = offset % row_bytes;
    bytes_ = bytes;
    const auto first = static_cast<std::int64_t>(offset / row_bytes);
    const auto count = static_cast<std::size_t>((skipped_ + bytes + row_bytes - 1) / row_bytes);
    owners_.resize(count);
    local_rows_.resize(count);
    if (spread.replicates()) {
      std::fill(owners_.begin(), owners_.end(), rank);
      for (std::size_t i = 0; i < count; ++i) local_rows_[i] = first + static_cast<std::int64_t>(i);
    } else {
      spread.locate(first, owners_, local_rows_);
    }
    bytes_of_rank_.assign(static_cast<std::size_t>(spread.ranks()), 0);
    for (std::size_t i = 1; i + 1 < count; ++i)
      bytes_of_rank_[static_cast<std::size_t>(owners_[i])] += row_bytes;
    bytes_of_rank_[static_cast<std::size_t>(owners_[0])] += bytes_of_row(0);
    if (count > 1) bytes_of_rank_[static_cast<std::size_t>(owners_[count - 1])] += bytes_of_row(count - 1);
  }

  /// Takes the memory for locate() of at most `rows` rows.
  void reserve(std::size_t rows, int ranks) {
    owners_.reserve(rows);
    local_rows_.reserve(rows);
    bytes_of_rank_.reserve(static_cast<std::size_t>(ranks));
  }
  /// The bytes that a rank has.
  [[nodiscard]] std::size_t bytes_of(int rank) const {
    return bytes_of_rank_[static_cast<std::size_t>(rank)];
  }
  /// The rows that a rank has, as numbers within its shard, in their order.
  [[nodiscard]] std::vector<std::int64_t> rows_of(int rank) const {
    std::vector<std::int64_t> local_rows;
    for (std::size_t i = 0; i < owners_.size(); ++i)
      if (owners_[i] == rank) local_rows.push_back(local_rows_[i]);
    return local_rows;
  }
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
      const std::uint64_t row =
          static_cast<std::uint64_t>(local_rows_[i]) * row_bytes_ + (i == 0 ? skipped_ : 0);
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
  void join(std::vector<const std::byte*> parts, std::byte* chunk) const {
    for_each_owner([&](int owner, std::size_t count) {
      const std::byte*& next = parts[static_cast<std::size_t>(owner)];
      std::memcpy(chunk, next, count);
      next += count;
      chunk += count;
    });
  }
  /// The other way round; moves the pointers on.
  void part(const std::byte* chunk, std::vector<std::byte*>& parts) const {
    for_each_owner([&](int owner, std::size_t count) {
      std::byte*& next = parts[static_cast<std::size_t>(owner)];
      std::memcpy(next, chunk, count);
      next += count;
      chunk += count;
    });
  }

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
  std::vector<std::int64_t> local_rows_;
};

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

  void wait_for_writes() const {
    for (const auto& shard : parts_)
      if (shard.array.accesses != nullptr) shard.array.accesses->wait_for_writes();
  }
  void wait_for_all() const {
    for (const auto& shard : parts_)
      if (shard.array.accesses != nullptr) shard.array.accesses->wait_for_all();
  }

  /// The rows of a rank among `rows`, one after the other in host memory.
  void pack(const chunk_rows& rows, int rank, std::byte* out) const {
    const shard_part& part = part_of(rank);
    if (by_kernel(rows, rank)) {
      const std::lock_guard lock(instance_);
      return part.gather(comm_, rank, part.array, rows.rows_of(rank), out);
    }
    std::vector<std::byte> scratch;
    rows.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
      part.array.read(offset, count, out, scratch);
      out += count;
    });
  }
  /// The scratch that unpack() of `bytes` bytes needs at most.
  [[nodiscard]] std::size_t most_scratch_bytes(std::size_t bytes) const {
    std::size_t most = 0;
    for (const auto& shard : parts_) most = std::max(most, shard.array.most_scratch_bytes(bytes));
    return most;
  }
  /// The other way round. Takes no memory beyond `scratch`, but for scattered rows on a device.
  void unpack(const chunk_rows& rows, int rank, const std::byte* packed_rows,
              std::vector<std::byte>& scratch) const {
    const shard_part& part = part_of(rank);
    if (by_kernel(rows, rank)) {
      const std::lock_guard lock(instance_);
      return part.scatter(comm_, rank, part.array, rows.rows_of(rank), packed_rows);
    }
    rows.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
      part.array.write(offset, count, packed_rows, scratch);
      packed_rows += count;
    });
  }

  /// For a thread that acts for all ranks.
  /// @{
  void read(std::uint64_t offset, std::size_t bytes, std::byte* out) const override {
    chunk_rows rows;
    rows.locate(*spread_, row_bytes(), offset, bytes, first_);
    std::vector<std::vector<std::byte>> packed(parts_.size());
    std::vector<const std::byte*> packed_parts;
    for (int r = 0; r < spread_->ranks(); ++r) {
      auto& room_of_rank = packed[static_cast<std::size_t>(r)];
      const std::size_t count = rows.bytes_of(r);
      if (count == bytes) return pack(rows, r, out);
      room_of_rank.resize(count);
      if (count != 0) pack(rows, r, room_of_rank.data());
      packed_parts.push_back(room_of_rank.data());
    }
    rows.join(std::move(packed_parts), out);
  }
  void write(std::uint64_t offset, std::size_t bytes, const std::byte* data,
             const std::shared_ptr<void>& room) const override {
    auto& [rows, packed, scratch, parts] = *static_cast<write_room*>(room.get());
    if (spread_->replicates()) {
      for (int r = 0; r < spread_->ranks(); ++r) {
        rows.locate(*spread_, row_bytes(), offset, bytes, r);
        unpack(rows, r, data, scratch);
      }
      return;
    }
    rows.locate(*spread_, row_bytes(), offset, bytes, first_);
    packed.resize(bytes);
    parts.clear();
    std::size_t begin = 0;
    for (int r = 0; r < spread_->ranks(); begin += rows.bytes_of(r++)) {
      if (rows.bytes_of(r) == bytes) return unpack(rows, r, data, scratch);
      parts.push_back(packed.data() + begin);
    }
    rows.part(data, parts);
    begin = 0;
    for (int r = 0; r < spread_->ranks(); begin += rows.bytes_of(r++))
      if (rows.bytes_of(r) != 0) unpack(rows, r, packed.data() + begin, scratch);
  }
  void reserve(std::shared_ptr<void>& room, std::size_t bytes) const override {
    if (room == nullptr) room = std::make_shared<write_room>();
    auto& writing = *static_cast<write_room*>(room.get());
    writing.rows.reserve(static_cast<std::size_t>(bytes / std::max<std::uint64_t>(1, row_bytes())) + 2,
                         spread_->ranks());
    writing.packed.reserve(bytes);
    writing.parts.reserve(static_cast<std::size_t>(spread_->ranks()));
    writing.scratch.reserve(most_scratch_bytes(bytes));
  }
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
  [[nodiscard]] bool by_kernel(const chunk_rows& rows, int rank) const {
    constexpr std::size_t long_run = std::size_t{1} << 16;
    if (part_of(rank).gather == nullptr || !rows.is_whole()) return false;
    std::size_t runs = 0, bytes = 0;
    rows.for_each_run(rank, [&](std::uint64_t, std::size_t count) {
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
};

/// The rows of such an array; null for one that lies in one piece.
[[nodiscard]] inline const sharded_rows* rows_of_shards(const checkpoint_array& array) {
  return static_cast<const sharded_rows*>(array.apart.get());
}

}  // namespace ferry::detail

/// Which rank writes and reads which chunks of a file, and how their rows get there.
namespace ferry::detail {

/// A chunk of the file in the array, whose elements may be of another size.
struct chunk_span {
  std::uint64_t offset;
  std::size_t bytes;

  chunk_span(const manifest_array& in_file, std::uint32_t element_bytes, std::size_t chunk_number)
      : offset(chunk_number * in_file.chunk_bytes / in_file.element_bytes * element_bytes),
        bytes(static_cast<std::size_t>(in_file.bytes_of_chunk(chunk_number) / in_file.element_bytes *
                                       element_bytes)) {}
};

/// The chunks of an array, dealt out to the ranks. A chunk whose rows lie on one rank is that rank's, so that
/// they need not travel; the others take turns.
class chunk_shares {
 public:
  /// Chunks that a rank works on at once.
  static constexpr std::size_t at_once = 4;

  /// `rows`: null for an array that is no sharded one; its chunks are rank 0's. `replicas`: each rank works
  /// on all chunks of an array that is replicated, instead of a share.
  chunk_shares(const manifest_array& in_file, const checkpoint_array& array, int ranks, bool replicas)
      : file_(&in_file),
        element_bytes_(array.schema.element_bytes),
        shares_(static_cast<std::size_t>(ranks)) {
    const sharded_rows* const rows = rows_of_shards(array);
    for (std::size_t chunk_number = 0; chunk_number < in_file.chunk_count(); ++chunk_number) {
      if (rows != nullptr && replicas && rows->spread().replicates()) {
        for (auto& share : shares_) share.push_back(chunk_number);
        continue;
      }
      std::size_t who = 0;
      if (rows != nullptr) {
        const chunk_span span = span_of(chunk_number);
        const auto owner = [&](std::uint64_t byte) {
          return rows->spread().owner(static_cast<std::int64_t>(byte / rows->row_bytes()));
        };
        const int first = owner(span.offset), last = owner(span.offset + span.bytes - 1);
        who = rows->spread().replicates() || first != last ? chunk_number % shares_.size()
                                                           : static_cast<std::size_t>(first);
      }
      shares_[who].push_back(chunk_number);
    }
    for (const auto& share : shares_) rounds_ = std::max(rounds_, (share.size() + at_once - 1) / at_once);
  }

  [[nodiscard]] chunk_span span_of(std::size_t chunk_number) const {
    return {*file_, element_bytes_, chunk_number};
  }
  /// Rounds until all ranks are through; the same on all ranks.
  [[nodiscard]] std::size_t rounds() const { return rounds_; }
  /// All chunks of a rank.
  [[nodiscard]] const std::vector<std::size_t>& chunks_of(int rank) const {
    return shares_[static_cast<std::size_t>(rank)];
  }
  /// The chunks of one round.
  [[nodiscard]] std::span<const std::size_t> chunks_of(int rank, std::size_t round) const {
    const auto& share = chunks_of(rank);
    const std::size_t begin = std::min(share.size(), round * at_once);
    const std::size_t end = std::min(share.size(), begin + at_once);
    return std::span(share).subspan(begin, end - begin);
  }

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
  /// Takes the memory for what each rank sends to this one.
  void expect(int rank, const std::vector<std::size_t>& bytes) {
    for (std::size_t r = 0; r < in.size(); ++r)
      if (static_cast<int>(r) != rank) in[r].resize(bytes[r]);
  }
  /// Sends out[r] to rank r.
  void exchange(collective& call) {
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (static_cast<int>(r) == call.rank()) continue;
      outgoing_[r] = {out[r].data(), out[r].size()};
      incoming_[r] = {in[r].data(), in[r].size()};
    }
    call.exchange(outgoing_, incoming_);
  }
  /// The bytes of rank r for this one.
  [[nodiscard]] const std::vector<std::byte>& arrived(int r, int rank) const {
    return r == rank ? out[static_cast<std::size_t>(r)] : in[static_cast<std::size_t>(r)];
  }

 private:
  std::vector<outgoing_part> outgoing_;
  std::vector<incoming_part> incoming_;
};

/// The entry as one whose rows are spread; null for all others.
[[nodiscard]] inline const ranked_entry* as_ranked(const checkpoint_entry& entry) {
  return entry.ranks() == nullptr ? nullptr : static_cast<const ranked_entry*>(&entry);
}

/// A property of an object that the ranks must agree on, and its value as text.
struct agreed_property {
  std::string name;
  std::string value;
};

/// Threads for the chunks of one rank, of which others may lie in this process.
int chunk_threads_of_rank(int local_ranks) { return std::max(1, chunk_threads() / local_ranks); }

rows_on_wire::rows_on_wire(const std::vector<std::int64_t>& list, std::uint64_t row_bytes)
    : numbers("row numbers", list.size()), rows("rows of a shard", list.size(), row_bytes) {
  std::memcpy(numbers.data(), list.data(), list.size() * sizeof(std::int64_t));
}

checkpoint_array array_of_shards(const communicator& comm, std::shared_ptr<const row_spread> spread,
                                 int first, std::vector<shard_part>&& parts) {
  const checkpoint_array& part = parts.at(0).array;
  checkpoint_array array;
  array.schema = part.schema;
  array.schema.extents.at(0) = static_cast<std::uint64_t>(spread->rows());
  array.label = part.label;
  array.row_bytes = array.row_stride = part.row_bytes;
  array.converter_from = part.converter_from;
  array.apart = std::make_shared<const sharded_rows>(comm, std::move(spread), first, std::move(parts));
  return array;
}

void ranked_entry::describe(manifest_entry& entry, std::vector<checkpoint_array>& arrays) const {
  const std::size_t first = arrays.size();
  acting(true)->describe(entry, arrays);
  for (std::size_t i = first; i < arrays.size(); ++i)
    if (const auto* rows = rows_of_shards(arrays[i])) rows->wait_for_writes();
}

void ranked_entry::prepare(const load_source& source, const manifest_entry& stored,
                           std::vector<load_step>& steps) {
  const std::size_t first = steps.size();
  now_ = acting(true);
  now_->prepare(source, stored, steps);
  for (std::size_t i = first; i < steps.size(); ++i)
    if (const auto* rows = rows_of_shards(steps[i].target)) rows->wait_for_all();
}

void ranked_entry::commit() noexcept {
  now_->commit();
  now_ = nullptr;
}

std::pair<int, int> ranked_entry::acting_ranks() const {
  const int rank = comm().acting_rank();
  if (rank >= 0) return {rank, rank + 1};
  const int first = comm().group()->first_local();
  return {first, first + comm().group()->local_count()};
}

void ranked_entry::fail_without(int rank) const {
  throw invalid_argument("ferry::io::checkpoint: '" + name() +
                         "': the object that was added does not hold the shard of rank " +
                         std::to_string(rank));
}

namespace {

/// A sharded table, of which the object that was added holds some shards.
class entry_of_sharded_array final : public ranked_entry {
 public:
  /// shards[i]: of rank first_local + i, if it is there.
  entry_of_sharded_array(std::string name, const communicator& comm, std::uint64_t number, std::string kind,
                         std::vector<manifest_fact> facts, std::shared_ptr<const row_spread> spread,
                         std::vector<std::optional<shard_part>>&& shards)
      : ranked_entry(std::move(name), comm, number),
        kind_(std::move(kind)),
        facts_(std::move(facts)),
        spread_(std::move(spread)),
        shards_(std::move(shards)) {}

  [[nodiscard]] std::unique_ptr<checkpoint_entry> acting(bool) const override {
    const auto [first, last] = acting_ranks();
    std::vector<shard_part> parts;
    for (int r = first; r < last; ++r) {
      const auto& shard = shards_[static_cast<std::size_t>(r - comm().group()->first_local())];
      if (!shard) fail_without(r);
      parts.push_back(*shard);
    }
    return std::make_unique<array_entry>(name(), kind_, facts_,
                                         array_of_shards(comm(), spread_, first, std::move(parts)));
  }

 private:
  std::string kind_;
  std::vector<manifest_fact> facts_;
  std::shared_ptr<const row_spread> spread_;
  std::vector<std::optional<shard_part>> shards_;
};

}  // namespace

std::unique_ptr<checkpoint_entry> sharded_array_entry(std::string name, const communicator& comm,
                                                      std::uint64_t number, std::string kind,
                                                      std::vector<manifest_fact> facts,
                                                      std::shared_ptr<const row_spread> spread,
                                                      std::vector<std::optional<shard_part>>&& shards) {
  return std::make_unique<entry_of_sharded_array>(std::move(name), comm, number, std::move(kind),
                                                  std::move(facts), std::move(spread), std::move(shards));
}

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

/// "checkpoint::<verb> of 'a', 'b'"
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

/// Tables and states that were made one after the other have different numbers, also if they are alike.
agreed_property number_of(const ranked_entry& entry) {
  return {entry_words(entry.name()) + ": the object", "number " + std::to_string(entry.number())};
}
std::string digest_text(const sharded_rows& rows) {
  return "of digest " + std::to_string(rows.spread().digest());
}

/// Properties that a save by ranks agrees on: everything but the elements of arrays. Of numbers the value,
/// too, and of states the recorded steps.
std::vector<agreed_property> properties_of(const checkpoint_content& content,
                                           const std::vector<checkpoint_entry*>& objects) {
  std::vector<agreed_property> properties;
  std::size_t i = 0, object = 0;
  for (const auto& entry : content.entries) {
    const std::string owner = entry_words(entry.name);
    properties.push_back({owner, "of kind '" + entry.kind + "'"});
    if (const auto* ranked = as_ranked(*objects[object++])) properties.push_back(number_of(*ranked));
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

/// Collective: why the ranks' properties differ, the same text on all; empty if they agree.
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

/// Throws protocol_error on all ranks, and breaks the group, unless `difference` is empty.
void require_no_difference(const communicator& comm, const call_note& note, const std::string& difference) {
  if (difference.empty()) return;
  try {
    collective call(comm, call_note(note).add_hidden(note_part::content, comm.rank()));
    call.agree();
  } catch (const protocol_error&) {
    throw protocol_error("ferry::io::" + std::string(note.words()) + ": the ranks differ: " + difference);
  }
}

/// The objects as this rank has them.
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
      const auto chunk_numbers = shares.chunks_of(own_rank, round);
      std::vector<chunk_rows> located(chunk_numbers.size());
      std::vector<std::size_t> expected(static_cast<std::size_t>(call_.ranks()), 0);
      moved.clear();
      if (rows != nullptr) {
        for (int r = 0; r < call_.ranks(); ++r)
          if (r == own_rank || !rows->spread().replicates())
            pack_for(r, *rows, shares, round, located, moved);
        for (const auto& chunk : located)
          for (int r = 0; r < call_.ranks(); ++r) expected[static_cast<std::size_t>(r)] += chunk.bytes_of(r);
      }
      moved.expect(own_rank, expected);
      moved.exchange(call_);
      if (!chunk_numbers.empty()) write_chunks(array, shares, chunk_numbers, located, moved);
    }
  }
  /// The rows of this rank in the chunks that `rank` writes in a round.
  void pack_for(int rank, const sharded_rows& rows, const chunk_shares& shares, std::size_t round,
                std::vector<chunk_rows>& located, rank_buffers& moved) {
    const int own_rank = call_.rank();
    chunk_rows remote;
    std::size_t i = 0;
    for (const std::size_t chunk_number : shares.chunks_of(rank, round)) {
      const chunk_span span = shares.span_of(chunk_number);
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
                    std::span<const std::size_t> chunk_numbers, const std::vector<chunk_rows>& located,
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
        packed_parts[i].push_back(moved.arrived(static_cast<int>(r), call_.rank()).data() + before[r]);
        before[r] += located[i].bytes_of(static_cast<int>(r));
      }
    const std::size_t first = stored_.size();
    stored_.resize(first + chunk_numbers.size());
    parallel(static_cast<std::int64_t>(chunk_numbers.size()), 1, threads_for_chunks(threads_),
             [&](front_queue& turns, int) {
               std::vector<std::byte> bytes, scratch;
               for (std::size_t i = 0; turns.take(i);) {
                 const chunk_span span = shares.span_of(chunk_numbers[i]);
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
      for (const auto& share : shares_) count += share.chunks_of(static_cast<int>(r)).size();
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
          for (const std::size_t chunk_number : shares->chunks_of(static_cast<int>(r))) {
            const stored_chunk& chunk = pieces[r][next[r]++];
            array.chunks[chunk_number].piece = {position[r], chunk.offset,
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

namespace {

/// The memory of one rank for the rows of all sharded arrays of a load.
struct ranked_row_buffers {
  ranked_row_buffers(int ranks, int threads)
      : moved(ranks),
        chunks(chunk_shares::at_once),
        converted(static_cast<std::size_t>(std::max(1, threads))),
        patches(converted.size()),
        expected(static_cast<std::size_t>(ranks)) {}

  /// Takes what the chunks of an array need. The first look at the rows of the ranks takes the rest.
  void reserve(const load_step& step, const chunk_shares& shares) {
    std::size_t chunk = 0, patch = 0;
    for (std::size_t i = 0; i < step.stored->chunks.size(); ++i) {
      chunk = std::max(
          {chunk, static_cast<std::size_t>(step.stored->bytes_of_chunk(i)), shares.span_of(i).bytes});
      for (const auto& stored : step.stored->chunks[i].patches)
        patch = std::max(patch, patch_bytes(*step.stored, stored.units));
    }
    for (auto* const list : {&chunks, &converted})
      for (auto& buffer : *list) buffer.reserve(chunk);
    for (auto& buffer : patches) buffer.reserve(patch);
  }

  rank_buffers moved;
  std::vector<std::vector<std::byte>> chunks;              ///< of a round
  std::vector<std::vector<std::byte>> converted, patches;  ///< of each thread
  chunk_rows rows{};                                       ///< of a chunk
  std::vector<std::size_t> expected;
  std::vector<std::byte*> parts{};
  std::vector<std::byte> scratch{};
  bounce_buffer bounce{};
};

/// The rows of one sharded array on their way from the file to their owners. Each rank reads a share of the
/// chunks, and sends the rows to the owners.
class ranked_rows {
  using buffers = ranked_row_buffers;

 public:
  ranked_rows(const load_step& step, int rank, int ranks)
      : step_(step),
        rows_(*rows_of_shards(step.target)),
        shares_(*step.stored, step.target, ranks, true),
        rank_(rank),
        ranks_(ranks) {}

  /// Fills the shard of this rank. Before that all ranks call it without `writes`: it reads all chunks, so that
  /// a damaged file changes no row, and takes the memory of the second call, which takes none but for
  /// scattered rows on a device; the messages of a transport may.
  void load(collective& call, const checkpoint_files& files, buffers& room, bool writes) const {
    if (!writes) room.reserve(step_, shares_);
    const bool replicates = rows_.spread().replicates();
    for (std::size_t round = 0; round < shares_.rounds(); ++round) {
      read_elements(files, shares_.chunks_of(rank_, round), room);
      room.moved.clear();
      for_each_chunk_of(rank_, round, room.rows, [&](std::size_t i) {
        room.parts.clear();
        for (int r = 0; r < ranks_; ++r)
          room.parts.push_back(
              rank_buffers::more(room.moved.out[static_cast<std::size_t>(r)], room.rows.bytes_of(r)));
        room.rows.part(room.chunks[i].data(), room.parts);
      });
      std::fill(room.expected.begin(), room.expected.end(), 0);
      for (int r = 0; r < ranks_ && !replicates; ++r)
        if (r != rank_)
          for_each_chunk_of(r, round, room.rows, [&](std::size_t) {
            room.expected[static_cast<std::size_t>(r)] += room.rows.bytes_of(rank_);
          });
      room.moved.expect(rank_, room.expected);
      if (writes)
        room.moved.exchange(call);
      else
        call.agree();  // one rank may read more slowly than others wait
      for (int r = 0; r < ranks_; ++r) {
        if (replicates && r != rank_) continue;
        const std::byte* packed = room.moved.arrived(r, rank_).data();
        for_each_chunk_of(r, round, room.rows, [&](std::size_t) {
          const std::size_t bytes = room.rows.bytes_of(rank_);
          if (bytes != 0) unpack(packed, bytes, room, writes);
          packed += bytes;
        });
      }
    }
  }

 private:
  /// Calls visit(i) for the chunks that rank `r` reads in a round, with the rows of the chunk in `rows`.
  template <class Visit>
  void for_each_chunk_of(int r, std::size_t round, chunk_rows& rows, const Visit& visit) const {
    const auto chunks = shares_.chunks_of(r, round);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const chunk_span span = shares_.span_of(chunks[i]);
      rows.locate(rows_.spread(), rows_.row_bytes(), span.offset, span.bytes, rank_);
      visit(i);
    }
  }
  void unpack(const std::byte* packed, std::size_t bytes, buffers& room, bool writes) const {
    if (rows_.is_on_device()) {
      std::byte* const copied_bytes = room.bounce.room(bytes);
      std::memcpy(copied_bytes, packed, bytes);
      packed = copied_bytes;
    }
    if (writes)
      rows_.unpack(room.rows, rank_, packed, room.scratch);
    else
      room.scratch.reserve(rows_.most_scratch_bytes(bytes));
  }
  /// Chunks of the file as elements of the array.
  void read_elements(const checkpoint_files& files, std::span<const std::size_t> chunks,
                     buffers& room) const {
    const auto threads = threads_for_chunks(static_cast<int>(room.converted.size()));
    parallel(static_cast<std::int64_t>(chunks.size()), 1, threads, [&](front_queue& turns, int thread) {
      auto& converted = room.converted[static_cast<std::size_t>(thread)];
      auto& patch = room.patches[static_cast<std::size_t>(thread)];
      for (std::size_t i = 0; turns.take(i);) {
        auto& bytes = room.chunks[i];
        bytes.resize(static_cast<std::size_t>(step_.stored->bytes_of_chunk(chunks[i])));
        files.read_chunk(*step_.stored, chunks[i], bytes.data(), patch, step_.label);
        if (as_elements(step_, bytes, converted) == converted.data()) bytes.swap(converted);
      }
    });
  }

  const load_step& step_;
  const sharded_rows& rows_;
  chunk_shares shares_;
  int rank_;
  int ranks_;
};

void add_choice(call_note& note, const io::load_options& options) {
  note.add_hidden(note_part::values, options.generation)
      .add_hidden_bytes(note_part::values, options.name.data(), options.name.size());
}

/// A load by all ranks, one thread each. Each reads a share of the chunks of sharded arrays, and sends their
/// rows to the owners. Everything else is loaded by one rank for each checkpoint object: ranks of one process
/// may share it.
class ranked_load {
 public:
  ranked_load(const communicator& comm, const ranks_call& call, const io::load_options& options)
      : comm_(comm),
        call_(call),
        options_(options),
        threads_(chunk_threads_of_rank(comm.group()->local_count())),
        memory_(threads_),
        buffers_(comm.group()->size(), threads_) {}

  void run() {
    call_note note = note_of_checkpoint("load", call_);
    note.add_hidden(note_part::values, options_.convert).add_hidden(note_part::values, options_.partial);
    add_choice(note, options_);
    collective before(comm_, note);
    before.guarded([&] {
      find_leader(before);
      open(before);
      prepare();
      difference_ = difference_of_ranks(before, properties_);
      before.close();
    });
    require_no_difference(comm_, note, difference_);
    collective call(comm_, note);
    call.guarded([&] {
      check(call);
      for (const auto& rows : spread_) rows->load(call, *files_, buffers_, true);
      call.agree();
      // Ranks of one process may have added the same variable: one after the other.
      const int turn = comm_.acting_rank() - comm_.group()->first_local();
      for (int i = 0; i < rounds_; ++i) {
        if (i == turn) commit();
        call.agree();
      }
      call.close();
    });
  }

 private:
  /// The first rank of this process that loads into the same object.
  void find_leader(collective& call) {
    struct member {
      std::uintptr_t object;
      std::int64_t local_ranks;
    };
    const member own_member{reinterpret_cast<std::uintptr_t>(call_.object), comm_.group()->local_count()};
    const auto ranks = call.all_gather(std::span<const member>(&own_member, 1));
    int leader = comm_.group()->first_local();
    while (leader < call.rank() && ranks[static_cast<std::size_t>(leader)].object != own_member.object)
      ++leader;
    leads_ = leader == call.rank();
    for (const member& rank_member : ranks)
      rounds_ = std::max(rounds_, static_cast<int>(rank_member.local_ranks));
  }
  /// Arrays that are not spread, and what else the objects have.
  void commit() {
    for (const auto& step : rank_steps_) load_array(*files_, step, memory_);
    for (const auto& entry : acting_) entry->commit();
    for (auto* entry : call_.entries)
      if (leads_ && as_ranked(*entry) == nullptr) entry->commit();
  }

  /// Rank 0 reads the manifest, so that all ranks load the same one. A save by others may remove files
  /// between the two looks; then the new manifest is read.
  void open(collective& call) {
    for (int tries = 0; tries < 8; ++tries) {
      std::string bytes;
      if (call.rank() == 0) bytes = manifest_bytes(call_.path, {options_.generation, options_.name});
      const std::uint64_t size = bytes.size();
      bytes.resize(
          static_cast<std::size_t>(call.all_gather(std::span<const std::uint64_t>(&size, 1)).front()));
      std::vector<outgoing_part> outgoing(static_cast<std::size_t>(call.ranks()));
      std::vector<incoming_part> incoming(outgoing.size());
      for (std::size_t r = 1; r < outgoing.size() && call.rank() == 0; ++r)
        outgoing[r] = {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
      if (call.rank() != 0) incoming[0] = {reinterpret_cast<std::byte*>(bytes.data()), bytes.size()};
      call.exchange(outgoing, incoming);
      manifest_ = decode(bytes, manifest_path(call_.path));
      bool gone = false;
      files_ = std::make_unique<checkpoint_files>(call_.path, manifest_, tries < 7 ? &gone : nullptr);
      const std::uint64_t lacks = gone ? 1 : 0;
      std::uint64_t lacking = 0;
      for (const auto lack : call.all_gather(std::span<const std::uint64_t>(&lacks, 1))) lacking += lack;
      if (lacking == 0) return;
    }
  }

  void prepare() {
    const load_source source{call_.path, *files_, options_.convert};
    for (auto* entry : call_.entries) {
      if (const auto* ranked = as_ranked(*entry)) {
        properties_.push_back(number_of(*ranked));
        acting_.push_back(ranked->acting(leads_));
        prepare_entry(source, manifest_, *acting_.back(), sharded_);
      } else if (leads_) {
        prepare_entry(source, manifest_, *entry, rank_steps_);
      }
    }
    if (!options_.partial) require_all_added(source, manifest_, call_.entries);
    for (const auto& step : sharded_) {
      rows_of_shards(step.target)->wait_for_all();
      spread_.push_back(std::make_unique<ranked_rows>(step, comm_.acting_rank(), comm_.group()->size()));
      properties_.push_back({step.label, step.target.schema.describe()});
      properties_.push_back({step.label + ", sharding", digest_text(*rows_of_shards(step.target))});
    }
    for (const auto& step : rank_steps_) {
      if (step.target.accesses != nullptr) step.target.accesses->wait_for_all();
      memory_.reserve(step);
    }
  }

  /// Reads everything once, before anything is changed.
  void check(collective& call) {
    for (const auto& step : rank_steps_) check_array(call_.path, *files_, step, memory_);
    for (const auto& rows : spread_) rows->load(call, *files_, buffers_, false);
    call.agree();
  }

  const communicator& comm_;
  const ranks_call& call_;
  const io::load_options& options_;
  int threads_;
  bool leads_ = true;
  int rounds_ = 1;  ///< ranks of a process
  manifest manifest_;
  std::unique_ptr<checkpoint_files> files_;
  std::vector<std::unique_ptr<checkpoint_entry>> acting_;  ///< the sharded objects
  std::vector<load_step> sharded_, rank_steps_;
  std::vector<agreed_property> properties_;
  std::string difference_;
  load_memory memory_;  ///< for what is not spread
  std::vector<std::unique_ptr<ranked_rows>> spread_;
  ranked_row_buffers buffers_;
};

}  // namespace

void ranks_of_group::load(const ranks_call& call, const io::load_options& options) const {
  ranked_load(comm_, call, options).run();
}

bool ranks_of_group::exists(const ranks_call& request, const io::load_options& options) const {
  call_note note = note_of_checkpoint("exists", request);
  add_choice(note, options);
  collective call(comm_, note);
  return call.guarded([&] {
    std::uint64_t is_here = 0;
    if (call.rank() == 0) is_here = find_manifest(request.path, {options.generation, options.name}) ? 1 : 0;
    is_here = call.all_gather(std::span<const std::uint64_t>(&is_here, 1)).front();
    call.close();
    return is_here != 0;
  });
}

}  // namespace ferry::detail
