// SPDX-License-Identifier: Apache-2.0

#include "chunk_rows.hpp"
#include "../../../backends/enabled.hpp"

#include <ferry/distributed/sharded/detail/sharded_entries.hpp>
#include <ferry/distributed/sharded/detail/sharded_rows.hpp>
#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

void chunk_rows::locate(const row_spread& spread, std::uint64_t row_bytes, std::uint64_t offset,
                        std::size_t bytes, int rank) {
  row_bytes_ = row_bytes;
  skipped_ = offset % row_bytes;
  bytes_ = bytes;
  const auto first = static_cast<std::int64_t>(offset / row_bytes);
  const auto count = static_cast<std::size_t>((skipped_ + bytes + row_bytes - 1) / row_bytes);
  owners_.resize(count);
  places_.resize(count);
  if (spread.replicates()) {
    std::fill(owners_.begin(), owners_.end(), rank);
    for (std::size_t i = 0; i < count; ++i) places_[i] = first + static_cast<std::int64_t>(i);
  } else {
    spread.locate(first, owners_, places_);
  }
  bytes_of_rank_.assign(static_cast<std::size_t>(spread.ranks()), 0);
  for (std::size_t i = 1; i + 1 < count; ++i)
    bytes_of_rank_[static_cast<std::size_t>(owners_[i])] += row_bytes;
  bytes_of_rank_[static_cast<std::size_t>(owners_[0])] += bytes_of_row(0);
  if (count > 1) bytes_of_rank_[static_cast<std::size_t>(owners_[count - 1])] += bytes_of_row(count - 1);
}

void chunk_rows::reserve(std::size_t rows, int ranks) {
  owners_.reserve(rows);
  places_.reserve(rows);
  bytes_of_rank_.reserve(static_cast<std::size_t>(ranks));
}

std::vector<std::int64_t> chunk_rows::places_of(int rank) const {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < owners_.size(); ++i)
    if (owners_[i] == rank) places.push_back(places_[i]);
  return places;
}

void chunk_rows::join(std::vector<const std::byte*> parts, std::byte* chunk) const {
  for_each_owner([&](int owner, std::size_t count) {
    const std::byte*& next = parts[static_cast<std::size_t>(owner)];
    std::memcpy(chunk, next, count);
    next += count;
    chunk += count;
  });
}

void chunk_rows::part(const std::byte* chunk, std::vector<std::byte*>& parts) const {
  for_each_owner([&](int owner, std::size_t count) {
    std::byte*& next = parts[static_cast<std::size_t>(owner)];
    std::memcpy(next, chunk, count);
    next += count;
    chunk += count;
  });
}

chunk_shares::chunk_shares(const manifest_array& in_file, const checkpoint_array& array, int ranks,
                           bool replicas)
    : file_(&in_file), element_bytes_(array.schema.element_bytes), shares_(static_cast<std::size_t>(ranks)) {
  const sharded_rows* const rows = rows_of_shards(array);
  for (std::size_t place = 0; place < in_file.chunk_count(); ++place) {
    if (rows != nullptr && replicas && rows->spread().replicates()) {
      for (auto& share : shares_) share.push_back(place);
      continue;
    }
    std::size_t who = 0;
    if (rows != nullptr) {
      const chunk_span span = span_of(place);
      const auto owner = [&](std::uint64_t byte) {
        return rows->spread().owner(static_cast<std::int64_t>(byte / rows->row_bytes()));
      };
      const int first = owner(span.offset), last = owner(span.offset + span.bytes - 1);
      who = rows->spread().replicates() || first != last ? place % shares_.size()
                                                         : static_cast<std::size_t>(first);
    }
    shares_[who].push_back(place);
  }
  for (const auto& share : shares_) rounds_ = std::max(rounds_, (share.size() + at_once - 1) / at_once);
}

std::span<const std::size_t> chunk_shares::places_of(int rank, std::size_t round) const {
  const auto& share = places_of(rank);
  const std::size_t begin = std::min(share.size(), round * at_once);
  const std::size_t end = std::min(share.size(), begin + at_once);
  return std::span(share).subspan(begin, end - begin);
}

