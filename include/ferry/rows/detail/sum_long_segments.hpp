// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Segments of more than `most` values are summed with many loads in flight: in small batches by the kernels
/// that update rows, before they load anything else; in others by a kernel of their own, so that no thread
/// that updates waits for one row. Each sum has a row in a buffer. Long segments begin more than `most`
/// places apart, so begin / (most + 1) is a row that no other segment has.
struct long_segments {
  static constexpr std::int64_t most = 64;

  KOKKOS_FUNCTION static bool has(std::int64_t begin, std::int64_t end) { return end - begin > most; }
  KOKKOS_FUNCTION static std::int64_t slot(std::int64_t begin) { return begin / (most + 1); }
  /// Rows of the buffer for `positions` positions.
  static std::int64_t slots(std::int64_t positions) { return positions / (most + 1); }
};

/// tile = the sum of a segment's values, for the columns of a device's tile: the loads of several values are
/// in flight at once, the additions follow the order of the positions.
template <int UnderWay, class Tile, class Compute, class Source, class Value>
KOKKOS_FORCEINLINE_FUNCTION void sum_values(Compute (&tile)[Tile::elements], const Source& source,
                                            std::int64_t begin, std::int64_t end, const Value* values,
                                            std::int64_t stride, std::int64_t column, int count) {
  const auto load = [&](Compute(&target)[Tile::elements], std::int64_t place) {
    load_tile<Tile>(target, values + source.position(place) * stride + column, count);
    if constexpr (requires { Source::adjusts; }) source.template adjust<Tile>(target, place, column, count);
  };
  Compute next[UnderWay][Tile::elements];
  const auto add_several = [&](std::int64_t k) {
    for (int j = 0; j < UnderWay; ++j) load(next[j], k + j);
    for (int j = 0; j < UnderWay; ++j)
      for (int e = 0; e < Tile::elements; ++e) tile[e] += next[j][e];
  };
  const auto add_one = [&](std::int64_t k) {
    load(next[0], k);
    for (int e = 0; e < Tile::elements; ++e) tile[e] += next[0][e];
  };
  load(tile, begin);
  std::int64_t k = begin + 1;
  // More of the loops at once would cost a device's kernel registers.
  KOKKOS_IF_ON_DEVICE((_Pragma("unroll 1") for (; k + UnderWay <= end; k += UnderWay) add_several(k);
                       _Pragma("unroll 1") for (; k < end; ++k) add_one(k);))
  KOKKOS_IF_ON_HOST(
      (for (; k + UnderWay <= end; k += UnderWay) add_several(k); for (; k < end; ++k) add_one(k);))
}

/// The sums of the long segments of a plan, each in its row of a buffer.
///
/// Device mapping: a team works on `columns` columns of every `groups`-th row of the buffer. Of the places
/// that map to one row, only the last one's segment can be long and begin there. The threads look at a row
/// each, then they sum what they found, one segment after the other: all of them load tiles of the next
/// `places` values into registers, while a thread per column adds the values before those in shared memory,
/// in the order of the positions. A thread that loaded for itself alone would wait for memory every few
/// values; a row that is named ten thousand times would take milliseconds.
template <class Compute, class Value, class Source>
struct sum_long_segments {
  static constexpr int team_size = 512;
  static constexpr int columns = 32;
  static constexpr std::int64_t places = 32768 / columns / static_cast<std::int64_t>(sizeof(Compute));

  const std::int64_t* order;
  const std::int64_t* inverse;
  const std::int64_t* segment_begin;
  Source source;
  const Value* values;
  std::int64_t stride;
  Compute* sums;
  std::int64_t width;
  std::int64_t slots;
  std::int64_t groups;
  bool packed;  ///< whether a tile is a packet

