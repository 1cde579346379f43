// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// Groups of MPI processes. Needs MPI's headers and library; no other header of ferry does.

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/communicator/detail/mpi_transport.hpp>

#include <memory>

/// Communicators over MPI.
namespace ferry::mpi {

#if __has_include(<mpi.h>)

/// The group of the processes of an MPI communicator, in its order, one rank each. Collective over `group`,
/// which is duplicated; make it after MPI_Init and destroy it, and all tables of it, before MPI_Finalize.
/// All calls of a process come from one thread at a time; if several threads take turns, MPI must have
/// been initialised with MPI_THREAD_SERIALIZED. Start processes of one machine with OMP_WAIT_POLICY=passive
/// and their share of the cores in OMP_NUM_THREADS.
///
/// A process may call the verbs anywhere: it acts for its rank. An exception that leaves communicator::run
/// breaks the group. Throws invalid_argument unless the deadline is positive, and communication_error if
/// MPI fails.
[[nodiscard]] inline ferry::communicator communicator(MPI_Comm group,
                                                      const communicator_options& options = {}) {
  return ferry::communicator(std::make_shared<ferry::detail::mpi_transport>(
      group, ferry::detail::checked_deadline("mpi::communicator", options.deadline)));
}

#else

/// Does not compile: the compiler finds no <mpi.h>.
template <class Comm>
ferry::communicator communicator(const Comm&, const communicator_options& = {}) {
  static_assert(
      sizeof(Comm) == 0,
      "ferry: ferry/distributed/mpi.hpp needs MPI: the compiler finds no <mpi.h>; add the include path of your MPI.");
  return ferry::communicator::threads(1);
}

#endif

}  // namespace ferry::mpi
