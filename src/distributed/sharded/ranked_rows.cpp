// SPDX-License-Identifier: Apache-2.0
#include "ranked_rows.hpp"

#include "../../../backends/enabled.hpp"

#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/io/detail/checkpoint_entry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace ferry::detail {

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

}  // namespace ferry::detail
