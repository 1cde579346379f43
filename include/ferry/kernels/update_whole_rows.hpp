#pragma once

#include <ferry/kernels/combine.hpp>
#include <ferry/kernels/row_source.hpp>
#include <ferry/kernels/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace ferry::kernels {

/// Numbers that are added up over a row, in the order that row_sum_order defines.
template <class Compute, int N>
struct row_sums {
  Compute value[N];

  KOKKOS_FUNCTION row_sums() {
    for (int s = 0; s < N; ++s) value[s] = Compute(0);
  }
  KOKKOS_FUNCTION row_sums& operator+=(const row_sums& other) {
    for (int s = 0; s < N; ++s) value[s] += other.value[s];
    return *this;
  }
};

/// The order of additions over a row, the same on every backend, so that sums are the same to the last bit: element i
/// belongs to place i % 128 and is added there after those before it; four neighbouring places make one of 32 lanes,
/// (a + b) + (c + d); lanes are added as a tree, lane l and l + 16, then l + 8, 4, 2, 1. That is what the shuffles of a
/// warp do, of which lanes without elements add zeros.
struct row_sum_order {
  static constexpr int lanes = 32;
  static constexpr int each = 4;
  static constexpr int places = lanes * each;

  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION static Compute lane_of(const Compute* place) {
    return (place[0] + place[1]) + (place[2] + place[3]);
  }
  template <class Compute>
  KOKKOS_FUNCTION static Compute total(const Compute (&place)[places]) {
    Compute lane[lanes];
    for (int l = 0; l < lanes; ++l) lane[l] = lane_of(place + l * each);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
  }
};

/// One optimizer step of a rule that looks at a row as a whole before it changes an element: it measures each element,
/// the measures are added up, the rule settles the row's own state, and the elements are updated. Both walks combine
/// the gradients and read the row; the second time it comes from the first level of cache.
///
/// Device mapping, by teams: the vector lanes of one thread share a row, 4 elements at a time; sums travel by shuffles,
/// so nothing is synchronised but the lanes of one row. As many lanes as a row has packets, up to a warp. Each team has
/// one contiguous piece of the items. Host mapping: one iteration for each item.
template <class Compute, class Tile, class Duplicates, class Source, class Value, class T, class State,
          class Update, int Fields, int RowFields>
struct update_whole_rows {
  static constexpr int sums = Update::sums;
  static constexpr int field_room = Fields == 0 ? 1 : Fields;
  static constexpr int row_room = RowFields == 0 ? 1 : RowFields;
  using sum_type = row_sums<Compute, sums>;

