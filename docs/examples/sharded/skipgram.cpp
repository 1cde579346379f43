// SPDX-License-Identifier: Apache-2.0
// The word embeddings of ../skipgram, trained by several ranks: threads, or the processes of MPI. Any number of
// them prints the same loss and AUC, and saves the same vectors.
#include "../skipgram/program.hpp"
#include "sharded_embedding.hpp"

#ifdef SKIPGRAM_MPI
#include <ferry/distributed/mpi.hpp>
#else
#include <ferry/memory/device.hpp>
#include <ferry/runtime/devices.hpp>
#endif

#include <vector>

namespace {

using namespace skipgram;

#ifdef SKIPGRAM_MPI
/// MPI from here to the end of main.
struct mpi_scope {
  mpi_scope(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  mpi_scope(const mpi_scope&) = delete;
  mpi_scope& operator=(const mpi_scope&) = delete;
  ~mpi_scope() { MPI_Finalize(); }

  int rank = 0;
};
#else
/// Ranks that are threads: they have the devices of the machine in turn, and an instance each. On a host they
/// share the threads of Kokkos.
ferry::communicator group_of(int ranks) {
  if constexpr (ferry::HostExecutionSpace<execution>) {
    return ferry::communicator::threads(ranks);
  } else {
    const auto devices = static_cast<int>(ferry::devices().size());
    std::vector<int> ids;
    for (int r = 0; r < ranks; ++r) ids.push_back(r % devices);
    return ferry::communicator::devices(ids);
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
#ifdef SKIPGRAM_MPI
  const mpi_scope mpi(argc, argv);
  const bool speaks = mpi.rank == 0;
#else
  const bool speaks = true;
#endif
  return run_program(argc, argv, true, speaks, [](const options& chosen, const corpus& text) {
    require_sharded(chosen.space, chosen.path, chosen.dtype);
#ifdef SKIPGRAM_MPI
    // Every process is a rank, whatever --ranks says; a group of one is one, too.
    const auto comm = ferry::mpi::communicator(MPI_COMM_WORLD);
#else
    const auto comm = group_of(chosen.ranks);
#endif
    const communicator_group ranks(comm);
    comm.run([&](int, const execution& exec) { train(exec, chosen, text, &ranks); });
  });
}
