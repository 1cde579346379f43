// SPDX-License-Identifier: Apache-2.0
#include "../process/check.hpp"

#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include <Kokkos_Core.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

/// A program with verbs of ferry and calls of Kokkos. The argument says how it ends. chrome_trace.py runs it with
/// the tool library and reads the trace.
namespace {

using exec_space = Kokkos::DefaultExecutionSpace;

constexpr std::int64_t rows = 2000, width = 16, positions = 300;

void gather_some(int calls, const std::string& name) {
  const exec_space exec = Kokkos::Experimental::partition_space(exec_space{}, 1).at(0);
  const ferry::trace_region region(name);
  ferry::tensor<float, ferry::mapped_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> batch("batch", positions, width);
  ferry::init::zeros(exec, table);
  std::vector<std::int64_t> indices(positions);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i * 37 % rows);
  for (int i = 0; i < calls; ++i) {
    const ferry::trace_region call("call");
    ferry::gather(exec, table, indices, batch, ferry::path::direct{}).wait();
  }
}

void every_verb() {
  const exec_space exec;
  ferry::tensor<float, ferry::pinned_space> table("table", rows, width);
  ferry::tensor<float, ferry::device_space> batch("batch", positions, width);
  ferry::tensor<float, ferry::pageable_space> large("large", 1 << 18);
  ferry::tensor<float, ferry::device_space> there("there", 1 << 18);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, batch);
  ferry::init::zeros(exec, large);
  std::vector<std::int64_t> indices(positions);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i * i % rows);
  ferry::gather(exec, table, indices, batch, ferry::path::staged{}).wait();
  ferry::gather(exec, table, indices, batch, ferry::path::ordered{}).wait();
  ferry::gather(exec, table, indices, batch, ferry::path::cooperative{}).wait();
  ferry::scatter(exec, table, indices, batch, ferry::path::direct{}).detach();
  ferry::copy(exec, large, there).wait();
  const ferry::optim::sgd sgd{.lr = 0.1};
  auto state = ferry::optim::make_state(sgd, table);
  ferry::step(exec, sgd, table, state, indices, batch, ferry::path::direct{}).wait();
  ferry::tensor<float, ferry::device_space> row("one", 1, width);
  try {
    ferry::gather(exec, table, std::vector<std::int64_t>{rows}, row, ferry::path::direct{}).wait();
    FERRY_TEST_CHECK(false);
  } catch (const ferry::out_of_range&) {
  }
}

/// Two prefetchers at the same time, two epochs of seven batches each.
void load_batches() {
  const exec_space exec;
  ferry::tensor<float, ferry::pageable_space> table("table", 320, width);
  ferry::init::zeros(exec, table);
  ferry::prefetcher loader(exec, ferry::samples_of(table), {.batch = 50, .workers = 2, .epochs = 2});
  ferry::prefetcher two(exec, ferry::samples_of(table), {.batch = 50, .workers = 1, .epochs = 2});
  for (int epoch = 0; epoch < 2; ++epoch) {
    int batches = 0;
    while (true) {
      const auto first = loader.next();
      const auto second = two.next();
      FERRY_TEST_CHECK(first.has_value() == second.has_value());
      if (!first) break;
      ++batches;
    }
    FERRY_TEST_CHECK(batches == 7);
  }
}

struct fill {
  Kokkos::View<double*> sums;
  KOKKOS_FUNCTION void operator()(int i) const { sums(i) = 1; }
};
struct add {
  Kokkos::View<double*> sums;
  KOKKOS_FUNCTION void operator()(int i, double& total) const { total += sums(i); }
};

/// No verb of ferry.
void plain_kokkos() {
  const Kokkos::View<double*> sums("sums \"quoted\"\n\\ \xff", 1000);
  const Kokkos::View<double*, Kokkos::HostSpace> source("source", 1000);
  Kokkos::Profiling::pushRegion("outer");
  Kokkos::parallel_for("fill", 1000, fill{sums});
  double total = 0;
  Kokkos::parallel_reduce("total", 1000, add{sums}, total);
  FERRY_TEST_CHECK(total == 1000.0);
  Kokkos::deep_copy(sums, source);
  Kokkos::fence("at the end");
  Kokkos::Profiling::markEvent("a fact");
  Kokkos::Profiling::popRegion();
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::string how = argc > 1 ? argv[1] : "";
  const bool traces = std::getenv("KOKKOS_TOOLS_LIBS") != nullptr;
  { const ferry::trace_region early("before Kokkos"); }
  Kokkos::initialize(argc, argv);
  FERRY_TEST_CHECK(ferry::is_tracing() == traces);
  if (how == "threads") {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([t] { gather_some(20, "thread " + std::to_string(t)); });
    for (auto& item : threads) item.join();
  } else if (how == "verbs") {
    every_verb();
  } else if (how == "loader") {
    load_batches();
  } else if (how == "kokkos") {
    plain_kokkos();
  } else if (how == "fork") {
    gather_some(3, "parent");
    const pid_t child = ::fork();
    if (child == 0) {
      { const ferry::trace_region region("child"); }
      std::exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    FERRY_TEST_CHECK(status == 0);
  } else if (how == "exit") {
    gather_some(3, "left");
    std::exit(failures == 0 ? 0 : 1);
  } else if (how == "kill") {
    gather_some(2000, "killed");
    std::raise(SIGKILL);
  }
  Kokkos::finalize();
  { const ferry::trace_region late("after Kokkos"); }
  return failures == 0 ? 0 : 1;
}
