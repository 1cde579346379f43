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
  std::vector<std::int64_t> begin{0};  ///< [groups + 1]
  std::vector<std::int64_t> at{};      ///< for each element of the list its place in `rows`

  /// Adds the rows [first, last) as a group.
  void add(const std::int64_t* list, std::int64_t first, std::int64_t last);
  template <class Wire>
  [[nodiscard]] tensor<std::int64_t, Wire> as_tensor() const {
    tensor<std::int64_t, Wire> made("rows", rows.size());
    std::copy(rows.begin(), rows.end(), made.data());
    return made;
  }

 private:
  struct entry {
    std::int64_t row;
    std::size_t element;
  };
  /// By row, which is not negative: digits of 11 bits, the lowest first.
  void sort();

  std::vector<entry> sorted_, other_;
};

/// The route of the same batch that names each row of an owner once: `slot` says where the row of a position
/// is, and `place` is empty.
template <class Wire>
row_route<Wire> route_once(const row_route<Wire>& of) {
  row_route<Wire> made;
  made.positions = of.positions;
  made.signed_indices = of.signed_indices;
  made.report = of.report;
  made.everywhere = of.everywhere;
  made.once = true;
  different_rows found;
  for (std::size_t owner = 0; owner + 1 < of.begin.size(); ++owner)
    found.add(of.rows.data(), of.begin[owner], of.begin[owner + 1]);
  made.rows = found.as_tensor<Wire>();
  made.begin = found.begin;
  made.slot = tensor<std::int64_t, Wire>("places of rows", of.positions);
  std::fill_n(made.slot.data(), of.positions, std::int64_t{-1});
  for (std::int64_t k = 0; k < of.routed(); ++k)
    made.slot.data()[of.place.data()[k]] = found.at[static_cast<std::size_t>(k)];
  return made;
}

/// The same of complete routes, without an exchange.
template <class Wire>
routing<Wire> routing_once(const routing<Wire>& of) {
  routing<Wire> made;
  made.own = route_once(of.own);
  made.findings = of.findings;
  made.is_whole = of.is_whole;
  if (of.is_whole) return made;
  different_rows found;
  for (std::size_t r = 0; r + 1 < of.in_begin.size(); ++r)
    found.add(of.rows_in.data(), of.in_begin[r], of.in_begin[r + 1]);
  made.rows_in = found.as_tensor<Wire>();
  made.in_begin = found.begin;
  return made;
}

/// Where the row of each position is in the order of the route, -1 for none.
template <class Wire>
tensor<std::int64_t, Wire> slots_of(const row_route<Wire>& route) {
  tensor<std::int64_t, Wire> made("places of rows", route.positions);
  if (route.once) {
    std::copy_n(route.slot.data(), route.positions, made.data());
    return made;
  }
  std::fill_n(made.data(), route.positions, std::int64_t{-1});
  for (std::int64_t k = 0; k < route.routed(); ++k) made.data()[route.place.data()[k]] = k;
  return made;
}

}  // namespace ferry::detail
