// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/policy.hpp>

#include <string_view>

/// How rows travel between a table and the other side of a verb.
namespace ferry::path {

namespace detail {
/// The facts of most of these policies; each states its name and those that differ.
struct facts {
  using policy_category = path_category;
  static constexpr bool sorts = false, reaches_table = false, occupies_host_threads = false,
                        chosen_at_run_time = false, reads_shards = false, takes_copy_engines = false;
};
}  // namespace detail

/// Kernels of the given execution space dereference both sides, in the order of the batch. Asynchronous on a
/// device.
struct direct : detail::facts {
  static constexpr std::string_view name = "direct";  ///< see ferry::PathPolicy
  static constexpr bool reaches_table = true;         ///< see ferry::PathPolicy
};
static_assert(PathPolicy<direct>);

/// As direct, in the order of the table's rows. A few teams each process a contiguous range of sorted rows.
/// Serves tables beyond the reach of the device's address translation: registered host memory above about 1
/// GiB, device memory above about 64 GiB. Sorts the indices first, unless a row_plan is passed. Asynchronous
/// on a device.
struct ordered : detail::facts {
  static constexpr std::string_view name = "ordered";  ///< see ferry::PathPolicy
  static constexpr bool sorts = true;                  ///< see ferry::PathPolicy
  static constexpr bool reaches_table = true;          ///< see ferry::PathPolicy
};
static_assert(PathPolicy<ordered>);

/// Host threads move rows between the table and page-locked slots, which kernels drain or fill.
/// Occupies the calling thread.
struct staged : detail::facts {
  static constexpr std::string_view name = "staged";   ///< see ferry::PathPolicy
  static constexpr bool occupies_host_threads = true;  ///< see ferry::PathPolicy
};
static_assert(PathPolicy<staged>);

/// ordered and staged at the same time, for a table in host memory and a batch in device memory. The device
/// takes the sorted rows from one end, host threads take them from the other, until all are taken. Serves
/// gather and scatter. Occupies the calling thread.
struct cooperative : detail::facts {
  static constexpr std::string_view name = "cooperative";  ///< see ferry::PathPolicy
  static constexpr bool sorts = true;                      ///< see ferry::PathPolicy
  static constexpr bool reaches_table = true;              ///< see ferry::PathPolicy
  static constexpr bool occupies_host_threads = true;      ///< see ferry::PathPolicy
};
static_assert(PathPolicy<cooperative>);

/// For gather from a sharded_table whose shards this process holds or has opened: one kernel of the
/// execution space reads the shards of all ranks where they lie, over the links between the devices. With a
/// plan, each different row crosses once. Not collective, asynchronous, and can be captured into a graph.
struct peer : detail::facts {
  static constexpr std::string_view name = "peer";  ///< see ferry::PathPolicy
  static constexpr bool reaches_table = true;       ///< see ferry::PathPolicy
  static constexpr bool reads_shards = true;        ///< see ferry::PathPolicy
};
static_assert(PathPolicy<peer>);

/// For gathers from a ferry::sharded_table: each different row of a batch comes once from its owner, and is
/// then copied to all positions that name it. The owners read their shards on path::automatic.
struct exchange : detail::facts {
  static constexpr std::string_view name = "exchange";  ///< see ferry::PathPolicy
  static constexpr bool between_ranks = true;           ///< see ferry::PathPolicy
};
static_assert(PathPolicy<exchange>);

/// For copy_rows between device_space and pinned_space: the copy engines of the device move the rows, runs of
/// neighbours at once, and no multiprocessor does. Occupies the calling thread until the copies are enqueued.
struct copy_engine : detail::facts {
  static constexpr std::string_view name = "copy_engine";  ///< see ferry::PathPolicy
  static constexpr bool takes_copy_engines = true;         ///< see ferry::PathPolicy
};
static_assert(PathPolicy<copy_engine>);

/// The default: the path that a rule over current_profile names for this call; see ferry::explain.
struct automatic : detail::facts {
  static constexpr std::string_view name = "automatic";  ///< see ferry::PathPolicy
  static constexpr bool chosen_at_run_time = true;       ///< see ferry::PathPolicy
};
static_assert(PathPolicy<automatic>);

}  // namespace ferry::path

/// Conclusions from a path's facts.
namespace ferry::detail {

/// Rows travel between the ranks of a sharded table. Declared by such paths alone.
template <class Path>
inline constexpr bool is_between_ranks = requires {
  requires Path::between_ranks;
};

/// Kernels and host threads share the rows of a call.
template <PathPolicy Path>
inline constexpr bool splits_rows = Path::reaches_table ? Path::occupies_host_threads : false;

/// Host threads alone move the rows.
template <PathPolicy Path>
inline constexpr bool by_host_alone = !Path::reaches_table && Path::occupies_host_threads;

/// Kernels walk over the rows in the order of the batch.
template <PathPolicy Path>
inline constexpr bool in_batch_order = Path::reaches_table && !Path::sorts;

/// A path reads the shards of a sharded table, which other tables do not have.
template <PathPolicy Path>
inline constexpr bool reads_shards = Path::reads_shards;

}  // namespace ferry::detail
