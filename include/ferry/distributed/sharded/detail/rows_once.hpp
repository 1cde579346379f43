// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The different rows of each group of a list: ascending, group after group. Both ends of an exchange find
/// the same ones, so a list that both have needs no second exchange.
struct different_rows {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> begin{0};    ///< [groups + 1]
  std::vector<std::int64_t> place_of{};  ///< for each element of the list its place in `rows`

  /// Adds the rows [first, last) as a group.
  void add(const std::int64_t* list, std::int64_t first, std::int64_t last);
  template <class Wire>
  [[nodiscard]] tensor<std::int64_t, Wire> as_tensor() const {
    tensor<std::int64_t, Wire> list("rows", rows.size());
    std::copy(rows.begin(), rows.end(), list.data());
    return list;
  }

 private:
  struct entry {
    std::int64_t row;
    std::size_t element;
  };
  /// By row, which is not negative: digits of 11 bits, the lowest first.
  void sort();

  std::vector<entry> sorted_, rest_;
};

/// The route of the same batch that names each row of an owner once: `slot` says where the row of a position
/// is, and `place` is empty.
template <class Wire>
row_route<Wire> route_once(const row_route<Wire>& route) {
  row_route<Wire> unique;
  static_cast<route_groups&>(unique) = route;
  unique.unique = true;
  different_rows different;
  for (std::size_t owner = 0; owner + 1 < route.begin.size(); ++owner)
    different.add(route.rows.data(), route.begin[owner], route.begin[owner + 1]);
  unique.rows = different.as_tensor<Wire>();
  unique.begin = different.begin;
  unique.slot = tensor<std::int64_t, Wire>("places of rows", route.positions);
  std::fill_n(unique.slot.data(), route.positions, std::int64_t{-1});
  for (std::int64_t k = 0; k < route.routed(); ++k)
    unique.slot.data()[route.place.data()[k]] = different.place_of[static_cast<std::size_t>(k)];
  return unique;
}

/// Complete routes that name each row of an owner once, without an exchange.
template <class Wire>
routing<Wire> routing_once(const routing<Wire>& routes) {
  routing<Wire> unique;
  unique.batch = route_once(routes.batch);
  unique.findings = routes.findings;
  unique.is_whole = routes.is_whole;
  if (routes.is_whole) return unique;
  different_rows different;
  for (std::size_t r = 0; r + 1 < routes.in_begin.size(); ++r)
    different.add(routes.rows_in.data(), routes.in_begin[r], routes.in_begin[r + 1]);
  unique.rows_in = different.as_tensor<Wire>();
  unique.in_begin = different.begin;
  return unique;
}

/// For each position the place of its row in the order of the route, -1 for none.
template <class Wire>
tensor<std::int64_t, Wire> slots_of(const row_route<Wire>& route) {
  tensor<std::int64_t, Wire> slots("places of rows", route.positions);
  if (route.unique) {
    std::copy_n(route.slot.data(), route.positions, slots.data());
    return slots;
  }
  std::fill_n(slots.data(), route.positions, std::int64_t{-1});
  for (std::int64_t k = 0; k < route.routed(); ++k) slots.data()[route.place.data()[k]] = k;
  return slots;
}

}  // namespace ferry::detail
