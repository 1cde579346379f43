#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How rows travel between a table and the other side of a verb.
namespace ferry::path {

/// Kernels of the given execution space dereference both sides. Asynchronous on a device.
struct direct {
  using policy_category = path_category;
  static constexpr std::string_view name = "direct";
};
static_assert(PathPolicy<direct>);

/// Host threads move rows between the table and a double-buffered, page-locked ring that DMA drains or fills.
/// Occupies the calling thread.
struct staged {
  using policy_category = path_category;
  static constexpr std::string_view name = "staged";
};
static_assert(PathPolicy<staged>);

/// The default: direct where the execution space reaches both sides at full speed, else staged. A
/// device that meets pageable memory, or a table in pinned_space, gets it staged.
struct automatic {
  using policy_category = path_category;
  static constexpr std::string_view name = "automatic";
};
static_assert(PathPolicy<automatic>);

}  // namespace ferry::path
