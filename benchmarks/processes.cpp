// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"
#include "support/formulas.hpp"
#include "support/machine.hpp"
#include "support/options.hpp"
#include "support/rank_case.hpp"
#include "support/report.hpp"
#include "support/tables.hpp"

#include <ferry/distributed.hpp>
#include <ferry/ferry.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// Gathers by path::peer from a table over 2, 4 ... devices, and writes to it: by threads of one process, and by
/// processes, one for each device. Forks before Kokkos is initialised, so it has a main() of its own. Readings are the times of a call and its
/// wait on the slowest rank.
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

/// Memory that the ranks of a job share, be they threads or processes.
struct shared_page {
  std::atomic<int> arrivals{0};
};

using sharded = ferry::sharded_table<float, ferry::device_space>;

/// The readings of one rank in milliseconds; the last one is the number of wrong elements.
std::vector<double> time_rank(const options& chosen, const exec_space& exec, const ferry::communicator& comm,
                              int rank, sharded& table, const job& task, std::uint64_t salt,
                              std::atomic<int>& arrivals) {
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

/// All jobs on one rank that is a process.
std::vector<std::vector<double>> run_process(const options& chosen, int rank, int ranks,
                                             const std::string& key, const std::vector<job>& jobs,
                                             std::atomic<int>& arrivals) {
  const exec_space exec;
  const auto comm = ferry::communicator::node(rank, ranks, key);
  std::vector<std::vector<double>> timings;
  for (const job& task : jobs) {
    sharded table("table", comm, rows_for(chosen, task), task.row_bytes / 4);
    ferry::init::custom(exec, table, element_value{task.row_bytes / 4});
    timings.push_back(time_rank(chosen, exec, comm, rank, table, task, timings.size() << 20, arrivals));
  }
  return timings;
}

/// All jobs on all ranks of one process; the readings of rank 0, then those of rank 1 and so on.
std::vector<std::vector<double>> run_threads(const options& chosen, int ranks, const std::vector<job>& jobs,
                                             std::atomic<int>& arrivals) {
  const auto comm = ferry::communicator::devices(device_ids(ranks));
  std::vector<std::vector<double>> result(static_cast<std::size_t>(ranks) * jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    sharded table("table", comm, rows_for(chosen, jobs[j]), jobs[j].row_bytes / 4);
    ferry::init::custom(exec_space(), table, element_value{jobs[j].row_bytes / 4});
    comm.run([&](int rank, const auto& exec) {
      result[static_cast<std::size_t>(rank) * jobs.size() + j] =
          time_rank(chosen, exec, comm, rank, table, jobs[j], j << 20, arrivals);
    });
  }
  return result;
}

/// A child that sends lists of numbers, each with its length before it.
class child {
 public:
  template <class Act>
  child(int device, const Act& act) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ != 0) {
      ::close(ends[1]);
      reads_ = ends[0];
      return;
    }
    ::close(ends[0]);
    ::alarm(200);
    int status = 1;
    try {
      const Kokkos::ScopeGuard guard(Kokkos::InitializationSettings().set_device_id(device));
      for (const auto& list : act()) send(ends[1], list);
      status = 0;
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "%s\n", lost.what());
    }
    std::fflush(nullptr);
    std::_Exit(status);
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    ::close(reads_);
    int status = 0;
    ::waitpid(process_, &status, 0);
  }

  std::vector<double> read() {
    double count = 0;
    take(&count, sizeof count);
    std::vector<double> list(static_cast<std::size_t>(count));
    take(list.data(), list.size() * sizeof(double));
    return list;
  }

 private:
  static void send(int descriptor, const std::vector<double>& list) {
    std::vector<double> message{static_cast<double>(list.size())};
    message.insert(message.end(), list.begin(), list.end());
    const auto bytes = static_cast<ssize_t>(message.size() * sizeof(double));
    if (::write(descriptor, message.data(), static_cast<std::size_t>(bytes)) != bytes)
      throw std::runtime_error("no one reads");
  }
  void take(void* target, std::size_t bytes) {
    for (auto* position = static_cast<char*>(target); bytes > 0;) {
      const ssize_t got = ::read(reads_, position, bytes);
      if (got <= 0) throw std::runtime_error("a child ended without its readings");
      position += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  pid_t process_ = -1;
  int reads_ = -1;
};

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

/// All jobs by `ranks` threads, then by as many processes.
void run_group(report& results, const options& chosen, int ranks, int devices, const std::vector<job>& jobs) {
  void* const page =
      ::mmap(nullptr, sizeof(shared_page) * 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error("no shared page");
  auto* const pages = static_cast<shared_page*>(page);
  for (int i = 0; i < 2; ++i) new (pages + i) shared_page;
  const auto count = static_cast<std::size_t>(ranks);
  {
    child threads(0, [&] { return run_threads(chosen, ranks, jobs, pages[0].arrivals); });
    std::vector<std::vector<double>> lists;
    for (std::size_t i = 0; i < count * jobs.size(); ++i) lists.push_back(threads.read());
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      std::vector<std::vector<double>> ms;
      for (std::size_t r = 0; r < count; ++r) ms.push_back(lists[r * jobs.size() + j]);
      add(results, jobs[j], "threads", ms);
    }
  }
  {
    const std::string key = "bench_processes." + std::to_string(::getpid()) + "." + std::to_string(ranks);
    std::deque<child> children;
    for (int r = 0; r < ranks; ++r)
      children.emplace_back(r % devices,
                            [&] { return run_process(chosen, r, ranks, key, jobs, pages[1].arrivals); });
    for (const job& task : jobs) {
      std::vector<std::vector<double>> ms;
      for (child& rank_child : children) ms.push_back(rank_child.read());
      add(results, task, "processes", ms);
    }
  }
  for (const job& task : jobs) {
    const std::string name = task.name(ranks);
    const figure *by_processes = results.find(name + ".processes"),
                 *by_threads = results.find(name + ".threads");
    if (by_processes != nullptr && by_threads != nullptr)
      results.ratio(name + ".processes", name + ".threads",
                    by_processes->gb_per_s() / by_threads->gb_per_s());
  }
  ::munmap(page, sizeof(shared_page) * 2);
}

int run(const options& chosen, int devices) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<job> jobs;
  for (const std::int64_t row_bytes : chosen.rows_bytes)
    for (const std::int64_t n : {chosen.step_n, 8 * chosen.step_n})
      for (const verb kind :
           {verb::gather, verb::scatter, verb::scatter_unique, verb::scatter_add, verb::step})
        jobs.push_back({kind, row_bytes, n});
  report results;
  results.describe("machine", describe_machine());
  for (const int ranks : group_sizes(chosen, devices))
    if (ranks > 1) run_group(results, chosen, ranks, devices, jobs);
  results.print_end();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!chosen.json.empty()) results.write(chosen, seconds);
  return results.has_failures() ? 1 : 0;
}

/// The number of devices, asked of a child: a process that has asked the driver must not fork.
int count_devices() {
  child asks(0,
             [] { return std::vector<std::vector<double>>{{static_cast<double>(ferry::devices().size())}}; });
  return static_cast<int>(asks.read().at(0));
}

}  // namespace
}  // namespace ferry_bench

int main(int argc, char** argv) {
  try {
    std::optional<int> exit_status;
    const auto chosen = ferry_bench::parse_options(argc, argv, exit_status);
    if (exit_status) return *exit_status;
    if constexpr (!ferry::detail::shares_memory<ferry::device_space>()) {
      std::printf("skipped: processes share the memory of devices alone\n");
      return 0;
    } else {
      return ferry_bench::run(chosen, ferry_bench::count_devices());
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
