// SPDX-License-Identifier: Apache-2.0
#include "ranked_rows.hpp"

#include "../../../backends/enabled.hpp"

#include <ferry/io/detail/checkpoint_load.hpp>
#include <ferry/io/detail/chunk_threads.hpp>

#include <algorithm>
#include <atomic>
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
  to.reserve(expected.size());
}

ranked_rows::ranked_rows(const load_step& step, int here, int ranks)
    : step_(step),
      rows_(*rows_of_shards(step.to)),
      shares_(*step.from, step.to, ranks, true),
      here_(here),
      ranks_(ranks) {}

void ranked_rows::reserve(buffers& with) const {
  std::size_t chunk = 0, patch = 0, run = 0;
  std::vector<std::size_t> leaving(static_cast<std::size_t>(ranks_)), coming(leaving.size());
  for (std::size_t place = 0; place < step_.from->chunks.size(); ++place) {
    chunk = std::max(
        {chunk, static_cast<std::size_t>(step_.from->bytes_of_chunk(place)), shares_.span_of(place).bytes});
    for (const auto& each : step_.from->chunks[place].patches)
      patch = std::max(patch, patch_bytes(*step_.from, each.units));
  }
  for (std::size_t round = 0; round < shares_.rounds(); ++round) {
    begin(round, with);
    std::fill(leaving.begin(), leaving.end(), 0);
    std::fill(coming.begin(), coming.end(), 0);
    for (int r = 0; r < ranks_; ++r) {
      if (r != here_ && rows_.spread().replicates()) continue;
      for_each_chunk_of(r, round, with, [&](std::size_t, const chunk_rows& rows) {
        coming[static_cast<std::size_t>(r)] += rows.bytes_of(here_);
        run = std::max(run, rows.bytes_of(here_));
        for (int owner = 0; owner < ranks_ && r == here_; ++owner)
          leaving[static_cast<std::size_t>(owner)] += rows.bytes_of(owner);
      });
    }
    // The bytes that stay here change places with those that have come.
    const auto own = static_cast<std::size_t>(here_);
    coming[own] = leaving[own] = std::max(coming[own], leaving[own]);
    for (std::size_t r = 0; r < leaving.size(); ++r) {
      with.moved.out[r].reserve(leaving[r]);
      with.moved.in[r].reserve(coming[r]);
    }
    const std::size_t count = shares_.of(here_, round).size();
    if (with.chunks.size() < count) with.chunks.resize(count);
  }
  for (auto* const list : {&with.chunks, &with.converted})
    for (auto& each : *list) each.reserve(chunk);
  for (auto& each : with.patches) each.reserve(patch);
  with.scratch.reserve(rows_.most_scratch_bytes(run));
  if (rows_.is_on_device() && run != 0) static_cast<void>(with.bounce.room(run));
}

void ranked_rows::load(collective& call, const checkpoint_files& files, buffers& with) const {
  for (std::size_t round = 0; round < shares_.rounds(); ++round) {
    begin(round, with);
    read_elements(files, shares_.of(here_, round), with);
    with.moved.clear();
    for_each_chunk_of(here_, round, with, [&](std::size_t i, const chunk_rows& rows) {
      with.to.clear();
      for (int r = 0; r < ranks_; ++r)
        with.to.push_back(with.moved.more(with.moved.out[static_cast<std::size_t>(r)], rows.bytes_of(r)));
      rows.part(with.chunks[i].data(), with.to);
    });
    const bool replicates = rows_.spread().replicates();
    std::fill(with.expected.begin(), with.expected.end(), 0);
    for (int r = 0; r < ranks_ && !replicates; ++r)
      if (r != here_)
        for_each_chunk_of(r, round, with, [&](std::size_t, const chunk_rows& rows) {
          with.expected[static_cast<std::size_t>(r)] += rows.bytes_of(here_);
        });
    with.moved.exchange(call, with.expected);
    for (int r = 0; r < ranks_; ++r) {
      if (replicates && r != here_) continue;
      const std::byte* from = with.moved.in[static_cast<std::size_t>(r)].data();
      for_each_chunk_of(r, round, with, [&](std::size_t, const chunk_rows& rows) {
        const std::size_t bytes = rows.bytes_of(here_);
        if (bytes != 0) unpack(rows, from, bytes, with);
        from += bytes;
      });
    }
  }
}

void ranked_rows::begin(std::size_t round, buffers& with) const {
  for (int r = 0; r < ranks_; ++r) {
    auto& kept = with.located[static_cast<std::size_t>(r)];
    if (kept.size() < shares_.of(r, round).size()) kept.resize(shares_.of(r, round).size());
    for (auto& each : kept) each.clear();
  }
}

void ranked_rows::for_each_chunk_of(int r, std::size_t round, buffers& with,
                                    function_ref<void(std::size_t, const chunk_rows&)> visit) const {
  const auto places = shares_.of(r, round);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const chunk_span at = shares_.span_of(places[i]);
    const bool keeps = at.bytes / rows_.row_bytes() <= most_kept;
    chunk_rows& rows = keeps ? with.located[static_cast<std::size_t>(r)][i] : with.last;
    if (!keeps || rows.rows() == 0)
      rows.locate(rows_.spread(), rows_.row_bytes(), at.offset, at.bytes, here_);
    visit(i, rows);
  }
}

void ranked_rows::unpack(const chunk_rows& rows, const std::byte* from, std::size_t bytes,
                         buffers& with) const {
  if (rows_.is_on_device()) {
    std::byte* const between = with.bounce.room(bytes);
    std::memcpy(between, from, bytes);
    from = between;
  }
  rows_.unpack(rows, here_, from, with.scratch);
}

void ranked_rows::read_elements(const checkpoint_files& files, std::span<const std::size_t> places,
                                buffers& with) const {
  std::atomic<std::size_t> next{0};
  for_each_chunk(places.size(), static_cast<int>(with.converted.size()), [&] {
    const std::size_t thread = next++;
    return [&, &made = with.converted[thread], &patch = with.patches[thread]](std::size_t i) {
      auto& bytes = with.chunks[i];
      bytes.resize(static_cast<std::size_t>(step_.from->bytes_of_chunk(places[i])));
      files.read_chunk(*step_.from, places[i], bytes.data(), patch, step_.what);
      if (as_elements(step_, bytes, made) == made.data()) bytes.swap(made);
    };
  });
}

}  // namespace ferry::detail
