#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How rows travel between a table and the other side of a verb.
namespace ferry::path {

/// Kernels of the given execution space dereference both sides, in the order of the batch. Asynchronous on a
/// device.
struct direct {
  using policy_category = path_category;
  static constexpr std::string_view name = "direct";
  static constexpr bool sorts = false, reaches_table = true, occupies_host_threads = false,
                        chosen_at_run_time = false;
};
static_assert(PathPolicy<direct>);

/// As direct, but in the order of the table's rows and by few teams, each of which walks over neighbouring
/// rows: for tables whose pages the device can't keep translated, such as registered host memory beyond a
/// gigabyte and device memory beyond 64. Sorts the indices first, unless a plan has done so. Asynchronous on
/// a device.
struct ordered {
  using policy_category = path_category;
  static constexpr std::string_view name = "ordered";
  static constexpr bool sorts = true, reaches_table = true, occupies_host_threads = false,
                        chosen_at_run_time = false;
};
static_assert(PathPolicy<ordered>);

/// Host threads move rows between the table and a page-locked ring that a kernel drains or fills. Occupies the
/// calling thread.
struct staged {
  using policy_category = path_category;
  static constexpr std::string_view name = "staged";
  static constexpr bool sorts = false, reaches_table = false, occupies_host_threads = true,
                        chosen_at_run_time = false;
};
static_assert(PathPolicy<staged>);

/// Both at once, for a table in host memory and a batch in device memory: the device walks the sorted rows
/// from one end as in ordered, host threads and their ring from the other as in staged, until they meet. Serves
/// gather and scatter. Occupies the calling thread.
struct cooperative {
  using policy_category = path_category;
  static constexpr std::string_view name = "cooperative";
  static constexpr bool sorts = true, reaches_table = true, occupies_host_threads = true,
                        chosen_at_run_time = false;
};
static_assert(PathPolicy<cooperative>);

/// The default: the path that the machine's profile predicts to be the fastest for this call.
struct automatic {
  using policy_category = path_category;
  static constexpr std::string_view name = "automatic";
  static constexpr bool sorts = false, reaches_table = false, occupies_host_threads = false,
                        chosen_at_run_time = true;
};
static_assert(PathPolicy<automatic>);

}  // namespace ferry::path
