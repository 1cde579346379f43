// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/spaces.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

/// The rule of path::automatic: a few comparisons of the profile's numbers for a call; a pure function of
/// sizes and memory spaces. Rows are assumed to be random and uniformly distributed.
namespace ferry::detail {

/// All paths; asynchronous ones come first.
inline constexpr std::array<path_kind, 4> every_path_kind = {path_kind::direct, path_kind::ordered,
                                                             path_kind::staged, path_kind::cooperative};

/// A set of paths.
class path_set {
 public:
  constexpr path_set() = default;
  constexpr path_set(std::initializer_list<path_kind> paths) {
    for (const path_kind path : paths) bits |= bit(path);
  }
  [[nodiscard]] constexpr bool contains(path_kind path) const { return (bits & bit(path)) != 0u; }
  [[nodiscard]] constexpr path_set including(path_kind path) const { return path_set(bits | bit(path)); }
  [[nodiscard]] constexpr path_set without(path_kind path) const { return path_set(bits & ~bit(path)); }
  [[nodiscard]] constexpr path_set without(path_set paths) const { return path_set(bits & ~paths.bits); }
  [[nodiscard]] constexpr bool empty() const { return bits == 0u; }
  [[nodiscard]] constexpr int size() const {
    int count = 0;
    for (const path_kind path : every_path_kind) count += contains(path) ? 1 : 0;
    return count;
  }
  [[nodiscard]] constexpr path_kind first() const {
    for (const path_kind path : every_path_kind)
      if (contains(path)) return path;
    return path_kind::direct;
  }
  friend constexpr bool operator==(const path_set&, const path_set&) = default;

  unsigned bits = 0;  ///< public, so that a set may be a template argument

 private:
  constexpr explicit path_set(unsigned mask) : bits(mask) {}
  static constexpr unsigned bit(path_kind path) { return 1u << static_cast<unsigned>(path); }
};

/// The facts of a verb's call that determine its duration.
struct move_facts {
  verb action = verb::gather;
  std::string_view table_space;  ///< of the table; for copy, of the source
  std::string_view batch_space;  ///< of the batch; for copy, of the destination
  std::int64_t table_bytes = 0;
  std::int64_t row_bytes = 0;
  std::int64_t positions = 0;
  bool planned = false;  ///< a row_plan has sorted the indices
  bool on_host = false;  ///< the kernels of the verb run on the host's cores
};

/// The facts of a verb on `positions` rows of `table` for kernels of Exec.
template <class Exec, class BatchSpace, class T, class TableSpace>
move_facts facts_of(verb action, const array_ref<T, TableSpace>& table, std::int64_t positions,
                    bool planned = false) {
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  return {action,
          TableSpace::name,
          BatchSpace::name,
          table.rows() * table.row_stride() * element,
          table.width() * element,
          positions,
          planned,
          is_host_exec<Exec>};
}

/// The paths among which path::automatic chooses. Paths that never won by a tenth in measurements are left
/// out, so they need not be compiled. Mapped memory runs at the speed of the link, except for short rows and
/// for rows of a large table that are written in any order. A verb that writes processes its plan's rows in
/// order anyway. Where device kernels reach pageable memory, path::direct must be requested explicitly.
template <class Exec, class TableSpace, class BatchSpace>
constexpr path_set candidate_paths(verb action) {
  constexpr bool batch_on_device = std::is_same_v<BatchSpace, device_space>;
  constexpr bool pageable =
      std::is_same_v<TableSpace, pageable_space> || std::is_same_v<BatchSpace, pageable_space>;
  if constexpr (is_host_exec<Exec>) {
    return {path_kind::direct};
  } else if constexpr (pageable) {
    return {path_kind::staged};
  } else {
    if (action == verb::copy || !batch_on_device) return {path_kind::direct};
    const path_set by_kernels{path_kind::direct, path_kind::ordered};
    if constexpr (std::is_same_v<TableSpace, device_space>)
      return action == verb::gather ? by_kernels : path_set{path_kind::direct};
    if constexpr (std::is_same_v<TableSpace, mapped_space>)
      return action == verb::gather ? by_kernels.including(path_kind::cooperative) : by_kernels;
    const path_set host_table{path_kind::direct, path_kind::ordered, path_kind::staged};
    return action == verb::gather || action == verb::scatter ? host_table.including(path_kind::cooperative)
                                                             : host_table;
  }
}

/// The number of the profile that a row's time on a path follows from.
enum class row_limit : unsigned char {
  device_memory,  ///< rows within the device
  link_rows,      ///< requests over the link, for short rows
  link_bytes,     ///< bytes over the link
  translation,    ///< pages that the device must look up
  host,           ///< the threads of the host
  both            ///< the device and the threads of the host together
};

/// A path's start and the time of a row, which is its bytes over the path's rate.
struct path_cost {
  double start_us = 0;  ///< the call, its wait() and the sort, without rows
  double row_ns = 0;
  row_limit limit = row_limit::device_memory;

  [[nodiscard]] double rows_us(std::int64_t rows) const {
    return rows > 0 ? static_cast<double>(rows) * row_ns * 1e-3 : 0.0;
  }
  [[nodiscard]] double seconds(std::int64_t rows) const { return (start_us + rows_us(rows)) * 1e-6; }
};

/// The numbers that the rule compares.
struct call_costs {
  std::array<path_cost, 4> paths;  ///< by path_kind
  path_cost link;                ///< a row whose pages are translated, between the table and a device's batch
  double random_look_up_ns = 0;  ///< of a row's pages, in the order of the list
  double sorted_look_up_ns = 0;  ///< in the order of the table
  double reach_gib = 0;          ///< tables up to this size stay translated

  [[nodiscard]] const path_cost& operator[](path_kind path) const {
    return paths[static_cast<std::size_t>(path)];
  }
};

/// The costs of a call on each path, whether or not it is a candidate.
call_costs costs_of(const machine_profile& profile, const move_facts& facts);

/// The comparison that decided.
enum class choice_reason { only_path, translated, short_batch, sorted_rows, host_rows, shared_rows };

struct path_choice {
  path_kind path = path_kind::direct;
  choice_reason reason = choice_reason::only_path;
};

/// Decides by these comparisons, in this order:
///
///   direct       a row takes at most 1.1 times the link's time in any order: all pages are translated, or
///                the rows are long
///   ordered      sorted rows come within 1.1 times the link's time; else staged
///   direct       ordered or staged saves less than 2.5 times what it adds to the start
///   cooperative  instead of either, if neither side is more than four times as fast as the other, the link
///                is not full of sorted rows' bytes, and the rows take four times the start
///
/// Only candidates are chosen; direct for an empty set.
path_choice decide(const call_costs& costs, std::int64_t rows, path_set candidates);

/// The path that decide() names.
path_kind choose_route(const machine_profile& profile, const move_facts& facts, path_set candidates);

/// Fits pinned_reach_gib and pinned_miss_ns by least squares; the reach is found by search.
///
///   gib    sizes of tables, ascending
///   extra  additional ns of a random row, compared with a small table
///
/// If the largest table is as fast as the smallest, its size becomes the least reach, and the miss is
/// unchanged.
void fit_reach(const std::vector<double>& gib, const std::vector<double>& extra, machine_profile& profile);

}  // namespace ferry::detail
