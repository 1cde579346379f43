// SPDX-License-Identifier: Apache-2.0
// One rank of a group of MPI processes. Fails by its exit status. With a number, that rank kills itself while all write.
#include "ranks/rank_program.hpp"

#include <ferry/distributed/mpi.hpp>

#include <sys/resource.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <new>

namespace {

/// At most `more` bytes of address space for this process, beyond what it has.
struct limited_memory {
  explicit limited_memory(std::size_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit few{pages * 4096 + more, RLIM_INFINITY};
    limited = ::setrlimit(RLIMIT_AS, &few) == 0;
  }
  limited_memory(const limited_memory&) = delete;
  limited_memory& operator=(const limited_memory&) = delete;
  ~limited_memory() {
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    static_cast<void>(::setrlimit(RLIMIT_AS, &any));
  }
  bool limited = false;
};

/// Messages leave from a copy. A rank without memory for it tells the others, and the group can be used.
void lacks_memory_for_messages() {
  using ferry_test::expect;
  const Kokkos::DefaultExecutionSpace exec;
  const auto comm = ferry::mpi::communicator(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(30)});
  if (comm.size() == 1 || !ferry::HostExecutionSpace<Kokkos::DefaultExecutionSpace>)
    return;                                              // drivers need memory, too
  constexpr std::size_t numbers = std::size_t{1} << 25;  // 128 MiB for each other rank
  ferry::tensor<float, ferry::pageable_space> sent("sent", numbers);
  ferry::init::zeros(exec, sent);
  comm.barrier();
  bool lacked = false, reported = false;
  try {
    if (comm.rank() == 0) {
      const limited_memory few(3 * (std::size_t{1} << 26));  // a buffer fits, and not the messages, too
      ferry::replicate(exec, comm, sent).wait();
    } else {
      ferry::replicate(exec, comm, sent).wait();
    }
  } catch (const std::bad_alloc&) {
    lacked = true;
  } catch (const ferry::peer_error&) {
    reported = true;
  }
  expect(comm.rank() == 0 ? lacked : reported, "memory that is lacking for messages");
  comm.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &ferry_test::world_rank);
  {
    const Kokkos::ScopeGuard guard(ferry_test::settings_of(ferry_test::world_rank));
    if (argc > 1)
      ferry_test::count_failures([&] {
        ferry_test::write_until_killed(
            ferry::mpi::communicator(MPI_COMM_WORLD, {.deadline = std::chrono::seconds(10)}),
            std::atoi(argv[1]));
      });
    ferry_test::run_all([](const ferry::communicator_options& options) {
      return ferry::mpi::communicator(MPI_COMM_WORLD, options);
    });
    ferry_test::count_failures(lacks_memory_for_messages);
  }
  MPI_Finalize();
  return ferry_test::failures == 0 ? 0 : 1;
}
