// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cache_policy.hpp>
#include <ferry/concepts/argument.hpp>
#include <ferry/runtime/detail/argument_kinds.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

/// The sentences for arguments of which no cached_table can be made.
namespace ferry::detail {

/// True if a table may have a cache.
template <class Table>
inline constexpr bool is_cacheable = holds_elements<Table>() || is_quantized<std::remove_cv_t<Table>> ||
                                     (is_records<std::remove_cv_t<Table>> &&
                                      !is_table_object<std::remove_cv_t<Table>>);

/// Stand for the table and the policy.
/// @{
struct refused_table {};
struct refused_policy {
  static constexpr const char* name = "refused";
  static constexpr bool counts_rows = false;
  [[nodiscard]] static std::int64_t most_rows(std::int64_t) { return 0; }
  [[nodiscard]] static std::int64_t interval() { return 0; }
  [[nodiscard]] static std::vector<std::int64_t> rows_from_start(std::int64_t) { return {}; }
};
/// @}

/// True unless the arguments are a table in a variable and a policy.
template <class Table, class Policy = int, class... Rest>
consteval bool is_refused_cache() {
  if constexpr (is_table_object<std::remove_cvref_t<Table>>)
    return !std::is_same_v<Policy, int> || sizeof...(Rest) != 0;  // else a move
  else
    return !(std::is_lvalue_reference_v<Table> && is_cacheable<std::remove_reference_t<Table>> &&
             CachePolicy<std::remove_cvref_t<Policy>> && sizeof...(Rest) == 0);
}

/// Fails with a sentence.
template <class Table, class Policy = refused_table, class...>
consteval void refuse_cached_table() {
  constexpr bool fits = is_cacheable<std::remove_reference_t<Table>>,
                 is_variable = std::is_lvalue_reference_v<Table>,
                 is_chosen = CachePolicy<std::remove_cvref_t<Policy>>;
  static_assert(
      fits,
      "ferry: a cached_table is made of a table in host memory: a ferry::tensor, a table over a file, a quantized_tensor or optim::records. A sharded_table or another cached_table has no cache.");
  static_assert(
      !fits || is_variable,
      "ferry: a cached_table writes changes back to its table, so the table can't be a temporary; keep it in a variable that outlives the cache.");
  static_assert(
      !fits || !is_variable || is_chosen,
      "ferry: the second argument of a cached_table says which rows are cached: ferry::cache::frequency{.rows = 1000} say, cache::fixed, cache::first, or a CachePolicy of yours.");
  static_assert(
      !fits || !is_variable || !is_chosen,
      "ferry: a cached_table is made of a table and a policy; it has one kind of directory, so leave the third argument out.");
}

}  // namespace ferry::detail
