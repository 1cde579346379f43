// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/detail/sum_pieces.hpp>
#include <ferry/rows/detail/sum_by_team.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>

/// The memory of a team that searches a small batch, and the parts of the batch.
namespace ferry::kernels {

/// Findings of a search, a source of the row kernels. Item i is position i: it has the row that it names
/// if it is the first position to do so, and no row otherwise. The arrays lie in the memory of the team that
/// has the item.
struct found_rows {
  const std::int64_t* rows = nullptr;  ///< of the team's items, the first of which is `first`
  const int* begin = nullptr;
  const int* count = nullptr;
  const std::uint16_t* order = nullptr;  ///< the positions of the rows
  std::int64_t first = 0;

  KOKKOS_FUNCTION static bool blocked() { return false; }
  KOKKOS_FUNCTION row_segment segment(std::int64_t i) const {
    const std::int64_t place = i - first;
    return {rows[place], begin[place], begin[place] + count[place]};
  }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t k) const { return order[k]; }
};

/// How a batch is cut for teams.
struct search_shape {
  static constexpr int most = 16384;      ///< positions of a batch
  static constexpr int most_items = 128;  ///< items of a team
  static constexpr int team_size = 512;   ///< 32 threads for an item, as rows of 128 floats have tiles
  static constexpr int most_warps = 16;   ///< of a team
  static constexpr int slots = 512;       ///< of a team's hash table, a power of two
  static constexpr int filter_words = 256;
  static constexpr int fewest_sum_bytes = 24576;
  static constexpr int most_bytes_of_tile = 64;  ///< of four long doubles

  /// Items of a team; `teams_at_once` teams are at work at the same time. Small batches have small teams,
  /// which end sooner. In larger batches all teams are at work at the same time.
  static constexpr int items_of_team(std::int64_t positions, std::int64_t teams_at_once) {
    if (positions <= 1024) return 8;
    const std::int64_t share = (positions + teams_at_once - 1) / teams_at_once;
    return static_cast<int>(share < 16 ? 16 : share < most_items ? share : most_items);
  }
};

/// A team's view of the batch. The arrays whose size depends on the batch follow: the order, then the list,
/// whose place the sums take later.
struct alignas(16) searched_batch {
  std::uint32_t filter[search_shape::filter_words];  ///< a bit for the hash of each row of the team
  int item_in[search_shape::slots];                  ///< a hash table of the team's rows; -1: an empty slot
  /// For each warp, and each item: its positions so far, then the places of those of the warps before.
  std::uint16_t next[search_shape::most_warps][search_shape::most_items];
  std::int64_t rows[search_shape::most_items];  ///< those of the items, see found_rows
  int begin[search_shape::most_items];
  int count[search_shape::most_items];
  int before[search_shape::most_items];  ///< positions of the row before those of the team
  team_share shares[search_shape::most_items];
  bool is_later[search_shape::most_items];  ///< a position before that of the item names its row
  bool has_shares;                          ///< true if teams share a row
  int shares_of_team;                       ///< that are not empty
  int bad;                                  ///< bad indices
  int order_size;                           ///< positions in the order

  /// The positions of the team's rows.
  KOKKOS_FORCEINLINE_FUNCTION std::uint16_t* order() { return reinterpret_cast<std::uint16_t*>(this + 1); }
  /// Memory for sums, behind an order of `positions`.
  KOKKOS_FORCEINLINE_FUNCTION unsigned char* sums(int positions) {
    return reinterpret_cast<unsigned char*>(order() + order_room(positions));
  }
  /// For each warp, its positions whose rows an item may have, and those whose rows one has, see search_hit.
  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t* list(int positions) {
    return reinterpret_cast<std::uint32_t*>(sums(positions));
  }

  /// Bytes for the sums of a tile of every share that a team may have.
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int sum_bytes(int positions, int bytes_of_tile) {
    const int bytes =
        (search_shape::most_items + positions / static_cast<int>(piece_cut::least)) * bytes_of_tile;
    return bytes < search_shape::fewest_sum_bytes ? search_shape::fewest_sum_bytes : bytes;
  }
  /// Bytes of a team.
  static constexpr std::size_t bytes(int positions, int bytes_of_tile) {
    const int list = 4 * positions, sums = sum_bytes(positions, bytes_of_tile);
    return sizeof(searched_batch) + 2 * static_cast<std::size_t>(order_room(positions)) +
           static_cast<std::size_t>(sums < list ? list : sums);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int order_room(int positions) {
    return (positions + 7) / 8 * 8;
  }
};

/// The neighbouring positions that a warp of a team looks up.
struct warp_positions {
  int lanes;
  int warp, lane;
  int begin, end;

  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION warp_positions(const Team& team, int positions)
      : lanes(Team::lanes), warp(team.team_rank() / Team::lanes), lane(team.team_rank() % Team::lanes) {
    const int warps = team.team_size() / lanes;
    const int size = ((positions + warps - 1) / warps + lanes - 1) / lanes * lanes;
    begin = warp * size;
    end = begin + size < positions ? begin + size : positions;
  }
  /// The position of the lane in round k from p on.
  KOKKOS_FORCEINLINE_FUNCTION int position(int p, int k) const { return p + k * lanes + lane; }
  /// The lanes of a mask before this one.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::uint32_t before(std::uint32_t mask) const {
    return mask & ((std::uint32_t{1} << lane) - 1);
  }
};

/// A position of a warp that names an item's row, and its number among those of the warp.
struct search_hit {
  std::uint32_t bits;

  static constexpr int place_bits = 12, number_bits = 12;

  KOKKOS_FORCEINLINE_FUNCTION explicit search_hit(std::uint32_t entry) : bits(entry) {}
  KOKKOS_FORCEINLINE_FUNCTION search_hit(int place, int item, int number)
      : bits(static_cast<std::uint32_t>(place) | static_cast<std::uint32_t>(number) << place_bits |
             static_cast<std::uint32_t>(item) << (place_bits + number_bits)) {}
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int place() const {
    return static_cast<int>(bits % (1u << place_bits));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int number() const {
    return static_cast<int>((bits >> place_bits) % (1u << number_bits));
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int item() const {
    return static_cast<int>(bits >> (place_bits + number_bits));
  }
};
static_assert(search_shape::most_items <= 256 &&
              search_shape::most / search_shape::most_warps < (1 << search_hit::place_bits));

}  // namespace ferry::kernels
