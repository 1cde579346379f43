// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <mutex>

namespace ferry::detail {

/// Sole use of a row cache by a verb that is being enqueued. In its lifetime the backing arrays can
/// be accessed by this thread; else verbs on them are refused where they would miss changes.
class cache_use {
 public:
  /// Throws invalid_argument if the table was destroyed.
  cache_use(row_cache& cache, const char* verb);
  cache_use(const cache_use&) = delete;
  cache_use& operator=(const cache_use&) = delete;
  ~cache_use();

 private:
  std::lock_guard<std::mutex> lock_;
  row_cache& cache_;
};

[[noreturn]] void refuse_own_rows(const char* verb, const row_cache& cache, const array_note& operand);

/// require_foreign for one operand, an array.
template <class T, class Space>
void require_foreign_array(const char* verb, const row_cache& cache, const array_ref<T, Space>& operand) {
  if (operand.accesses == nullptr) return;
  for (const auto& entry : cache.arrays)
    if (entry.accesses.lock() == operand.accesses) refuse_own_rows(verb, cache, operand.note());
}

/// Throws invalid_argument if one of the other operands of a verb on the cached table is an array of the
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
