// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/profile/detail/candidate_paths.hpp>
#include <ferry/profile/machine_profile.hpp>
#include <ferry/profile/path_kind.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

/// The rule of path::automatic: a few comparisons of the profile's numbers for a call; a pure function of
/// sizes and memory spaces. Rows are assumed to be random and uniformly distributed.
namespace ferry::detail {

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
enum class choice_reason : unsigned char {
  only_path,
  translated,
  short_batch,
  sorted_rows,
  host_rows,
  shared_rows
};

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