void rank_buffers::exchange(collective& call, const std::vector<std::size_t>& expected) {
  const auto rank = static_cast<std::size_t>(call.rank());
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (r == rank) continue;
    in[r].resize(expected[r]);
    outgoing_[r] = {out[r].data(), out[r].size()};
    incoming_[r] = {in[r].data(), in[r].size()};
  }
  call.exchange(outgoing_, incoming_);
  std::swap(in[rank], out[rank]);
}

int chunk_threads_of_rank(int local_ranks) { return std::max(1, chunk_threads() / local_ranks); }

rows_on_wire::rows_on_wire(const std::vector<std::int64_t>& numbers, std::uint64_t row_bytes)
    : places("places", numbers.size()), rows("rows of a shard", numbers.size(), row_bytes) {
  std::memcpy(places.data(), numbers.data(), numbers.size() * sizeof(std::int64_t));
}

void sharded_rows::wait_for_writes() const {
  for (const auto& shard : parts_)
    if (shard.array.accesses != nullptr) shard.array.accesses->wait_for_writes();
}

void sharded_rows::wait_for_all() const {
  for (const auto& shard : parts_)
    if (shard.array.accesses != nullptr) shard.array.accesses->wait_for_all();
}

void sharded_rows::pack(const chunk_rows& rows, int rank, std::byte* out) const {
  const shard_part& part = part_of(rank);
  if (by_kernel(rows, rank)) {
    const std::lock_guard lock(instance_);
    return part.gather(comm_, rank, part.array, rows.places_of(rank), out);
  }
  std::vector<std::byte> scratch;
  rows.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
    part.array.read(offset, count, out, scratch);
    out += count;
  });
}

std::size_t sharded_rows::most_scratch_bytes(std::size_t bytes) const {
  std::size_t most = 0;
  for (const auto& shard : parts_) most = std::max(most, shard.array.most_scratch_bytes(bytes));
  return most;
}

void sharded_rows::unpack(const chunk_rows& rows, int rank, const std::byte* packed_rows,
                          std::vector<std::byte>& scratch) const {
  const shard_part& part = part_of(rank);
  if (by_kernel(rows, rank)) {
    const std::lock_guard lock(instance_);
    return part.scatter(comm_, rank, part.array, rows.places_of(rank), packed_rows);
  }
  rows.for_each_run(rank, [&](std::uint64_t offset, std::size_t count) {
    part.array.write(offset, count, packed_rows, scratch);
    packed_rows += count;
  });
}

void sharded_rows::read(std::uint64_t offset, std::size_t bytes, std::byte* out) const {
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

void sharded_rows::write(std::uint64_t offset, std::size_t bytes, const std::byte* data,
                         const std::shared_ptr<void>& room) const {
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

void sharded_rows::reserve(std::shared_ptr<void>& room, std::size_t bytes) const {
  if (room == nullptr) room = std::make_shared<write_room>();
  auto& writing = *static_cast<write_room*>(room.get());
  writing.rows.reserve(static_cast<std::size_t>(bytes / std::max<std::uint64_t>(1, row_bytes())) + 2,
                       spread_->ranks());
  writing.packed.reserve(bytes);
  writing.parts.reserve(static_cast<std::size_t>(spread_->ranks()));
  writing.scratch.reserve(most_scratch_bytes(bytes));
}

bool sharded_rows::by_kernel(const chunk_rows& rows, int rank) const {
  constexpr std::size_t long_run = std::size_t{1} << 16;
  if (part_of(rank).gather == nullptr || !rows.is_whole()) return false;
  std::size_t runs = 0, bytes = 0;
  rows.for_each_run(rank, [&](std::uint64_t, std::size_t count) {
    ++runs;
    bytes += count;
  });
  return runs > 1 && bytes / runs < long_run;
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

}  // namespace ferry::detail
