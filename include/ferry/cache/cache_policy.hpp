// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <numeric>
#include <string_view>
#include <type_traits>
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

namespace ferry::cache {

/// Keeps the first rows of the table, for rows that are numbered by their frequency. They never change.
struct first {
  static constexpr std::string_view name = "cache::first";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = false;                ///< see ferry::CachePolicy

  count rows;  ///< how many rows

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const {
    if (rows.value() < 0)
      throw invalid_argument(detail::joined("ferry::cache::first: rows = ", rows.value(), ", must be >= 0"));
    return std::min(rows.value(), table_rows);
  }
  [[nodiscard]] static std::int64_t interval() { return 0; }
  [[nodiscard]] std::vector<std::int64_t> rows_from_start(std::int64_t table_rows) const {
    std::vector<std::int64_t> list(static_cast<std::size_t>(most_rows(table_rows)));
    std::iota(list.begin(), list.end(), std::int64_t{0});
    return list;
  }
  [[nodiscard]] static first resized(std::int64_t most) { return {most}; }
  /// @}
};
static_assert(CachePolicy<first>);

/// Row numbers from a range of integers of any type in host memory, copied.
class row_list {
 public:
  /// No rows.
  row_list() = default;
  /// The numbers in braces.
  row_list(std::initializer_list<std::int64_t> rows) : rows_(rows) {}
  /// The elements of a std::vector, a std::span or another range.
  template <class Rows>
    requires(!std::same_as<Rows, row_list> && requires(const Rows& range) {
      requires std::integral<std::remove_cvref_t<decltype(*std::begin(range))>>;
      std::end(range);
    })
  row_list(const Rows& rows) {  // NOLINT(google-explicit-constructor): fixed{rows} takes the user's vector
    for (const auto& row : rows) rows_.push_back(count(row).value());
  }
  /// The rows in the order given.
  [[nodiscard]] const std::vector<std::int64_t>& list() const { return rows_; }

 private:
  std::vector<std::int64_t> rows_;
};

/// Keeps the rows that the user lists. They never change.
struct fixed {
  static constexpr std::string_view name = "cache::fixed";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = false;                ///< see ferry::CachePolicy

  row_list rows;  ///< the rows, in any order; a row listed twice counts once

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const;
  [[nodiscard]] static std::int64_t interval() { return 0; }
  [[nodiscard]] std::vector<std::int64_t> rows_from_start(std::int64_t table_rows) const;
  /// @}
};
static_assert(CachePolicy<fixed>);

/// Keeps the rows that were used most. Verbs count how often each row is used; with every refresh after a
/// full interval the counts are halved, so that changes of popularity are followed. From the third interval
/// on a row needs two uses more than a cached one to replace it, so that rows which are hardly used are not
/// exchanged by chance. A cached row with nothing left of its count leaves for any that was used. Of
/// rows with equal counts those stay that are there, then smaller row numbers win.
///
///   rows     the most rows in device memory
///   refresh  batches between two refreshes. The first refreshes come after 1, 2, 4, 8, ... batches
struct frequency {
  static constexpr std::string_view name = "cache::frequency";  ///< see ferry::CachePolicy
  static constexpr bool counts_rows = true;                     ///< see ferry::CachePolicy

  count rows;          ///< the most rows in device memory
  count refresh = 64;  ///< batches between two refreshes

  /// See ferry::CachePolicy.
  /// @{
  [[nodiscard]] std::int64_t most_rows(std::int64_t table_rows) const {
    if (rows.value() < 0)
      throw invalid_argument(
          detail::joined("ferry::cache::frequency: rows = ", rows.value(), ", must be >= 0"));
    if (refresh.value() < 1)
      throw invalid_argument(
          detail::joined("ferry::cache::frequency: refresh = ", refresh.value(), ", must be >= 1"));
    return std::min(rows.value(), table_rows);
  }
  [[nodiscard]] std::int64_t interval() const { return refresh.value(); }
  [[nodiscard]] static std::vector<std::int64_t> rows_from_start(std::int64_t) { return {}; }
  [[nodiscard]] frequency resized(std::int64_t most) const { return {most, refresh}; }
  /// @}
};
static_assert(CachePolicy<frequency>);

}  // namespace ferry::cache
