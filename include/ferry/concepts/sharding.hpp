// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ferry::kernels {
struct global_rows;
}

namespace ferry {

namespace detail {
/// True if a sharding leaves in_kernels out, or gives it as a constant.
template <class S>
inline constexpr bool says_in_kernels = true;
template <class S>
  requires requires { S::in_kernels; }
inline constexpr bool says_in_kernels<S> = requires { typename std::bool_constant<S::in_kernels>; };
}  // namespace detail

/// How the rows of a sharded_table are spread over the ranks of a group. A small object whose bytes are the
/// same on all ranks; most are empty.
///
///   name                            text for messages
///   replicates                      a constant: whether every rank has all rows
///   check(ranks)                    throws invalid_argument for options that do not fit the group
///   owner(row, rows, ranks)         the rank that has a row
///   local_row(row, rows, ranks)     the place of the row in the shard of its owner
///   rows_of(rank, rows, ranks)      the rows of a shard
///   global_rows(rank, rows, ranks)  the inverse of local_row, for kernels: a kernels::global_rows
///                                   {first, stride, scramble}. Place i of the shard has the row
///                                   scramble.backward(first + i * stride)
///   in_kernels                      optional constant: true where owner and local_row are KOKKOS_FUNCTIONs,
///                                   as path::peer needs
///
/// Every kernel that draws numbers or looks something up by the row has such an object, so it is of one type
/// for all shardings.
template <class S>
concept Sharding = std::is_trivially_copyable_v<S> && std::default_initializable<S> &&
    detail::says_in_kernels<S> &&
    requires(const S& sharding, std::int64_t row, std::int64_t rows, int ranks, int rank) {
  { S::name } -> std::convertible_to<std::string_view>;
  typename std::bool_constant<S::replicates>;
  sharding.check(ranks);
  { sharding.owner(row, rows, ranks) } -> std::same_as<int>;
  { sharding.local_row(row, rows, ranks) } -> std::same_as<std::int64_t>;
  { sharding.rows_of(rank, rows, ranks) } -> std::same_as<std::int64_t>;
  { sharding.global_rows(rank, rows, ranks) } -> std::same_as<kernels::global_rows>;
};

}  // namespace ferry
