// SPDX-License-Identifier: Apache-2.0
#include "support/formulas.hpp"

#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

/// Trial: scatter of two ranks by threads and by processes, in variants that the environment chooses, each in
/// children of its own. bench_trial_scatter [repeats [n ...]]
namespace ferry_bench {
namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using clock_type = std::chrono::steady_clock;
using sharded = ferry::sharded_table<float, ferry::device_space>;
using device_array = ferry::tensor<float, ferry::device_space>;
using device_rows = ferry::tensor<std::int64_t, ferry::device_space>;
constexpr std::size_t columns = 128;
constexpr int ranks = 2, sets = 4, warm_up = 4;

struct code_value {
  std::int64_t first;
  KOKKOS_FUNCTION float operator()(std::int64_t p, std::int64_t column) const {
    const auto code = static_cast<float>(first + p);
    return column % 2 == 0 ? code : -code;
  }
};
std::uint64_t seed_of(int rank, int set) { return 1000 + static_cast<std::uint64_t>(rank * sets + set); }

struct shared_page {
  std::atomic<int> arrivals{0};
  std::atomic<long> slowest[4096];
  std::atomic<long> wrong{0};
};

void meet(shared_page& page, int count) {
  const int target = (++page.arrivals - 1) / count * count + count;
  const auto give_up = clock_type::now() + std::chrono::seconds(2);
  while (page.arrivals.load() < target && clock_type::now() < give_up) continue;
}

/// Rows of the shard of a rank that differ from the last of the values of all batches.
long wrong_rows(const exec_space& exec, const ferry::tensor<float, ferry::device_space>& shard,
                const std::vector<std::int64_t>& winner) {
  ferry::tensor<float, ferry::pageable_space> read("read", shard.rows(), shard.width());
  ferry::copy(exec, shard, read).wait();
  long wrong = 0;
  for (std::size_t row = 0; row < shard.rows(); ++row) {
    const std::int64_t code = winner[row];
    for (std::size_t c = 0; c < columns; ++c) {
      const float expected = code < 0 ? -0.5f : code_value{code}(0, static_cast<std::int64_t>(c));
      if (read.data()[row * columns + c] != expected) {
        ++wrong;
        break;
      }
    }
  }
  return wrong;
}

void time_rank(const exec_space& exec, const ferry::communicator& comm, int rank, sharded& table,
               std::int64_t n, int repeats, shared_page& page) {
  const auto home = ferry::device_of(exec);
  std::vector<device_rows> ids;
  for (int s = 0; s < sets; ++s) {
    ids.emplace_back("indices", home, n);
    ferry::init::custom(exec, ids.back(), any_row{seed_of(rank, s), table.rows()});
  }
  device_array values("values", home, n, columns);
  ferry::init::custom(exec, values, code_value{rank * n});
  for (int call = 0; call < warm_up + repeats; ++call) {
    exec.fence("trial");
    comm.barrier();
    meet(page, ranks);
    const auto begin = clock_type::now();
    ferry::scatter(exec, table, ids[static_cast<std::size_t>(call % sets)], values).wait();
    const long ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - begin).count();
    if (call >= warm_up) {
      auto& slot = page.slowest[call - warm_up];
      long before = slot.load();
      while (before < ns && !slot.compare_exchange_weak(before, ns)) continue;
    }
  }
  comm.barrier();
  ferry::init::constant(exec, table.shard(rank), -0.5f);
  exec.fence("trial");
  comm.barrier();
  ferry::scatter(exec, table, ids[0], values).wait();
  std::vector<std::int64_t> winner(static_cast<std::size_t>(table.rows_of(rank)), -1);
  for (int r = 0; r < ranks; ++r) {
    const any_row row_of{seed_of(r, 0), table.rows()};
    for (std::int64_t p = 0; p < n; ++p) {
      const auto row = static_cast<std::int64_t>(row_of(p, 0));
      if (row % ranks == rank) winner[static_cast<std::size_t>(row / ranks)] = r * n + p;
    }
  }
  page.wrong += wrong_rows(exec, table.shard(rank), winner);
  comm.barrier();
}

