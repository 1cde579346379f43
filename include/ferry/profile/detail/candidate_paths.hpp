#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/profile/path_kind.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace ferry {

namespace detail {

/// All routes, asynchronous ones first: the order in which equal predictions are preferred.
inline constexpr std::array<path_kind, 4> every_path_kind = {path_kind::direct, path_kind::ordered,
                                                             path_kind::staged, path_kind::cooperative};

/// Some of the routes.
class path_set {
 public:
  constexpr path_set() = default;
  constexpr path_set(std::initializer_list<path_kind> routes) {
    for (const path_kind one : routes) bits |= bit(one);
  }
  [[nodiscard]] constexpr bool contains(path_kind one) const { return (bits & bit(one)) != 0u; }
  [[nodiscard]] constexpr path_set with(path_kind one) const { return path_set(bits | bit(one)); }
  [[nodiscard]] constexpr path_set without(path_kind one) const { return path_set(bits & ~bit(one)); }
  [[nodiscard]] constexpr path_set without(path_set some) const { return path_set(bits & ~some.bits); }
  [[nodiscard]] constexpr bool empty() const { return bits == 0u; }
  [[nodiscard]] constexpr int size() const {
    int count = 0;
    for (const path_kind one : every_path_kind) count += contains(one) ? 1 : 0;
    return count;
  }
  [[nodiscard]] constexpr path_kind first() const {
    for (const path_kind one : every_path_kind)
      if (contains(one)) return one;
    return path_kind::direct;
  }
  friend constexpr bool operator==(const path_set&, const path_set&) = default;

  unsigned bits = 0;  ///< public, so that a set may be a template argument

 private:
  constexpr explicit path_set(unsigned from) : bits(from) {}
  static constexpr unsigned bit(path_kind one) { return 1u << static_cast<unsigned>(one); }
};

/// One call of a verb, as far as its duration depends on it.
struct move_facts {
  verb what = verb::gather;
  std::string_view table_space;  ///< of the rows that are named by index; for copy, of the source
  std::string_view batch_space;  ///< of the rows in the order of the batch; for copy, of the destination
  std::int64_t table_bytes = 0;
  std::int64_t row_bytes = 0;
  std::int64_t positions = 0;
  bool planned = false;  ///< the indices are sorted already, by a row_plan
  bool on_host = false;  ///< the verb's own kernels run on the host's cores
};

/// The facts of a verb that Exec's kernels would run on `positions` rows of `table`.
template <class Exec, class BatchSpace, class T, class TableSpace>
move_facts facts_of(verb what, const array_ref<T, TableSpace>& table, std::int64_t positions,
                    bool planned = false) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  return {what,
          TableSpace::name,
          BatchSpace::name,
          table.rows() * table.row_stride() * element,
          table.width() * element,
          positions,
          planned,
          is_host_exec<Exec>};
}

/// The routes among which path::automatic chooses. Routes that the data never shows to win by a tenth are left
/// out, so that they need not be compiled: mapped memory is as fast as the link, but for short rows, and a verb that
/// writes walks over its plan's rows in their order anyway. A device's kernels that could reach pageable memory have
/// path::direct for the asking.
template <class Exec, class TableSpace, class BatchSpace>
constexpr path_set candidate_paths(verb what) {
  constexpr bool batch_on_device = std::is_same_v<BatchSpace, device_space>;
  constexpr bool pageable =
      std::is_same_v<TableSpace, pageable_space> || std::is_same_v<BatchSpace, pageable_space>;
  if constexpr (is_host_exec<Exec>) {
    return {path_kind::direct};
  } else if constexpr (pageable) {
    return {path_kind::staged};
  } else {
    if (what == verb::copy || !batch_on_device) return {path_kind::direct};
    if (!std::is_same_v<TableSpace, pinned_space>)
      return what != verb::gather ? path_set{path_kind::direct}
             : std::is_same_v<TableSpace, mapped_space>
                 ? path_set{path_kind::direct, path_kind::ordered, path_kind::cooperative}
                 : path_set{path_kind::direct, path_kind::ordered};
    const path_set all{path_kind::direct, path_kind::ordered, path_kind::staged};
    return what == verb::gather || what == verb::scatter ? all.with(path_kind::cooperative) : all;
  }
}

}  // namespace detail
}  // namespace ferry
