// SPDX-License-Identifier: Apache-2.0
#include <ferry/distributed/sharded/detail/pull_rows.hpp>
#include <ferry/distributed/sharded/detail/values_in_place.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::detail {

kernels::join_lists lists_for(int rank, const std::vector<batch_offer>& offers,
                              const std::vector<std::int64_t>& counts, const std::byte* lowest,
                              std::size_t unit) {
  kernels::join_lists made{};
  made.ranks = static_cast<int>(offers.size());
  std::int64_t first = 0;
  for (std::size_t r = 0; r < offers.size(); ++r) {
    const std::int64_t* const of = counts.data() + r * offers.size();
    std::int64_t before = 0;
    for (int owner = 0; owner < rank; ++owner) before += of[owner];
    made.place[r] = offers[r].place + before;
    made.local[r] = offers[r].rows + before;
    // The difference of addresses of different arrays, as numbers.
    const auto shift =
        reinterpret_cast<std::uintptr_t>(offers[r].values) - reinterpret_cast<std::uintptr_t>(lowest);
    made.values[r] = static_cast<std::int64_t>(shift / unit);
    made.step[r] = offers[r].value_step / static_cast<std::int64_t>(unit);
    made.begin[r] = first;
    first += of[rank];
  }
  return made;
}

bool lie_on_devices(int rank, const batch_meeting<batch_offer>& met) {
  const auto ranks = met.offers.size();
  for (std::size_t r = 0; r < ranks; ++r)
    if (met.counts[r * ranks + static_cast<std::size_t>(rank)] != 0 && met.offers[r].values_device < 0)
      return false;
  return true;
}

}  // namespace ferry::detail
