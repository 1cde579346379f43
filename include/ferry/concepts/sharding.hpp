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

/// The numbers of a shard's rows, for kernels, which Sharding::global_rows returns: local row i of the shard
/// is the row numbers[i] if there is an array, else scramble.backward(first + i * stride). The array lies in
/// memory that host code and kernels reach, as mapped_space, and lives as long as the sharding.
using shard_rows = kernels::global_rows;

namespace detail {
/// True if a sharding leaves in_kernels out, or gives it as a constant.
template <class S>
inline constexpr bool says_in_kernels = true;
template <class S>
  requires requires { S::in_kernels; }
inline constexpr bool says_in_kernels<S> = requires { typename std::bool_constant<S::in_kernels>; };

/// True if kernels call a sharding, so that it is copied to a device.
template <class S>
inline constexpr bool runs_in_kernels = false;
template <class S>
  requires requires { requires S::in_kernels; }
inline constexpr bool runs_in_kernels<S> = true;

template <class S>
concept has_digest = requires(const S& sharding) {
  { sharding.digest() } -> std::same_as<std::uint64_t>;
};
/// Ranks compare bytes, or else what digest() returns.
template <class S>
concept comparable_sharding = std::copyable<S> && std::default_initializable<S> &&
    (std::is_trivially_copyable_v<S> || (has_digest<S> && !runs_in_kernels<S>));
template <class S>
concept states_sharding_facts = says_in_kernels<S> && requires {
  { S::name } -> std::convertible_to<std::string_view>;
  typename std::bool_constant<S::replicates>;
};
template <class S>
concept locates_rows = requires(const S& sharding, std::int64_t row, std::int64_t rows, int ranks, int rank) {
  sharding.check(ranks);
  { sharding.owner(row, rows, ranks) } -> std::same_as<int>;
  { sharding.local_row(row, rows, ranks) } -> std::same_as<std::int64_t>;
  { sharding.rows_of(rank, rows, ranks) } -> std::same_as<std::int64_t>;
};
template <class S>
concept numbers_rows = requires(const S& sharding, std::int64_t rows, int ranks, int rank) {
  { sharding.global_rows(rank, rows, ranks) } -> std::same_as<shard_rows>;
};
}  // namespace detail

/// How the rows of a sharded_table are distributed over the ranks of a group. A small object, equal on all
/// ranks. For rows in an order of your own, such as by load, sharding::dealt takes an array or a function.
///
///   name                            text for messages
///   replicates                      a constant: whether every rank has all rows
///   check(ranks)                    throws invalid_argument for options that do not fit the group
///   owner(row, rows, ranks)         the rank that has a row
///   local_row(row, rows, ranks)     the index of the row in the shard of its owner
///   rows_of(rank, rows, ranks)      the rows of a shard
///   global_rows(rank, rows, ranks)  the inverse of local_row, for kernels: a shard_rows
///   in_kernels                      optional constant: true if owner and local_row are KOKKOS_FUNCTIONs,
///                                   as path::peer needs
///   digest()                        optional: a std::uint64_t, equal for equal shardings. Ranks compare
///                                   it; without it they compare the bytes of the object, which then is
///                                   trivially copyable
///
/// Every kernel that draws numbers or looks something up by the row has a shard_rows, so it is of one type
/// for all shardings.
template <class S>
concept Sharding = detail::comparable_sharding<S> && detail::states_sharding_facts<S> &&
    detail::locates_rows<S> && detail::numbers_rows<S>;

namespace detail {
/// The sentence about what a sharding lacks.
template <class S>
consteval bool require_sharding() {
  static_assert(
      comparable_sharding<S>,
      "ferry: a sharding is default constructible and trivially copyable, because ranks compare its bytes. One that holds memory has a std::uint64_t digest() instead, and no in_kernels.");
  static_assert(
      states_sharding_facts<S>,
      "ferry: a sharding has a static constexpr std::string_view name and a static constexpr bool replicates; in_kernels, if it is there, is a constant, too.");
  static_assert(
      locates_rows<S>,
      "ferry: a sharding has check(ranks), int owner(row, rows, ranks), std::int64_t local_row(row, rows, ranks) and std::int64_t rows_of(rank, rows, ranks), all const.");
  static_assert(
      numbers_rows<S>,
      "ferry: global_rows(rank, rows, ranks) of a sharding returns a ferry::shard_rows, {first, stride}, no function of its own. For any other order use ferry::sharding::dealt, of an array or a function.");
  return true;
}
}  // namespace detail

}  // namespace ferry
