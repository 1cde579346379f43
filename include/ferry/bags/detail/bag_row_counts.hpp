// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>

namespace ferry::kernels {

/// sizes[b] = 0.
struct clear_sizes {
  std::int64_t* sizes;

  static std::int64_t bytes_each() { return sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t bag) const { sizes[bag] = 0; }
};

/// Adds the number of positions with a row to the sizes of their bags. One thread per 32 positions, so that
/// bags of any length take the same time.
template <class Offset>
struct count_bag_rows {
  static constexpr std::int64_t run = 32;

  bag_list<Offset> bags;
  const std::int64_t* row_of;
  std::int64_t* sizes;

  static std::int64_t bytes_each() { return 2 * run * sizeof(std::int64_t); }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t last = (i + 1) * run < bags.positions ? (i + 1) * run : bags.positions;
    for (std::int64_t k = i * run; k < last;) {
      const std::int64_t bag = bags.bag_of(k);
      const bag_range range = bags.range(bag, false);
      if (k < range.begin || k >= range.end) {
        ++k;
        continue;
      }
      const std::int64_t end = range.end < last ? range.end : last;
      std::int64_t rows = 0;
      for (; k < end; ++k) rows += row_of[k] >= 0 ? 1 : 0;
      if (rows != 0) Kokkos::atomic_add(&sizes[bag], rows);
    }
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The number of positions of each bag that have a row, -1 being no row; null if `row_of` is null and all
/// have one. Kept until the verb ends.
template <class Exec, class Offset>
const std::int64_t* bag_row_counts(launch_context<Exec>& call, const std::string& label,
                                   const kernels::bag_list<Offset>& bags, const std::int64_t* row_of) {
  if (row_of == nullptr) return nullptr;
  constexpr std::int64_t run = kernels::count_bag_rows<Offset>::run;
  auto* const sizes = call.template scratch<std::int64_t>(bags.bags);
  launch(call.exec(), call.label_part(label, "clear"), bags.bags, kernels::clear_sizes{sizes});
  if (bags.bags > 0)
    launch(call.exec(), call.label_part(label, "count"), (bags.positions + run - 1) / run,
           kernels::count_bag_rows<Offset>{bags, row_of, sizes});
  return sizes;
}

}  // namespace ferry::detail