  Source source;
  const Value* values;
  std::int64_t values_stride;
  std::int64_t width;
  std::int64_t items;
  T* table;
  std::int64_t stride;
  State* state[field_room];
  std::int64_t state_stride;
  State* row_state[row_room];
  Update rule;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if (source.blocked()) return;
    const row_segment rows = source.segment(item);
    if (rows.row < 0) return;
    Compute row[row_room];
    load_row(row, rows.row);
    Compute place[sums][row_sum_order::places];
    for (int s = 0; s < sums; ++s)
      for (int p = 0; p < row_sum_order::places; ++p) place[s][p] = Compute(0);
    for (std::int64_t column = 0; column < width; column += Tile::elements) {
      const int count = count_at(column);
      tile here;
      load(here, rows, column, count);
      const int first = static_cast<int>(column % row_sum_order::places);
      for (int e = 0; e < count; ++e) {
        Compute part[sums];
        measure(here, e, row, part);
        for (int s = 0; s < sums; ++s) place[s][first + e] += part[s];
      }
    }
    Compute total[sums];
    for (int s = 0; s < sums; ++s) total[s] = row_sum_order::total(place[s]);
    rule.settle(total, static_cast<Compute>(width), row);
    store_row(row, rows.row);
    for (std::int64_t column = 0; column < width; column += Tile::elements)
      update(rows, column, count_at(column), total);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    if (source.blocked()) return;
    const std::int64_t teams = team.league_size();
    const std::int64_t end = items * (team.league_rank() + 1) / teams;
    const int lanes = lanes_for(width);
    const std::int64_t tiles = (width + row_sum_order::each - 1) / row_sum_order::each;
    for (std::int64_t item = items * team.league_rank() / teams + team.team_rank(); item < end;
         item += team.team_size()) {
      const row_segment rows = source.segment(item);
      if (rows.row < 0) continue;
      Compute row[row_room];
      load_row(row, rows.row);
      sum_type total;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, lanes),
          [&](const int lane, sum_type& mine) {
            Compute place[sums][row_sum_order::each];
            for (int s = 0; s < sums; ++s)
              for (int p = 0; p < row_sum_order::each; ++p) place[s][p] = Compute(0);
            for (std::int64_t t = lane; t < tiles; t += lanes)
              for (int first = 0; first < row_sum_order::each; first += Tile::elements) {
                const std::int64_t column = t * row_sum_order::each + first;
                if (column >= width) break;
                tile here;
                load(here, rows, column, Tile::elements);
                for (int e = 0; e < Tile::elements; ++e) {
                  Compute part[sums];
                  measure(here, e, row, part);
                  for (int s = 0; s < sums; ++s) place[s][first + e] += part[s];
                }
              }
            for (int s = 0; s < sums; ++s) mine.value[s] += row_sum_order::lane_of(place[s]);
          },
          Kokkos::Sum<sum_type>(total));
      rule.settle(total.value, static_cast<Compute>(width), row);
      Kokkos::single(Kokkos::PerThread(team), [&] { store_row(row, rows.row); });
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, lanes), [&](const int lane) {
        for (std::int64_t t = lane; t < tiles; t += lanes)
          for (int first = 0; first < row_sum_order::each; first += Tile::elements) {
            const std::int64_t column = t * row_sum_order::each + first;
            if (column < width) update(rows, column, Tile::elements, total.value);
          }
      });
    }
  }

  /// Lanes that share a row of so many elements: a power of two.
  KOKKOS_FUNCTION static int lanes_for(std::int64_t width) {
    int lanes = 1;
    while (lanes < row_sum_order::lanes && lanes * row_sum_order::each < width) lanes *= 2;
    return lanes;
  }

 private:
  struct tile {
    Compute gradient[Tile::elements], weight[Tile::elements], field[field_room][Tile::elements];
  };

  KOKKOS_FORCEINLINE_FUNCTION int count_at(std::int64_t column) const {
    return static_cast<int>(width - column < Tile::elements ? width - column : Tile::elements);
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_row(Compute (&row)[row_room], std::int64_t at) const {
    row[0] = Compute(0);
    for (int f = 0; f < RowFields; ++f) row[f] = convert<Compute>(row_state[f][at]);
  }
  KOKKOS_FORCEINLINE_FUNCTION void store_row(const Compute (&row)[row_room], std::int64_t at) const {
    for (int f = 0; f < RowFields; ++f) row_state[f][at] = convert<State>(row[f]);
  }
  KOKKOS_FORCEINLINE_FUNCTION void load(tile& here, const row_segment& rows, std::int64_t column,
                                        int count) const {
    combine_segment<Tile, Duplicates>(here.gradient, source, rows, values, values_stride, column, count);
    load_tile<Tile>(here.weight, table + rows.row * stride + column, count);
    for (int f = 0; f < Fields; ++f)
      load_tile<Tile>(here.field[f], state[f] + rows.row * state_stride + column, count);
  }
  KOKKOS_FORCEINLINE_FUNCTION void measure(const tile& here, int e, const Compute (&row)[row_room],
                                           Compute (&part)[sums]) const {
    Compute own[field_room];
    own[0] = Compute(0);
    for (int f = 0; f < Fields; ++f) own[f] = here.field[f][e];
    rule.measure(here.weight[e], here.gradient[e], own, row, part);
  }
  KOKKOS_FORCEINLINE_FUNCTION void update(const row_segment& rows, std::int64_t column, int count,
                                          const Compute (&total)[sums]) const {
    tile here;
    load(here, rows, column, count);
    for (int e = 0; e < live<Tile>(count); ++e) {
      Compute own[field_room];
      own[0] = Compute(0);
      for (int f = 0; f < Fields; ++f) own[f] = here.field[f][e];
      rule.apply(here.weight[e], here.gradient[e], own, total);
      for (int f = 0; f < Fields; ++f) here.field[f][e] = own[f];
    }
    store_tile<Tile>(here.weight, table + rows.row * stride + column, count);
    for (int f = 0; f < Fields; ++f)
      store_tile<Tile>(here.field[f], state[f] + rows.row * state_stride + column, count);
  }
};

}  // namespace ferry::kernels

template <class Compute, int N>
struct Kokkos::reduction_identity<ferry::kernels::row_sums<Compute, N>> {
  KOKKOS_FORCEINLINE_FUNCTION static ferry::kernels::row_sums<Compute, N> sum() { return {}; }
};
