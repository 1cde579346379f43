// SPDX-License-Identifier: Apache-2.0

#include "../../../backends/enabled.hpp"
#include "chunk_rows.hpp"

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/checkpoint_save.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/memory/detail/function_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
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

ranked_row_buffers::ranked_row_buffers(int ranks, int threads)
    : moved(ranks),
      converted(static_cast<std::size_t>(std::max(1, threads))),
      patches(converted.size()),
      located(static_cast<std::size_t>(ranks)),
      expected(static_cast<std::size_t>(ranks)) {
  parts.reserve(expected.size());
}

ranked_rows::ranked_rows(const load_step& step, int rank, int ranks)
    : step_(step),
      rows_(*rows_of_shards(step.target)),
      shares_(*step.stored, step.target, ranks, true),
      rank_(rank),
      ranks_(ranks) {}

void ranked_rows::reserve(buffers& room) const {
  std::size_t chunk = 0, patch = 0, run = 0;
  std::vector<std::size_t> leaving(static_cast<std::size_t>(ranks_)), coming(leaving.size());
  for (std::size_t place = 0; place < step_.stored->chunks.size(); ++place) {
    chunk = std::max(
        {chunk, static_cast<std::size_t>(step_.stored->bytes_of_chunk(place)), shares_.span_of(place).bytes});
    for (const auto& stored : step_.stored->chunks[place].patches)
      patch = std::max(patch, patch_bytes(*step_.stored, stored.units));
  }
  for (std::size_t round = 0; round < shares_.rounds(); ++round) {
    begin(round, room);
    std::fill(leaving.begin(), leaving.end(), 0);
    std::fill(coming.begin(), coming.end(), 0);
    for (int r = 0; r < ranks_; ++r) {
      if (r != rank_ && rows_.spread().replicates()) continue;
      for_each_chunk_of(r, round, room, [&](std::size_t, const chunk_rows& rows) {
        coming[static_cast<std::size_t>(r)] += rows.bytes_of(rank_);
        run = std::max(run, rows.bytes_of(rank_));
        for (int owner = 0; owner < ranks_ && r == rank_; ++owner)
          leaving[static_cast<std::size_t>(owner)] += rows.bytes_of(owner);
      });
    }
    // The bytes that stay here change places with those that have come.
    const auto rank = static_cast<std::size_t>(rank_);
    coming[rank] = leaving[rank] = std::max(coming[rank], leaving[rank]);
    for (std::size_t r = 0; r < leaving.size(); ++r) {
      room.moved.out[r].reserve(leaving[r]);
      room.moved.in[r].reserve(coming[r]);
    }
    const std::size_t count = shares_.places_of(rank_, round).size();
    if (room.chunks.size() < count) room.chunks.resize(count);
  }
  for (auto* const list : {&room.chunks, &room.converted})
    for (auto& buffer : *list) buffer.reserve(chunk);
  for (auto& buffer : room.patches) buffer.reserve(patch);
  room.scratch.reserve(rows_.most_scratch_bytes(run));
  if (rows_.is_on_device() && run != 0) static_cast<void>(room.bounce.room(run));
}

void ranked_rows::load(collective& call, const checkpoint_files& files, buffers& room) const {
  for (std::size_t round = 0; round < shares_.rounds(); ++round) {
    begin(round, room);
    read_elements(files, shares_.places_of(rank_, round), room);
    room.moved.clear();
    for_each_chunk_of(rank_, round, room, [&](std::size_t i, const chunk_rows& rows) {
      room.parts.clear();
      for (int r = 0; r < ranks_; ++r)
        room.parts.push_back(room.moved.more(room.moved.out[static_cast<std::size_t>(r)], rows.bytes_of(r)));
      rows.part(room.chunks[i].data(), room.parts);
    });
    const bool replicates = rows_.spread().replicates();
    std::fill(room.expected.begin(), room.expected.end(), 0);
    for (int r = 0; r < ranks_ && !replicates; ++r)
      if (r != rank_)
        for_each_chunk_of(r, round, room, [&](std::size_t, const chunk_rows& rows) {
          room.expected[static_cast<std::size_t>(r)] += rows.bytes_of(rank_);
        });
    room.moved.exchange(call, room.expected);
    for (int r = 0; r < ranks_; ++r) {
      if (replicates && r != rank_) continue;
      const std::byte* packed = room.moved.in[static_cast<std::size_t>(r)].data();
      for_each_chunk_of(r, round, room, [&](std::size_t, const chunk_rows& rows) {
        const std::size_t bytes = rows.bytes_of(rank_);
        if (bytes != 0) unpack(rows, packed, bytes, room);
        packed += bytes;
      });
    }
  }
}

