// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ferry::cache {

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

}  // namespace ferry::cache
