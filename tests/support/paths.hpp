// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/ferry.hpp>

#include "support/arrays.hpp"

#include <type_traits>

/// Which combinations compile, and which of them this machine can run.
namespace ferry_test {

template <class A, class B>
inline constexpr bool staged_compiles = A::is_host_accessible || B::is_host_accessible;

/// path::direct between these spaces: always but for pageable memory under a device that has no access to it.
template <class... Spaces>
bool direct_runs() {
  const bool pageable = (std::is_same_v<Spaces, ferry::pageable_space> || ...);
  return !pageable || ferry::execution_backend<exec_space>::reaches_pageable(exec_space{});
}

/// The work of a verb on the rows, as far as it decides on the paths that it may take.
enum class work { moves, changes, copies };

/// Calls visit(path) for every path that a verb between the two spaces can take here.
template <class A, class B, work Work, class Visit>
void for_each_path(Visit&& visit) {
  visit(ferry::path::automatic{});
  if (direct_runs<A, B>()) {
    visit(ferry::path::direct{});
    if constexpr (Work != work::copies) visit(ferry::path::ordered{});
    if constexpr (Work == work::moves && A::is_host_accessible && std::is_same_v<B, ferry::device_space>)
      visit(ferry::path::cooperative{});
  }
  if constexpr (staged_compiles<A, B>) visit(ferry::path::staged{});
}

template <class Space>
inline constexpr int place_of = std::is_same_v<Space, ferry::pinned_space>     ? 1
                                : std::is_same_v<Space, ferry::mapped_space>   ? 2
                                : std::is_same_v<Space, ferry::pageable_space> ? 3
                                                                               : 0;

/// Pairs with B in fewer host memories, since what is compiled there hardly asks where both sides are:
/// path::staged where one side is the device's or pageable, and one of the others in turn, so that every space meets
/// every other one, and on either side every path that differs for it.
template <class A, class B, work Work, class Visit>
void for_covering_paths(Visit&& visit) {
  constexpr bool from_device = std::is_same_v<A, ferry::device_space>;
  constexpr int pageable = (place_of<A> == 3 ? 1 : 0) + (place_of<B> == 3 ? 1 : 0);
  constexpr int turn = (3 + place_of<A> - place_of<B>) % (Work == work::copies ? 2 : 3);
  if constexpr (std::is_same_v<B, ferry::device_space>) {
    for_each_path<A, B, Work>(visit);
  } else if constexpr (pageable == 2) {
    visit(ferry::path::automatic{});
  } else {
    if constexpr (from_device || pageable == 1) visit(ferry::path::staged{});
    if constexpr (from_device || pageable == 0) {
      if constexpr (turn == 0) {
        if (direct_runs<A, B>()) visit(ferry::path::direct{});
      } else if constexpr (turn == 1 && Work != work::copies) {
        if (direct_runs<A, B>()) visit(ferry::path::ordered{});
      } else {
        visit(ferry::path::automatic{});
      }
    }
  }
}

}  // namespace ferry_test
