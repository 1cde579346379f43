// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/ranked_entry.hpp>

#include "../../../backends/enabled.hpp"
#include "chunk_shares.hpp"
#include "rank_content.hpp"
#include "ranked_rows.hpp"
#include "sharded_rows.hpp"

#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/io/checkpoint_options.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>

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
