// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace ferry {

/// Which rows a cached_table keeps in device memory.
///
///   name              what messages call the policy
///   counts_rows       whether uses of rows are counted, 4 bytes per row of the table in device memory, and
///                     the rows exchanged for those used most
///   most_rows(rows)   the most rows to keep, of a table of `rows` rows; throws for options that do not fit
///   interval()        batches between two refreshes; 0 for none
///   rows_from_start(rows)
///                     the rows to keep from the beginning, each once and of [0, rows)
template <class T>
concept CachePolicy = requires(const T& policy, std::int64_t rows) {
  { T::name } -> std::convertible_to<std::string_view>;
  { T::counts_rows } -> std::convertible_to<bool>;
  { policy.most_rows(rows) } -> std::convertible_to<std::int64_t>;
  { policy.interval() } -> std::convertible_to<std::int64_t>;
  { policy.rows_from_start(rows) } -> std::convertible_to<std::vector<std::int64_t>>;
};

namespace detail {
/// True for policies under which each batch of rows brings its own, declared by `keeps_order`.
template <class Policy>
inline constexpr bool keeps_order = false;
template <class Policy>
  requires requires { Policy::keeps_order; }
inline constexpr bool keeps_order<Policy> = Policy::keeps_order;
}  // namespace detail

/// The policies of a cached_table.
namespace cache {

/// A number of rows or batches, from an integer of any type: `frequency{.rows = n}` compiles for each.
class count {
 public:
  /// Takes any integer; one too large for 64 bits becomes the largest that fits.
  template <std::integral Integer>
  constexpr count(Integer value)  // NOLINT(google-explicit-constructor): an option is written as a number
      : value_(std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                                  : std::numeric_limits<std::int64_t>::max()) {}
  /// The number.
  [[nodiscard]] constexpr std::int64_t value() const { return value_; }

 private:
  std::int64_t value_;
};

}  // namespace cache

}  // namespace ferry
