// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <mutex>
#include <string>

namespace ferry::detail {

/// Sole use of a row cache by a verb that is being enqueued. In its lifetime the backing arrays can
/// be accessed by this thread; else verbs on them are refused where they would miss changes.
template <class Dependent>
class basic_cache_use {
 public:
  /// Throws invalid_argument if the table was destroyed.
  basic_cache_use(late<row_cache, Dependent>& of, const char* verb) : lock_(of.guard), cache_(of) {
    if (of.arrays.front().accesses.expired())
      throw invalid_argument("ferry::" + std::string(verb) + ": the table '" + of.label +
                             "' of the cached_table was destroyed");
    of.drop_lost();
    of.open();
  }
  basic_cache_use(const basic_cache_use&) = delete;
  basic_cache_use& operator=(const basic_cache_use&) = delete;
  ~basic_cache_use() { cache_.hold(cache_.changed ? row_hold::closed : row_hold::readable); }

 private:
  std::lock_guard<std::mutex> lock_;
  late<row_cache, Dependent>& cache_;
};
using cache_use = basic_cache_use<void>;

/// require_foreign for one operand, an array.
template <class T, class Space>
void require_foreign_array(const char* verb, const row_cache& cache, const array_ref<T, Space>& operand) {
  if (operand.accesses == nullptr) return;
  for (const auto& each : cache.arrays)
    if (each.accesses.lock() == operand.accesses)
      throw invalid_argument(
          "ferry::" + std::string(verb) + ": " + operand.describe() +
          " has rows in the same cached_table of '" + cache.label +
          "', which may be newer in device memory; pass a copy of it, made after a flush()");
}

/// Throws invalid_argument where one of the other operands of a verb on the cached table is an array of the
/// cache: the verb would miss, or undo, changes in device memory. Plans, numbers of indices and what is
/// left out have no such memory. The caller holds a cache_use.
template <class... Operands>
void require_foreign(const char* verb, const row_cache& cache, const Operands&... operands) {
  const auto check = [&](const auto& operand) {
    if constexpr (requires { require_foreign_array(verb, cache, operand); })
      require_foreign_array(verb, cache, operand);
    else if constexpr (requires { make_ref(operand); })
      require_foreign_array(verb, cache, make_ref(operand));
  };
  (check(operands), ...);
}

}  // namespace ferry::detail
