// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/formulas.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/rank_case.hpp"
#include "support/report.hpp"
#include "support/tables.hpp"

#include <ferry/distributed.hpp>
#include <ferry/distributed/mpi.hpp>
#include <ferry/ferry.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

/// Gathers by path::peer from a table over several devices, and writes to it: by the processes of an MPI group, one
/// for each device (mpirun -n 2 bench_processes), or by threads if there is one process. Readings are the times of a
/// call and its wait on the slowest rank.
namespace ferry_bench {
namespace {

enum class verb { gather, scatter, scatter_unique, scatter_add, step };

struct job {
  verb kind;
  std::int64_t row_bytes;
  std::int64_t n;

  [[nodiscard]] bool writes() const { return kind != verb::gather; }
  [[nodiscard]] std::string name(int ranks) const {
    static constexpr const char* names[] = {"gather.peer", "scatter", "scatter_unique", "scatter_add",
                                            "step"};
    return "processes." + std::to_string(ranks) + "." + names[static_cast<int>(kind)] + "." +
           bytes_text(row_bytes) + "." + std::to_string(n);
  }
};

/// Elements of rows to which every position that names the row has added 1.
struct never_added {
  const float* rows;
  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (!(rows[i] >= 1)) ++wrong;
  }
};

/// The distinct rows from `first` on.
struct part_row {
  std::uint64_t seed, rows;
  std::int64_t first;

  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position, std::int64_t column) const {
    return distinct_row{seed, rows}(first + position, column);
  }
};

using sharded = ferry::sharded_table<float, ferry::device_space>;

/// The readings of one rank in milliseconds; the last one is the number of wrong elements.
std::vector<double> time_rank(const options& chosen, const exec_space& exec, const ferry::communicator& comm,
                              int rank, sharded& table, const job& task, std::uint64_t salt,
                              std::atomic_ref<int> arrivals) {
  using clock = std::chrono::steady_clock;
  const auto width = static_cast<std::int64_t>(table.width());
  const auto home = ferry::device_of(exec);
  batch_tensor out("out", home, task.n, table.width());
  std::vector<row_indices> sets;
  for (int s = 0; s < chosen.index_sets; ++s) {
    sets.emplace_back("indices", home, task.n);
    const auto seed = salt + static_cast<std::uint64_t>(rank * chosen.index_sets + s);
    if (task.kind == verb::scatter_unique)  // distinct over all ranks
      ferry::init::custom(exec, sets.back(),
                          part_row{salt + static_cast<std::uint64_t>(s), table.rows(), rank * task.n});
    else
      ferry::init::custom(exec, sets.back(), any_row{seed, table.rows()});
  }
  batch_tensor values("values", home, task.writes() ? task.n : 0, table.width());
  const ferry::optim::sgd rule{.lr = 1};
  auto state = ferry::optim::make_state(rule, table);
  ferry::init::constant(exec, values, task.kind == verb::step ? -1 : 1);
  const auto act = [&](const row_indices& set) {
    switch (task.kind) {
      case verb::gather:
        return ferry::gather(exec, table, set, out, ferry::path::peer{});
      case verb::scatter:
        return ferry::scatter(exec, table, set, values);
      case verb::scatter_unique:
        return ferry::scatter(exec, table, set, values, ferry::duplicates::assume_unique{});
      case verb::scatter_add:
        return ferry::scatter_add(exec, table, set, values);
      case verb::step:
        return ferry::step(exec, rule, table, state, set, values);
    }
    return ferry::ticket();
  };
  std::vector<double> readings;
  for (int call = 0; call < chosen.warm_up + chosen.repeats; ++call) {
    exec.fence("ferry_bench::processes");
    comm.barrier();
    const int ranks = comm.size(), target = (++arrivals - 1) / ranks * ranks + ranks;
    const auto give_up = clock::now() + std::chrono::seconds(1);
    while (arrivals.load() < target && clock::now() < give_up) continue;
    const auto begin = clock::now();
    act(sets[static_cast<std::size_t>(call) % sets.size()]).wait();
    const double ms = std::chrono::duration<double, std::milli>(clock::now() - begin).count();
    if (call >= chosen.warm_up) readings.push_back(ms);
  }
  const row_indices& last_set = sets.back();
  const auto count_wrong = [&](const auto& is_wrong) {
    return static_cast<double>(
        count_of(exec, "ferry_bench::check", static_cast<std::int64_t>(out.size()), is_wrong));
  };
  ferry::init::custom(exec, out, poison_value{});
  if (task.kind == verb::scatter ||
      task.kind == verb::scatter_unique) {  // values of the formula to rows that have lost theirs
    ferry::init::custom(exec, table, element_value{width});
    ferry::gather(exec, table, last_set, values, ferry::path::peer{}).wait();
    ferry::init::custom(exec, table, poison_value{});
    act(last_set).wait();
  } else if (task.writes()) {
    ferry::init::zeros(exec, table);
    act(last_set).wait();
  }
  comm.barrier();
  ferry::gather(exec, table, last_set, out, ferry::path::peer{}).wait();
  if (task.kind == verb::scatter_add || task.kind == verb::step)
    readings.push_back(count_wrong(never_added{out.data()}));
  else
    readings.push_back(count_wrong(wrong_gathered{out.data(), last_set.data(), element_value{width}}));
  comm.barrier();
  return readings;
}

