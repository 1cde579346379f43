// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ranks/rank_program.hpp"

namespace ferry_test {

/// Verbs whose batches owners in other processes read in lanes: all policies, plans and spaces, against an
/// ordinary table. Within Kokkos' scope.
void batches_in_lanes(const ferry::communicator& comm, const group_maker& make_group);

/// Writes until rank `killed` kills itself, at some point of a verb, and its job ends.
void write_until_killed(const ferry::communicator& comm, int killed);

}  // namespace ferry_test
