// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "distributed/kit.hpp"

#include <cstdio>
#include <exception>
#include <functional>

/// One rank of a group of processes. Every rank computes the batches of all ranks, so that each can compare
/// with an ordinary table.
namespace ferry_test {

inline int failures = 0, world_rank = 0;

/// Calls act(), which throws where something is wrong.
template <class Act>
void count_failures(const Act& act) {
  try {
    act();
  } catch (const std::exception& failure) {
    ++failures;
    std::fprintf(stderr, "rank %d: %s\n", world_rank, failure.what());
  }
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

/// Tables in memory that processes share as that of a device, path::peer between these, and shared tensors.
void device_tables(const ferry::communicator& comm);
/// Verbs by all routes, and the windows of processes.
void verbs(const ferry::communicator& comm, const group_maker& make_group);
/// Writes until rank `killed` kills itself, at some point of a verb, and its job ends.
void write_until_killed(const ferry::communicator& comm, int killed);

/// Everything, within Kokkos' scope. `another(options)` makes a new group of all ranks.
void run_all(const group_maker& make_group);

}  // namespace ferry_test
