// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

/// Sums of values that several positions share, each position with a part of its own. See shared_values for
/// the arrays.
namespace ferry::kernels {

/// The rows of a plan; each position has its values times a factor.
struct weighted_plan_rows : plan_rows {
  const double* factors;

  static constexpr bool adjusts = true;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void adjust(Compute (&tile)[Tile::elements], std::int64_t place, std::int64_t,
                                          int count) const {
    const auto factor = convert<Compute>(factors[place]);
    for (int e = 0; e < live<Tile>(count); ++e) tile[e] = factor * tile[e];
  }
};

/// The rows of a plan; each position has those elements that are for it, and zeros.
struct chosen_plan_rows : plan_rows {
  const std::int64_t* positions;
  const std::int64_t* chosen;
  std::int64_t width;

  static constexpr bool adjusts = true;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void adjust(Compute (&tile)[Tile::elements], std::int64_t place,
                                          std::int64_t column, int count) const {
    const std::int64_t* of_row = chosen + position(place) * width + column;
    for (int e = 0; e < live<Tile>(count); ++e)
      if (of_row[e] != positions[place]) tile[e] = Compute(0);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The duplicates policies of such sums, for the library's own use.
struct shared_sum {
  using policy_category = duplicates_category;
  static constexpr std::string_view name = "duplicates::sum";
  static constexpr bool combines = true;
  static constexpr bool needs_plan = true;
  static constexpr bool forbids = false;
};
struct weighted_sum : shared_sum {
  static kernels::weighted_plan_rows source(const kernels::plan_rows& rows, const plan_storage& store,
                                            std::int64_t) {
    return {rows, store.values.factors};
  }
};
static_assert(DuplicatesPolicy<weighted_sum>);
struct chosen_sum : shared_sum {
  static kernels::chosen_plan_rows source(const kernels::plan_rows& rows, const plan_storage& store,
                                          std::int64_t width) {
    return {rows, store.order, store.values.chosen, width};
  }
};
static_assert(DuplicatesPolicy<chosen_sum>);

/// True if a duplicates policy has a source of its own, which adjusts the values of a position.
template <class Duplicates>
inline constexpr bool adjusts_values = requires {
  &Duplicates::source;
};

/// The type in which kernels of Exec combine adjusted values: a device would fuse the product of an
/// adjustment with the addition after it, so its operations round one by one.
template <class Exec, class Duplicates, class Compute>
consteval auto combining_number_for() {
  constexpr bool fuses = std::is_same_v<Compute, float> || std::is_same_v<Compute, double>;
  if constexpr (!is_host_exec<Exec> && adjusts_values<Duplicates> && fuses)
    return std::type_identity<typename execution_backend<Exec>::template number<Compute>>{};
  else
    return std::type_identity<Compute>{};
}
template <class Exec, class Duplicates, class Compute>
using combining_number = typename decltype(combining_number_for<Exec, Duplicates, Compute>())::type;

}  // namespace ferry::detail
