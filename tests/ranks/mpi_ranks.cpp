// SPDX-License-Identifier: Apache-2.0
// One rank of a group of MPI processes. Fails by its exit status.
#include "ranks/rank_program.hpp"

#include <ferry/distributed/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ferry_test::world_rank);
  {
    const Kokkos::ScopeGuard guard(ferry_test::settings_of(ferry_test::world_rank));
    ferry_test::run_all([](const ferry::communicator_options& options) {
      return ferry::mpi::communicator(MPI_COMM_WORLD, options);
    });
  }
  MPI_Finalize();
  return ferry_test::failures == 0 ? 0 : 1;
}
