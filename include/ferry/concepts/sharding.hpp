// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry {

/// How the rows of a sharded_table are spread over the ranks of a group. A small object whose bytes are the
/// same on all ranks; most are empty.
///
///   name                            text for messages
///   replicates                      whether every rank has all rows
///   check(ranks)                    throws invalid_argument for options that do not fit the group
///   owner(row, rows, ranks)         the rank that has a row
///   local_row(row, rows, ranks)     the place of the row in the shard of its owner
///   rows_of(rank, rows, ranks)      the rows of a shard
///   global_rows(rank, rows, ranks)  a function for kernels, from a place in a shard to the row: the
///                                   inverse of local_row; a kernels::global_rows
///   in_kernels                      optional: true where owner and local_row are KOKKOS_FUNCTIONs, as
///                                   path::peer needs
template <class S>
concept Sharding = std::is_trivially_copyable_v<S> && std::default_initializable<S> &&
    requires(const S& sharding, std::int64_t row, std::int64_t rows, int ranks, int rank) {
  { S::name } -> std::convertible_to<std::string_view>;
  { S::replicates } -> std::convertible_to<bool>;
  sharding.check(ranks);
  { sharding.owner(row, rows, ranks) } -> std::same_as<int>;
  { sharding.local_row(row, rows, ranks) } -> std::same_as<std::int64_t>;
  { sharding.rows_of(rank, rows, ranks) } -> std::same_as<std::int64_t>;
  { sharding.global_rows(rank, rows, ranks)(row) } -> std::same_as<std::int64_t>;
};

}  // namespace ferry