  /// Teams for each group.
  static std::int64_t parts(std::int64_t width) { return (width + columns - 1) / columns; }

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    if (packed)
      sum<packed_tile>(team);
    else
      sum<single_tile>(team);
  }

 private:
  struct team_memory {
    Compute values[places][columns];
    std::int64_t segments[team_size];
    int segment_count;
  };

  /// The long segment whose sum is row `slot` of the buffer, or -1.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t segment_of(std::int64_t slot) const {
    const std::int64_t first = slot * (long_segments::most + 1);
    const std::int64_t segment = inverse[order[first + long_segments::most]];
    if (segment < 0) return -1;
    const std::int64_t begin = segment_begin[segment];
    return begin >= first && long_segments::has(begin, segment_begin[segment + 1]) ? segment : -1;
  }

  template <class Tile, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void sum(const Team& team) const {
    auto& memory = team.template shared<team_memory>();
    const int rank = team.team_rank();
    const std::int64_t group = team.league_rank() % groups;
    const std::int64_t column = team.league_rank() / groups * columns;
    for (std::int64_t first = group; first < slots; first += groups * team_size) {
      if (rank == 0) memory.segment_count = 0;
      team.team_barrier();
      const std::int64_t slot = first + rank * groups;
      if (slot < slots)
        if (const std::int64_t segment = segment_of(slot); segment >= 0)
          memory.segments[Kokkos::atomic_fetch_inc(&memory.segment_count)] = segment;
      team.team_barrier();
      for (int k = 0; k < memory.segment_count; ++k) {
        const std::int64_t segment = memory.segments[k];
        sum_one<Tile>(team, memory, segment_begin[segment], segment_begin[segment + 1], column);
      }
      team.team_barrier();
    }
  }

  template <class Tile, class Team>
  KOKKOS_FORCEINLINE_FUNCTION void sum_one(const Team& team, team_memory& memory, std::int64_t begin,
                                           std::int64_t end, std::int64_t first_column) const {
    constexpr int lanes = columns / Tile::elements;      // threads for one value
    constexpr std::int64_t at_once = team_size / lanes;  // values that the team loads together
    constexpr int loads = static_cast<int>(places / at_once);
    const int rank = team.team_rank();
    const int row = rank / lanes;
    const int tile_begin = rank % lanes * Tile::elements;
    const std::int64_t column = first_column + tile_begin;
    std::int64_t positions[loads];
    Compute next[loads][Tile::elements];
    const auto has = [&](int j, std::int64_t first) {
      return column < width && first + row + j * at_once < end;
    };
    const auto locate = [&](std::int64_t first) {
      for (int j = 0; j < loads; ++j)
        if (has(j, first)) positions[j] = source.position(first + row + j * at_once);
    };
    const auto load = [&](std::int64_t first) {
      for (int j = 0; j < loads; ++j) {
        if (!has(j, first)) continue;
        load_tile<Tile>(next[j], values + positions[j] * stride + column, Tile::elements);
        if constexpr (requires { Source::adjusts; })
          source.template adjust<Tile>(next[j], first + row + j * at_once, column, Tile::elements);
      }
    };
    const bool adds = rank < columns && first_column + rank < width;
    Compute total{};
    locate(begin);
    load(begin);
    locate(begin + places);
    for (std::int64_t first = begin; first < end; first += places) {
      for (int j = 0; j < loads; ++j)
        if (has(j, first))
          store_tile<Tile>(next[j], &memory.values[row + j * at_once][tile_begin], Tile::elements);
      team.team_barrier();
      load(first + places);
      locate(first + 2 * places);
      if (adds) {
        const int count = static_cast<int>(end - first < places ? end - first : places);
        int k = 0;
        if (first == begin) total = memory.values[k++][rank];
        for (; k + 8 <= count; k += 8)
          for (int j = 0; j < 8; ++j) total += memory.values[k + j][rank];
        for (; k < count; ++k) total += memory.values[k][rank];
      }
      team.team_barrier();
    }
    if (adds) sums[long_segments::slot(begin) * width + first_column + rank] = total;
  }
};

}  // namespace ferry::kernels