void one_device(std::int64_t n, int repeats, shared_page& page) {
  const exec_space exec;
  const auto home = ferry::device_of(exec);
  device_array table("table", home, ranks * n, columns), values("values", home, ranks * n, columns);
  std::vector<device_rows> ids;
  for (int s = 0; s < sets; ++s) {
    ids.emplace_back("indices", home, ranks * n);
    ferry::init::custom(exec, ids.back(), any_row{seed_of(0, s), table.rows()});
  }
  for (int call = 0; call < warm_up + repeats; ++call) {
    exec.fence("trial");
    const auto begin = clock_type::now();
    ferry::scatter(exec, table, ids[static_cast<std::size_t>(call % sets)], values).wait();
    const long ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - begin).count();
    if (call >= warm_up) page.slowest[call - warm_up] = ns;
  }
}

struct variant {
  const char* name;
  char kind;  // 't'hreads, 'p'rocesses, 'o'ne device
  std::vector<std::pair<const char*, const char*>> settings;
};

template <class Act>
pid_t start(const variant& chosen, int device, const Act& act) {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::alarm(120);
  for (const auto& [name, value] : chosen.settings) ::setenv(name, value, 1);
  int status = 1;
  try {
    const Kokkos::ScopeGuard guard(Kokkos::InitializationSettings().set_device_id(device));
    act();
    status = 0;
  } catch (const std::exception& lost) {
    std::fprintf(stderr, "%s: %s\n", chosen.name, lost.what());
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

void run(const variant& chosen, std::int64_t n, int repeats, int number) {
  void* const memory =
      ::mmap(nullptr, sizeof(shared_page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& page = *new (memory) shared_page;
  const auto rows = static_cast<std::size_t>(ranks * n);
  std::vector<pid_t> children;
  if (chosen.kind == 'o') children.push_back(start(chosen, 0, [&] { one_device(n, repeats, page); }));
  if (chosen.kind == 't')
    children.push_back(start(chosen, 0, [&] {
      const auto comm = ferry::communicator::devices({0, 1});
      sharded table("table", comm, rows, columns);
      comm.run([&](int rank, const auto& exec) { time_rank(exec, comm, rank, table, n, repeats, page); });
    }));
  if (chosen.kind == 'p')
    for (int r = 0; r < ranks; ++r)
      children.push_back(start(chosen, r, [&] {
        const exec_space exec;
        const auto comm = ferry::communicator::node(
            r, ranks, "trial." + std::to_string(::getppid()) + "." + std::to_string(number));
        sharded table("table", comm, rows, columns);
        time_rank(exec, comm, r, table, n, repeats, page);
      }));
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed |= status != 0;
  }
  std::vector<long> ns;
  for (int i = 0; i < repeats; ++i) ns.push_back(page.slowest[i]);
  std::sort(ns.begin(), ns.end());
  std::printf("%-34s n %8lld  median %.4f ms  least %.4f%s%s\n", chosen.name, static_cast<long long>(n),
              1e-6 * static_cast<double>(ns[ns.size() / 2]), 1e-6 * static_cast<double>(ns.front()),
              page.wrong != 0 ? "  WRONG" : "", failed ? "  FAILED" : "");
  std::fflush(stdout);
  ::munmap(memory, sizeof(shared_page));
}

}  // namespace
}  // namespace ferry_bench

int main(int argc, char** argv) {
  using ferry_bench::variant;
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 25;
  std::vector<std::int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (sizes.empty()) sizes = {1048576, 131072, 1024};
  const auto without = [](const char* names) {
    return std::vector<std::pair<const char*, const char*>>{{"FERRY_WITHOUT", names}};
  };
  const std::vector<variant> variants = {
      {"one device", 'o', {}},
      {"threads", 't', {}},
      {"threads, sort", 't', without("winners")},
      {"processes", 'p', {}},
      {"processes, owners pull", 'p', without("pushes")},
      {"processes, owners pull, sort", 'p', without("pushes,winners")},
  };
  int number = 0;
  for (const std::int64_t n : sizes)
    for (const variant& chosen : variants) ferry_bench::run(chosen, n, repeats, number++);
  return 0;
}
