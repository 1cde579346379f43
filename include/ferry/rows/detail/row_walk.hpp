// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Sums over a row, in the order that row_sum_order defines.
template <class Compute, int N>
struct row_sums {
  Compute value[N];

  KOKKOS_FUNCTION row_sums() {
    for (int s = 0; s < N; ++s) value[s] = Compute(0);
  }
  KOKKOS_FUNCTION row_sums& operator+=(const row_sums& addend) {
    for (int s = 0; s < N; ++s) value[s] += addend.value[s];
    return *this;
  }
};

/// The order of additions over a row. It is the same on every backend, so sums are identical to the last bit.
/// Element i is added to partial i % 128, in order. Four neighbouring partials a, b, c and d make one of 32
/// lanes: (a + b) + (c + d). Lanes are added as a tree: lane l and l + 16, then l + 8, 4, 2, 1. These are the
/// shuffles of a warp, in which lanes without elements add zeros.
struct row_sum_order {
  static constexpr int lanes = 32;
  static constexpr int lane_width = 4;
  static constexpr int partials = lanes * lane_width;

  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute lane_of(const Compute* partial) {
    return (partial[0] + partial[1]) + (partial[2] + partial[3]);
  }
  /// The sum of the first `count` partials. The others are zeros, which change no sum and are left out: no
  /// partial is -0.
  template <class Compute>
  KOKKOS_FUNCTION static Compute total(const Compute (&partial)[partials], int count) {
    if (count == 0) return Compute(0);
    Compute lane[lanes];
    const int whole = count / lane_width;
    for (int l = 0; l < whole; ++l) lane[l] = lane_of(partial + l * lane_width);
    int live = whole;
    if (const int left = count % lane_width; left > 0) {
      const Compute* last = partial + whole * lane_width;
      const Compute second = left > 1 ? last[1] : Compute(0);
      lane[live++] = (last[0] + second) + (left > 2 ? last[2] : Compute(0));
    }
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half && l + half < live; ++l) lane[l] += lane[l + half];
    return lane[0];
  }
};

}  // namespace ferry::kernels

template <class Compute, int N>
struct Kokkos::reduction_identity<ferry::kernels::row_sums<Compute, N>> {
  KOKKOS_FORCEINLINE_FUNCTION static ferry::kernels::row_sums<Compute, N> sum() { return {}; }
};
/// Walks over the elements of one row, tile by tile:
///   for_each_tile(visit)  visit(column, count) for each tile
///   sums<N>(measure)   N sums over the row; measure(column, count, part) sets the terms of a tile's elements
///   bounds<Bounds>(measure)
///                      Bounds of the numbers that measure(column, count, value) sets. It has values,
///                      nothing(), widen(values, number), joined(values, values), bits_of(values),
///                      of_bits(bits) and side_by_side
///   bounds_among<Bounds, Count>(value)
///                      those of the tiles that Count neighbouring lanes have, sharing_lanes of a block
///   lane(), lanes()    the number of the calling lane, and of all that share the row
///   perform(act)       act(), once per row
///   in_one_tile()      whether no thread or lane has more than one tile of the row
///   visit_tiles(visit), is_first_lane()
///                      of lanes: for_each_tile and perform without a barrier at the end
///   has_lanes          lanes share the row
namespace ferry::kernels {

/// visit(column, count) for the tiles of the columns [first, end), by one thread.
template <class Tile, class Visit>
KOKKOS_FORCEINLINE_FUNCTION void for_each_tile_between(std::int64_t first, std::int64_t end,
                                                       const Visit& visit) {
  for (std::int64_t column = first; column < end; column += Tile::elements)
    visit(column, static_cast<int>(end - column < Tile::elements ? end - column : Tile::elements));
}

/// One thread walks over the row: a host's, or that of a device without lanes.
template <class Compute, class Tile>
struct thread_walk {
  static constexpr bool has_lanes = false;

