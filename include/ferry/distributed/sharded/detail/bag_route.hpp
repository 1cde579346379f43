// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/share_values.hpp>
#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/sharded/detail/routing.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The bags of a batch for host code. `named` comes from bags_named_by; the list may read `room`.
template <class Exec, class Bags>
class host_bags {
 public:
  using list_type = kernels::bag_list<offset_type<Bags>>;

  host_bags(const Exec& exec, const Bags& named, std::int64_t bags, std::int64_t positions, bool checks)
      : list_(list_of_bags(named, offsets(exec, named), bags, positions, checks, {&report_, &raised_})) {}
  host_bags(const host_bags&) = delete;
  host_bags& operator=(const host_bags&) = delete;

  [[nodiscard]] const list_type& list() const { return list_; }
  /// Flaws of the offsets, for a gather or a step.
  /// @{
  [[nodiscard]] const index_report& look() {
    for (std::int64_t bag = 0; bag < list_.bags; ++bag) list_.range(bag, true);
    return report_;
  }
  [[nodiscard]] const index_report& look_for_step() {
    const kernels::check_step_bags<offset_type<Bags>> check{list_, nullptr};
    for (std::int64_t bag = 0; bag < list_.bags; ++bag) check(bag);
    return report_;
  }
  /// @}

 private:
  const offset_type<Bags>* offsets(const Exec& exec, const Bags& named) {
    if constexpr (std::is_same_v<Bags, std::int64_t>)
      return nullptr;
    else
      return host_values(exec, named, room_);
  }

  std::vector<offset_type<Bags>> room_;
  index_report report_;
  unsigned int raised_ = 0;
  list_type list_;
};

/// The bags of a batch as their owners get them: an owner of some of a bag's rows gets the bag with those
/// positions. `place` is the bag, `rows` the number of positions, in the order (owner, bag); the positions of
/// these bags follow each other in the order of the route of the rows.
template <class Wire, class Bags>
row_route<Wire> route_bags(const row_route<Wire>& rows, const Bags& list) {
  row_route<Wire> route;
  route.positions = list.bags;
  route.everywhere = rows.everywhere;
  std::vector<std::int64_t> bags, sizes;
  route.begin.assign(1, 0);
  for (std::size_t owner = 0; owner + 1 < rows.begin.size(); ++owner) {
    std::int64_t bag = -1, end = -1;  // positions below `end` lie in `bag`
    for (std::int64_t k = rows.begin[owner]; k < rows.begin[owner + 1]; ++k) {
      const std::int64_t position = rows.place.data()[k];
      if (bag < 0 || position >= end) {
        bag = list.bag_of(position);
        end = list.end(bag);
        bags.push_back(bag);
        sizes.push_back(0);
      }
      ++sizes.back();
    }
    route.begin.push_back(static_cast<std::int64_t>(bags.size()));
  }
  route.place = tensor<std::int64_t, Wire>("bags", bags.size());
  route.rows = tensor<std::int64_t, Wire>("sizes of bags", bags.size());
  std::copy(bags.begin(), bags.end(), route.place.data());
  std::copy(sizes.begin(), sizes.end(), route.rows.data());
  return route;
}

/// The number of positions with a row of each bag, as offsets: bag b has [b + 1] - [b].
template <class Wire, class Bags>
tensor<std::int64_t, Wire> sizes_of_bags(const row_route<Wire>& rows, const Bags& list) {
  tensor<std::int64_t, Wire> sizes("sizes of bags", list.bags + 1);
  std::int64_t* const sizes_data = sizes.data();
  std::fill_n(sizes_data, list.bags + 1, std::int64_t{0});
  for (std::int64_t k = 0; k < rows.routed(); ++k) ++sizes_data[list.bag_of(rows.place.data()[k]) + 1];
  for (std::int64_t b = 0; b < list.bags; ++b) sizes_data[b + 1] += sizes_data[b];
  return sizes;
}

}  // namespace ferry::detail
