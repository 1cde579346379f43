// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/said.hpp"

#include <ferry/distributed.hpp>

#include <cstdio>
#include <functional>
#include <string>

/// One rank of a group of processes. Every rank computes the batches of all ranks, so that each can compare
/// with an ordinary table.
namespace ferry_test {

inline int failures = 0, world_rank = 0;

inline void expect(bool holds, const std::string& claim) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "rank %d: %s\n", world_rank, claim.c_str());
}

using group_maker = std::function<ferry::communicator(const ferry::communicator_options&)>;

/// For Kokkos in a rank of a machine's: on a device of its own, or in turn. Before Kokkos' scope.
inline Kokkos::InitializationSettings settings_of(int rank) {
  Kokkos::InitializationSettings settings;
  using backend = ferry::device_backend<ferry::device_space>;
  if constexpr (!backend::device_is_host)
    if (const int count = backend::device_count(); count > 0) settings.set_device_id(rank % count);
  return settings;
}

/// Everything, within Kokkos' scope. `another(options)` makes a new group of all ranks.
void run_all(const group_maker& make_group);

}  // namespace ferry_test