  std::int64_t width;

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION bool in_one_tile() const { return width <= Tile::elements; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const thread_walk& over_one_tile() const { return *this; }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile(const Visit& visit) const {
    for_each_tile_between<Tile>(0, width, visit);
  }
  template <int N, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_sums<Compute, N> sums(const Measure& measure) const {
    static_assert(row_sum_order::partials % Tile::elements == 0);
    Compute partial[N][row_sum_order::partials];
    for_each_tile([&](std::int64_t column, int count) {
      Compute part[N][Tile::elements];
      measure(column, count, part);
      const int first = static_cast<int>(column % row_sum_order::partials);
      for (int s = 0; s < N; ++s)
        if (column < row_sum_order::partials)
          for (int e = 0; e < count; ++e) partial[s][first + e] = Compute(0) + part[s][e];  // 0 if that is -0
        else
          for (int e = 0; e < count; ++e) partial[s][first + e] += part[s][e];
    });
    const int partials = static_cast<int>(width < row_sum_order::partials ? width : row_sum_order::partials);
    row_sums<Compute, N> total;
    for (int s = 0; s < N; ++s) total.value[s] = row_sum_order::total(partial[s], partials);
    return total;
  }
  template <class Bounds, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION typename Bounds::values bounds(const Measure& measure) const {
    typename Bounds::side_by_side total;
    for_each_tile([&](std::int64_t column, int count) {
      float value[Tile::elements];
      measure(column, count, value);
      total.widen(value, count);
    });
    return total.whole();
  }
  template <class Act>
  KOKKOS_FORCEINLINE_FUNCTION void perform(const Act& act) const {
    act();
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static int lane() { return 0; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static int lanes() { return 1; }
};

/// Lanes that have a block of `Numbers` columns, a tile each; 0 if it does not consist of their tiles.
template <class Tile, int Numbers, int Lanes = Numbers / Tile::elements>
inline constexpr int sharing_lanes = !Tile::host && Tile::elements >= row_sum_order::lane_width &&
                                             Lanes > 0 && Lanes <= row_sum_order::lanes &&
                                             (Lanes & (Lanes - 1)) == 0 && Numbers % Tile::elements == 0
                                         ? Lanes
                                         : 0;

/// Vector lanes that share a row of `width` elements: a power of two.
KOKKOS_FUNCTION inline int lanes_for(std::int64_t width) {
  int lanes = 1;
  while (lanes < row_sum_order::lanes && std::int64_t{lanes} * row_sum_order::lane_width < width) lanes *= 2;
  return lanes;
}

/// The vector lanes of one thread of a device's team share the row, row_sum_order::lane_width elements of a
/// lane at a time, or as many as a wider tile has; such walks have no sums. Lane l has elements 4 l to
/// 4 l + 3, then those 4 lanes() further. Only these lanes synchronise. OneTile: no lane has more than one
/// tile.
template <class Compute, class Tile, class Member, bool OneTile = false>
class lane_walk {
 public:
  static constexpr bool has_lanes = true;

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
    const std::int64_t tiles = (width_ + lane_width - 1) / lane_width;
    for (std::int64_t t = lane(); t < tiles; t += lanes_)
      for (int first = 0; first < lane_width; first += Tile::elements) {
        const std::int64_t column = t * lane_width + first;
        if (column < width_) visit(column, Tile::elements);
      }
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static int lane() { return group::lane(); }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION int lanes() const { return lanes_; }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static bool is_first_lane() { return lane() == 0; }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void for_each_tile(const Visit& visit) const {
    visit_tiles(visit);
    group_.meet();
  }
  template <int N, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION row_sums<Compute, N> sums(const Measure& measure) const {
    Compute partial[N][row_sum_order::lane_width];
    for (int s = 0; s < N; ++s)
      for (int p = 0; p < row_sum_order::lane_width; ++p) partial[s][p] = Compute(0);
    visit_tiles([&](std::int64_t column, int) {
      Compute part[N][Tile::elements];
      measure(column, Tile::elements, part);
      const auto first = static_cast<int>(column % row_sum_order::lane_width);
      for (int s = 0; s < N; ++s)
        for (int e = 0; e < Tile::elements; ++e) partial[s][first + e] += part[s][e];
    });
    row_sums<Compute, N> total;
    for (int s = 0; s < N; ++s)
      total.value[s] =
          group_.joined(plain(Compute(0) + row_sum_order::lane_of(partial[s])),
                        [](auto left, auto right) { return plain(Compute(left) + Compute(right)); });
    return total;
  }
  template <class Bounds, class Measure>
  KOKKOS_FORCEINLINE_FUNCTION typename Bounds::values bounds(const Measure& measure) const {
    auto total = Bounds::nothing();
    visit_tiles([&](std::int64_t column, int) {
      float value[Tile::elements];
      measure(column, Tile::elements, value);
      for (int e = 0; e < Tile::elements; ++e) Bounds::widen(total, value[e]);
    });
    return Bounds::of_bits(group_.joined(Bounds::bits_of(total), join_bits<Bounds>{}));
  }
  template <class Bounds, int Count>
  KOKKOS_FORCEINLINE_FUNCTION static typename Bounds::values bounds_among(
      const float (&value)[Tile::elements]) {
    auto total = Bounds::nothing();
    for (int e = 0; e < Tile::elements; ++e) Bounds::widen(total, value[e]);
    return Bounds::of_bits(group::joined_among(Count, Bounds::bits_of(total), join_bits<Bounds>{}));
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
  template <class Bounds>
  struct join_bits {
    KOKKOS_FORCEINLINE_FUNCTION std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
      return Bounds::bits_of(Bounds::joined(Bounds::of_bits(a), Bounds::of_bits(b)));
    }
  };

  std::int64_t width_;
  int lanes_;
  group group_;
};

}  // namespace ferry::kernels