/// As many as 8 ranks with distinct rows need, at least.
std::size_t rows_for(const options& chosen, const job& task) {
  const double bytes = chosen.quick ? 0x1p20 : chosen.device_table_gib.value_or(8) * 0x1p30;
  return std::max(static_cast<std::size_t>(bytes) / static_cast<std::size_t>(task.row_bytes),
                  static_cast<std::size_t>(8 * task.n));
}

/// The readings of all ranks.
std::vector<std::vector<double>> run_processes(const options& chosen, const ferry::communicator& comm,
                                               const job& task, std::uint64_t salt) {
  const exec_space exec;
  sharded table("table", comm, rows_for(chosen, task), task.row_bytes / 4);
  ferry::init::custom(exec, table, element_value{task.row_bytes / 4});
  ferry::shared_tensor<int> arrivals("arrivals", comm, 1);
  const auto rank_readings =
      time_rank(chosen, exec, comm, comm.rank(), table, task, salt, std::atomic_ref<int>(arrivals(0)));
  std::vector<std::vector<double>> readings(static_cast<std::size_t>(comm.size()));
  for (const double reading : rank_readings) {
    const auto gathered = comm.all_gather(reading);
    for (std::size_t r = 0; r < gathered.size(); ++r) readings[r].push_back(gathered[r]);
  }
  return readings;
}

std::vector<std::vector<double>> run_threads(const options& chosen, const ferry::communicator& comm,
                                             const job& task, std::uint64_t salt) {
  std::vector<std::vector<double>> readings(static_cast<std::size_t>(comm.size()));
  int arrivals = 0;
  sharded table("table", comm, rows_for(chosen, task), task.row_bytes / 4);
  ferry::init::custom(exec_space(), table, element_value{task.row_bytes / 4});
  comm.run([&](int rank, const auto& exec) {
    readings[static_cast<std::size_t>(rank)] =
        time_rank(chosen, exec, comm, rank, table, task, salt, std::atomic_ref<int>(arrivals));
  });
  return readings;
}

/// The readings of all ranks as a figure: the slowest one of each call.
void add(report& results, const job& task, const char* kind, const std::vector<std::vector<double>>& ms) {
  figure result;
  const auto ranks = static_cast<int>(ms.size());
  result.name = task.name(ranks) + "." + kind;
  result.setting = {{"ranks", std::int64_t{ranks}},
                    {"n", task.n},
                    {"row_bytes", task.row_bytes},
                    {"clock", std::string("host, the slowest rank")}};
  result.counts = "payload of one rank";
  result.bytes = static_cast<double>(task.n * task.row_bytes);
  double wrong = 0;
  for (const auto& list : ms) wrong += list.back();
  for (std::size_t i = 0; i + 1 < ms.front().size(); ++i) {
    double slowest = 0;
    for (const auto& list : ms) slowest = std::max(slowest, list.at(i));
    result.time.wall.add(slowest);
    result.time.device.add(slowest);
  }
  result.verified = wrong == 0;
  results.add(result);
  if (!result.verified) results.failed(result.name, "elements are wrong");
}

int run(const options& chosen, const ferry::communicator& world) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<job> jobs;
  for (const std::int64_t row_bytes : chosen.rows_bytes)
    for (const std::int64_t n : {chosen.step_n, 8 * chosen.step_n})
      for (const verb kind :
           {verb::gather, verb::scatter, verb::scatter_unique, verb::scatter_add, verb::step})
        jobs.push_back({kind, row_bytes, n});
  report results;
  results.describe("machine", describe_machine());
  std::uint64_t salt = 0;
  if (world.size() > 1)
    for (const job& task : jobs)
      add(results, task, "processes", run_processes(chosen, world, task, salt++ << 20));
  else
    for (const int ranks : group_sizes(chosen, static_cast<int>(ferry::devices().size()))) {
      if (ranks == 1) continue;
      const auto comm = ferry::communicator::devices(device_ids(ranks));
      for (const job& task : jobs)
        add(results, task, "threads", run_threads(chosen, comm, task, salt++ << 20));
    }
  if (world.rank() != 0) return 0;
  results.print_end();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!chosen.json.empty()) results.write(chosen, seconds);
  return results.has_failures() ? 1 : 0;
}

}  // namespace
}  // namespace ferry_bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 1;
  try {
    std::optional<int> exit_status;
    const auto chosen = ferry_bench::parse_options(argc, argv, exit_status);
    if (exit_status) {
      status = *exit_status;
    } else {
      int rank = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      const int devices = ferry::device_backend<ferry::device_space>::device_count();
      const Kokkos::ScopeGuard guard(Kokkos::InitializationSettings().set_device_id(rank % devices));
      status = ferry_bench::run(chosen, ferry::mpi::communicator(MPI_COMM_WORLD));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
