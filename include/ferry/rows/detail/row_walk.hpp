// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/row_range.hpp>
#include <ferry/rows/detail/row_sums.hpp>
#include <ferry/rows/detail/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

/// Walks over the elements of one row, tile by tile:
///   for_each_tile(visit)  visit(column, count) for each tile
///   sums<N>(measure)   N sums over the row; measure(column, count, part) sets the terms of a tile's elements
///   range(measure)     least and largest of the numbers that measure(column, count, value) sets
///   for_each_tile_of(first, end, visit), bounds_of<Bounds>(first, end, measure)
///                      the columns [first, end) alone, whole tiles; visited by the lanes that have them in
///                      walks over the row. Bounds: values, nothing(), widen(values, number) and a reducer
///   perform(act)       act(), once per row
///   in_one_tile()      whether no thread or lane has more than one tile of the row
namespace ferry::kernels {

/// One host thread walks over the row.
template <class Compute, class Tile>
struct thread_walk {
  std::int64_t width;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool in_one_tile() const { return width <= Tile::elements; }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile(const Visit& visit) const {
    for (std::int64_t column = 0; column < width; column += Tile::elements)
      visit(column, static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements));
  }
  template <int N, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_sums<Compute, N> sums(const Measure& measure) const {
    static_assert(row_sum_order::places % Tile::elements == 0);
    Compute place[N][row_sum_order::places];
    for_each_tile([&](std::int64_t column, int count) {
      Compute part[N][Tile::elements];
      measure(column, count, part);
      const int first = static_cast<int>(column % row_sum_order::places);
      for (int s = 0; s < N; ++s)
        if (column < row_sum_order::places)
          for (int e = 0; e < count; ++e)
            place[s][first + e] = Compute(0) + part[s][e];  // 0 where that is -0
        else
          for (int e = 0; e < count; ++e) place[s][first + e] += part[s][e];
    });
    const int places = static_cast<int>(width < row_sum_order::places ? width : row_sum_order::places);
    row_sums<Compute, N> total;
    for (int s = 0; s < N; ++s) total.value[s] = row_sum_order::total(place[s], places);
    return total;
  }
  template <class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_range::values range(const Measure& measure) const {
    row_range::side_by_side total;
    for_each_tile([&](std::int64_t column, int count) {
      float value[Tile::elements];
      measure(column, count, value);
      total.widen(value, count);
    });
    return total.whole();
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile_of(std::int64_t first, std::int64_t end,
                                                    const Visit& visit) const {
    for (std::int64_t column = first; column < end; column += Tile::elements)
      visit(column, static_cast<int>(end - column < Tile::elements ? end - column : Tile::elements));
  }
  template <class Bounds, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION typename Bounds::values bounds_of(std::int64_t first, std::int64_t end,
                                                                const Measure& measure) const {
    auto total = Bounds::nothing();
    for_each_tile_of(first, end, [&](std::int64_t column, int count) {
      float value[Tile::elements];
      measure(column, count, value);
      for (int e = 0; e < count; ++e) Bounds::widen(total, value[e]);
    });
    return total;
  }
  template <class Act>
  KOKKOS_FORCEINLINE_FUNCTION void perform(const Act& act) const {
    act();
  }
};

/// Vector lanes that share a row of `width` elements: a power of two.
KOKKOS_FUNCTION inline int lanes_for(std::int64_t width) {
  int lanes = 1;
  while (lanes < row_sum_order::lanes && std::int64_t{lanes} * row_sum_order::lane_width < width) lanes *= 2;
  return lanes;
}

/// The vector lanes of one thread of a device's team share the row, row_sum_order::lane_width elements of a
/// lane at a time. Lane l has elements 4 l to 4 l + 3, then those 4 lanes() further. Sums use shuffles, so
/// only these lanes synchronise.
template <class Compute, class Tile, class Member>
struct lane_walk {
  const Member& team;
  std::int64_t width;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool in_one_tile() const {
    return Tile::elements == row_sum_order::lane_width && width <= row_sum_order::places;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile(const Visit& visit) const {
    const int lanes = lanes_for(width);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes),
                         [&](const int lane) { of_lane(lane, lanes, visit); });
  }
  template <int N, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_sums<Compute, N> sums(const Measure& measure) const {
    const int lanes = lanes_for(width);
    row_sums<Compute, N> total;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, lanes),
        [&](const int lane, row_sums<Compute, N>& mine) {
          Compute place[N][row_sum_order::lane_width];
          for (int s = 0; s < N; ++s)
            for (int p = 0; p < row_sum_order::lane_width; ++p) place[s][p] = Compute(0);
          of_lane(lane, lanes, [&](std::int64_t column, int) {
            Compute part[N][Tile::elements];
            measure(column, Tile::elements, part);
            const auto first = static_cast<int>(column % row_sum_order::lane_width);
            for (int s = 0; s < N; ++s)
              for (int e = 0; e < Tile::elements; ++e) place[s][first + e] += part[s][e];
          });
          for (int s = 0; s < N; ++s) mine.value[s] += row_sum_order::lane_of(place[s]);
        },
        Kokkos::Sum<row_sums<Compute, N>>(total));
    return total;
  }
  template <class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_range::values range(const Measure& measure) const {
    const int lanes = lanes_for(width);
    auto total = row_range::nothing();
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, lanes),
        [&](const int lane, row_range::values& mine) {
          of_lane(lane, lanes, [&](std::int64_t column, int) {
            float value[Tile::elements];
            measure(column, Tile::elements, value);
            for (int e = 0; e < Tile::elements; ++e) row_range::widen(mine, value[e]);
          });
        },
        row_range::reducer(total));
    return total;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile_of(std::int64_t first, std::int64_t end,
                                                    const Visit& visit) const {
    const int lanes = lanes_for(width);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes),
                         [&](const int lane) { part_of_lane(lane, lanes, first, end, visit); });
  }
  template <class Bounds, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION typename Bounds::values bounds_of(std::int64_t first, std::int64_t end,
                                                                const Measure& measure) const {
    const int lanes = lanes_for(width);
    auto total = Bounds::nothing();
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, lanes),
        [&](const int lane, typename Bounds::values& mine) {
          part_of_lane(lane, lanes, first, end, [&](std::int64_t column, int) {
            float value[Tile::elements];
            measure(column, Tile::elements, value);
            for (int e = 0; e < Tile::elements; ++e) Bounds::widen(mine, value[e]);
          });
        },
        typename Bounds::reducer(total));
    return total;
  }
  template <class Act>
  KOKKOS_FORCEINLINE_FUNCTION void perform(const Act& act) const {
    Kokkos::single(Kokkos::PerThread(team), act);
  }

 private:
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void of_lane(int lane, int lanes, const Visit& visit) const {
    const std::int64_t tiles = (width + row_sum_order::lane_width - 1) / row_sum_order::lane_width;
    for (std::int64_t t = lane; t < tiles; t += lanes)
      for (int first = 0; first < row_sum_order::lane_width; first += Tile::elements) {
        const std::int64_t column = t * row_sum_order::lane_width + first;
        if (column < width) visit(column, Tile::elements);
      }
  }
  /// The tiles of of_lane that begin in [first, end). The number of lanes is a power of two.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void part_of_lane(int lane, int lanes, std::int64_t first, std::int64_t end,
                                                const Visit& visit) const {
    const std::int64_t begin = first / row_sum_order::lane_width;
    for (std::int64_t t = begin + ((lane - begin) & (lanes - 1)); t * row_sum_order::lane_width < end;
         t += lanes)
      for (int e = 0; e < row_sum_order::lane_width; e += Tile::elements) {
        const std::int64_t column = t * row_sum_order::lane_width + e;
        if (column < end) visit(column, Tile::elements);
      }
  }
};

}  // namespace ferry::kernels
