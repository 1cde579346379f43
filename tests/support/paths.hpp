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

/// What a verb does with the rows, as far as it decides on the paths that it may take.
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

}  // namespace ferry_test