void ranked_rows::begin(std::size_t round, buffers& room) const {
  for (int r = 0; r < ranks_; ++r) {
    auto& located = room.located[static_cast<std::size_t>(r)];
    if (located.size() < shares_.places_of(r, round).size())
      located.resize(shares_.places_of(r, round).size());
    for (auto& chunk : located) chunk.clear();
  }
}

void ranked_rows::for_each_chunk_of(int r, std::size_t round, buffers& room,
                                    function_ref<void(std::size_t, const chunk_rows&)> visit) const {
  const auto places = shares_.places_of(r, round);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const chunk_span span = shares_.span_of(places[i]);
    const bool keeps = span.bytes / rows_.row_bytes() <= most_kept;
    chunk_rows& rows = keeps ? room.located[static_cast<std::size_t>(r)][i] : room.last;
    if (!keeps || rows.rows() == 0)
      rows.locate(rows_.spread(), rows_.row_bytes(), span.offset, span.bytes, rank_);
    visit(i, rows);
  }
}

void ranked_rows::unpack(const chunk_rows& rows, const std::byte* packed, std::size_t bytes,
                         buffers& room) const {
  if (rows_.is_on_device()) {
    std::byte* const copied_bytes = room.bounce.room(bytes);
    std::memcpy(copied_bytes, packed, bytes);
    packed = copied_bytes;
  }
  rows_.unpack(rows, rank_, packed, room.scratch);
}

void ranked_rows::read_elements(const checkpoint_files& files, std::span<const std::size_t> places,
                                buffers& room) const {
  const auto threads = threads_for_chunks(static_cast<int>(room.converted.size()));
  parallel(static_cast<std::int64_t>(places.size()), 1, threads, [&](front_queue& chunks, int thread) {
    auto& converted = room.converted[static_cast<std::size_t>(thread)];
    auto& patch = room.patches[static_cast<std::size_t>(thread)];
    for (std::size_t i = 0; chunks.take(i);) {
      auto& bytes = room.chunks[i];
      bytes.resize(static_cast<std::size_t>(step_.stored->bytes_of_chunk(places[i])));
      files.read_chunk(*step_.stored, places[i], bytes.data(), patch, step_.label);
      if (as_elements(step_, bytes, converted) == converted.data()) bytes.swap(converted);
    }
  });
}

namespace {

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
      for (const auto& rows : spread_) rows->load(call, *files_, buffers_);
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
    struct place {
      std::uintptr_t object;
      std::int64_t local_ranks;
    };
    const place own_place{reinterpret_cast<std::uintptr_t>(call_.object), comm_.group()->local_count()};
    const auto ranks = call.all_gather(std::span<const place>(&own_place, 1));
    int leader = comm_.group()->first_local();
    while (leader < call.rank() && ranks[static_cast<std::size_t>(leader)].object != own_place.object)
      ++leader;
    leads_ = leader == call.rank();
    for (const place& rank_place : ranks)
      rounds_ = std::max(rounds_, static_cast<int>(rank_place.local_ranks));
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
      spread_.back()->reserve(buffers_);
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
    const auto ranks = static_cast<std::size_t>(call.ranks()),
               place_of_rank = static_cast<std::size_t>(call.rank());
    for (const auto& step : sharded_) {
      const std::size_t chunks = step.stored->chunks.size();
      for (std::size_t first = 0; first < chunks; first += ranks * checked_at_once) {
        const std::size_t begin = first + place_of_rank;
        const std::size_t end = std::min(chunks, first + ranks * checked_at_once);
        const std::size_t count = begin < end ? (end - begin + ranks - 1) / ranks : 0;
        parallel(static_cast<std::int64_t>(count), 1, threads_for_chunks(threads_),
                 [&](front_queue& turns, int) {
                   std::vector<std::byte> bytes, scratch;
                   for (std::size_t i = 0; turns.take(i);) read(step, begin + i * ranks, bytes, scratch);
                 });
        call.agree();  // one rank may read more slowly than others wait
      }
    }
    call.agree();
  }
  void read(const load_step& step, std::size_t place, std::vector<std::byte>& bytes,
            std::vector<std::byte>& scratch) const {
    bytes.resize(static_cast<std::size_t>(step.stored->bytes_of_chunk(place)));
    files_->read_chunk(*step.stored, place, bytes.data(), scratch, step.label);
  }

  static constexpr std::size_t checked_at_once = 64;

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
