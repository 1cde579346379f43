// SPDX-License-Identifier: Apache-2.0
#include "sharded_rows.hpp"

#include "../../../backends/enabled.hpp"

#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ferry::detail {

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

}  // namespace ferry::detail
