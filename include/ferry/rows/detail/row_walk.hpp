// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/row_range.hpp>
#include <ferry/rows/detail/row_sums.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>

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
///   visit_tiles(visit), is_first_lane()
///                      of lanes: for_each_tile and perform without a meeting at the end
namespace ferry::kernels {

/// One host thread walks over the row.
template <class Compute, class Tile>
struct thread_walk {
  std::int64_t width;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool in_one_tile() const { return width <= Tile::elements; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const thread_walk& over_one_tile() const { return *this; }
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
          for (int e = 0; e < count; ++e) place[s][first + e] = Compute(0) + part[s][e];  // 0 if that is -0
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
/// lane at a time. Lane l has elements 4 l to 4 l + 3, then those 4 lanes() further. Only these lanes
/// synchronise. OneTile: no lane has more than one tile, which may be wider; such walks have no sums.
template <class Compute, class Tile, class Member, bool OneTile = false>
class lane_walk {
 public:
  KOKKOS_FORCEINLINE_FUNCTION lane_walk(const Member&, std::int64_t width)
      : width_(width), lanes_(group::lanes()), group_(lanes_) {}

  /// This walk over a row that is in_one_tile, without loops.
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION lane_walk<Compute, Tile, Member, true> over_one_tile() const {
    return lane_walk<Compute, Tile, Member, true>(width_, lanes_);
  }
  KOKKOS_FORCEINLINE_FUNCTION lane_walk(std::int64_t width, int lanes)
      : width_(width), lanes_(lanes), group_(lanes) {}

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool in_one_tile() const {
    return Tile::elements >= row_sum_order::lane_width && width_ <= std::int64_t{lanes_} * lane_width;
  }
  /// For lanes that read nothing of what the others write.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_tiles(const Visit& visit) const {
    if constexpr (OneTile) {
      if (const int column = group::lane() * lane_width; column < static_cast<int>(width_))
        visit(std::int64_t{column}, Tile::elements);
      return;
    }
    const std::int64_t tiles = (width_ + row_sum_order::lane_width - 1) / row_sum_order::lane_width;
    for (std::int64_t t = group::lane(); t < tiles; t += lanes_)
      for (int first = 0; first < row_sum_order::lane_width; first += Tile::elements) {
        const std::int64_t column = t * row_sum_order::lane_width + first;
        if (column < width_) visit(column, Tile::elements);
      }
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static bool is_first_lane() { return group::lane() == 0; }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile(const Visit& visit) const {
    visit_tiles(visit);
    group_.meet();
  }
  template <int N, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_sums<Compute, N> sums(const Measure& measure) const {
    Compute place[N][row_sum_order::lane_width];
    for (int s = 0; s < N; ++s)
      for (int p = 0; p < row_sum_order::lane_width; ++p) place[s][p] = Compute(0);
    visit_tiles([&](std::int64_t column, int) {
      Compute part[N][Tile::elements];
      measure(column, Tile::elements, part);
      const auto first = static_cast<int>(column % row_sum_order::lane_width);
      for (int s = 0; s < N; ++s)
        for (int e = 0; e < Tile::elements; ++e) place[s][first + e] += part[s][e];
    });
    row_sums<Compute, N> total;
    for (int s = 0; s < N; ++s)
      total.value[s] =
          group_.joined(plain(Compute(0) + row_sum_order::lane_of(place[s])),
                        [](auto left, auto right) { return plain(Compute(left) + Compute(right)); });
    return total;
  }
  template <class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_range::values range(const Measure& measure) const {
    auto total = row_range::nothing();
    visit_tiles([&](std::int64_t column, int) {
      float value[Tile::elements];
      measure(column, Tile::elements, value);
      for (int e = 0; e < Tile::elements; ++e) row_range::widen(total, value[e]);
    });
    return row_range::of_bits(group_.joined(row_range::bits_of(total), [](std::uint64_t a, std::uint64_t b) {
      return row_range::bits_of(row_range::joined(row_range::of_bits(a), row_range::of_bits(b)));
    }));
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile_of(std::int64_t first, std::int64_t end,
                                                    const Visit& visit) const {
    visit_tiles_of(first, end, visit);
    group_.meet();
  }
  template <class Bounds, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION typename Bounds::values bounds_of(std::int64_t first, std::int64_t end,
                                                                const Measure& measure) const {
    auto total = Bounds::nothing();
    visit_tiles_of(first, end, [&](std::int64_t column, int) {
      float value[Tile::elements];
      measure(column, Tile::elements, value);
      for (int e = 0; e < Tile::elements; ++e) Bounds::widen(total, value[e]);
    });
    return joined(total);
  }
  template <class Act>
  KOKKOS_FORCEINLINE_FUNCTION void perform(const Act& act) const {
    if (is_first_lane()) act();
    group_.meet();
  }

 private:
  using group = typename execution_backend<typename Member::execution_space>::lane_group;
  static constexpr int lane_width =
      Tile::elements > row_sum_order::lane_width ? Tile::elements : row_sum_order::lane_width;

  KOKKOS_FORCEINLINE_FUNCTION static auto plain(const Compute& value) {
    if constexpr (ferry::detail::WrappedNumber<Compute>)
      return static_cast<typename Compute::plain_number>(value);
    else
      return value;
  }
  /// The least and the largest of all lanes' values.
  template <class Values>
  KOKKOS_FORCEINLINE_FUNCTION Values joined(Values values) const {
    values.min_val =
        group_.joined(values.min_val, [](auto left, auto right) { return right < left ? right : left; });
    values.max_val =
        group_.joined(values.max_val, [](auto left, auto right) { return right > left ? right : left; });
    return values;
  }
  /// The tiles of visit_tiles that begin in [first, end). The number of lanes is a power of two.
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_tiles_of(std::int64_t first, std::int64_t end,
                                                  const Visit& visit) const {
    if constexpr (OneTile) {
      if (const std::int64_t column = std::int64_t{group::lane()} * lane_width;
          column >= first && column < end)
        visit(column, Tile::elements);
      return;
    }
    const std::int64_t begin = first / row_sum_order::lane_width;
    for (std::int64_t t = begin + ((group::lane() - begin) & (lanes_ - 1));
         t * row_sum_order::lane_width < end; t += lanes_)
      for (int e = 0; e < row_sum_order::lane_width; e += Tile::elements) {
        const std::int64_t column = t * row_sum_order::lane_width + e;
        if (column < end) visit(column, Tile::elements);
      }
  }

  std::int64_t width_;
  int lanes_;
  group group_;
};

}  // namespace ferry::kernels
