// SPDX-License-Identifier: Apache-2.0
#include "merged_pieces.hpp"

#include <ferry/error.hpp>
#include <ferry/io/detail/checkpoint_folder.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/save_job.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

namespace ferry::detail {

std::vector<bool> files_to_empty(const manifest& content) {
  std::vector<bool> chosen(content.files.size(), false);
  if (content.files.size() < most_data_files) return chosen;
  std::vector<std::uint64_t> needed(content.files.size(), 0);
  for (const auto& entry : content.entries)
    for (const auto& array : entry.arrays)
      for (std::size_t place = 0; place < array.chunks.size(); ++place) {
        const auto& chunk = array.chunks[place];
        needed[chunk.piece.file] += array.bytes_of_chunk(place);
        for (const auto& patch : chunk.patches) needed[patch.piece.file] += patch_bytes(array, patch.units);
      }
  std::vector<std::size_t> order(needed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needed[a] < needed[b]; });
  order.resize(order.size() - most_data_files / 2);
  for (const std::size_t file : order) chosen[file] = true;
  return chosen;
}

void merged_pieces::move(const manifest_array& array, std::size_t place, manifest_chunk& chunk) const {
  if (leaves(chunk.piece) && rewrite(array, place, chunk)) return;
  auto& patches = chunk.patches;
  for (std::size_t first = 0; first < patches.size(); ++first) {
    std::size_t end = first;
    while (end < patches.size() && leaves(patches[end].piece)) ++end;
    if (end == first || !join(array, place, patches, first, end)) continue;
    patches.erase(patches.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  patches.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

bool merged_pieces::leaves(const manifest_piece& piece) const { return empties_[piece.file]; }

bool merged_pieces::rewrite(const manifest_array& array, std::size_t place, manifest_chunk& chunk) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(array.bytes_of_chunk(place))), scratch;
  try {
    source_.read_chunk(array, place, bytes.data(), scratch, "an array");
  } catch (const io_error&) {
    return false;
  }
  chunk = {target_.append(bytes.data(), bytes.size()), {}};
  return true;
}

bool merged_pieces::join(const manifest_array& array, std::size_t place, std::vector<manifest_patch>& patches,
                         std::size_t first, std::size_t end) const {
  const std::size_t unit = array.unit_bytes;
  const std::uint64_t most = (array.bytes_of_chunk(place) + unit - 1) / unit;
  struct moved {
    std::uint32_t position;
    std::size_t begin_byte;  ///< its first byte: the newest unit of a position is the last one
  };
  std::vector<moved> units;
  std::vector<std::byte> bytes;
  try {
    for (std::size_t i = first; i < end; ++i) {
      const std::size_t begin = bytes.size(), count = patches[i].units;
      bytes.resize(begin + patch_bytes(array, count));
      source_.read_piece(patches[i].piece, bytes.size() - begin, bytes.data() + begin, "an array");
      for (std::size_t k = 0; k < count; ++k) {
        std::uint32_t position = 0;
        std::memcpy(&position, bytes.data() + begin + k * sizeof position, sizeof position);
        if (position >= most) return false;
        units.push_back({position, begin + count * sizeof position + k * unit});
      }
    }
  } catch (const io_error&) {
    return false;
  }
  std::sort(units.begin(), units.end(), [](const moved& a, const moved& b) {
    return std::tie(a.position, b.begin_byte) < std::tie(b.position, a.begin_byte);
  });
  const auto last = std::unique(units.begin(), units.end(),
                                [](const moved& a, const moved& b) { return a.position == b.position; });
  units.erase(last, units.end());
  std::vector<std::byte> patch(patch_bytes(array, units.size()));
  std::byte* target = patch.data() + units.size() * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < units.size(); ++i, target += unit) {
    std::memcpy(patch.data() + i * sizeof(std::uint32_t), &units[i].position, sizeof(std::uint32_t));
    std::memcpy(target, bytes.data() + units[i].begin_byte, unit);
  }
  patches[first] = {target_.append(patch.data(), patch.size()), static_cast<std::uint32_t>(units.size())};
  return true;
}

}  // namespace ferry::detail
