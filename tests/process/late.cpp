// SPDX-License-Identifier: Apache-2.0
// What lives or comes to light after Kokkos::finalize, a part in each process: late finalize|objects|findings|prefetchers
#include <ferry/ferry.hpp>
#include <ferry/loader.hpp>

#include "../support/captured_stderr.hpp"
#include "check.hpp"

#include <Kokkos_Core.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using ferry::detail::engine;

bool finalized = false;

void finalize_at_exit() {
  Kokkos::finalize();
  finalized = true;
}

/// Destroyed after finalize_at_exit, as it is made before.
struct last_look {
  ~last_look() {
    std::printf("finalized: %d\n", finalized ? 1 : 0);
    if (!finalized) std::_Exit(1);
  }
};

/// Kokkos::finalize runs at exit, after the destructors of all objects with static storage that were made since.
/// Verbs, profiles and statistics must not have objects of that kind that finalize needs.
void finalize_late() {
  static const last_look look;
  Kokkos::initialize();
  std::atexit(finalize_at_exit);

  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 100, 8);
  ferry::init::uniform(exec, table, -1.0f, 1.0f, 1);
  ferry::tensor<float, ferry::device_space> rows("rows", 3, 8);
  const std::vector<int> indices{5, 99, 5};
  ferry::gather(exec, table, indices, rows).wait();
  ferry::scatter_add(exec, table, indices, rows).detach();
  ferry::machine_profile profile;
  profile.call_us = 3.25;
  ferry::use_profile(exec, profile);
  FERRY_TEST_CHECK(ferry::current_profile(exec) == profile);
  static_cast<void>(ferry::memory_statistics<ferry::mapped_space>());
}

struct late_objects {
  std::optional<ferry::tensor<float, ferry::pinned_space>> table;
  std::optional<ferry::tensor<float, ferry::device_space>> rows;
  ferry::row_plan plan;
  ferry::ticket gathered, staged, stepped, detached;
  ferry::future<ferry::tensor<float, ferry::device_space>> future_rows;
};

/// Tensors, plans, tickets and futures may outlive Kokkos: they hold no instance of an execution space and keep no
/// engine alive. Work that was in flight has ended with Kokkos::finalize.
void outlive_kokkos() {
  static late_objects late;
  std::weak_ptr<engine> shared;
  Kokkos::initialize();
  {
    const exec_space exec;
    late.table.emplace("table", 1000, 16);
    late.rows.emplace("rows", 4, 16);
    ferry::init::uniform(exec, *late.table, -1.0f, 1.0f, 1);
    const std::vector<int> indices{5, 999, 5, 0};
    late.plan = ferry::make_plan(exec, indices, 1000);
    late.gathered = ferry::gather(exec, *late.table, indices, *late.rows);
    late.staged = ferry::gather(exec, *late.table, indices, *late.rows, ferry::path::staged{});
    late.detached = ferry::scatter_add(exec, *late.table, late.plan, *late.rows);
    auto sgd = ferry::optim::sgd{.lr = 0.5};
    auto state = ferry::optim::make_state(sgd, *late.table);
    late.stepped = ferry::step(exec, sgd, *late.table, state, late.plan, *late.rows);
    late.future_rows = ferry::gather<ferry::device_space>(exec, *late.table, indices);
    shared = engine::get_on<exec_space>();
  }
  Kokkos::finalize();
  FERRY_TEST_CHECK(shared.expired());  // although tickets live
  late.detached.detach();
  late.gathered.wait();
  FERRY_TEST_CHECK(late.staged.ready());
  FERRY_TEST_CHECK(late.plan.positions() == 4);
}

/// The findings of detached work that nobody waits for: Kokkos::finalize prints each of them once. A child of
/// fork() prints none of its parent's.
void print_findings() {
  using ferry_test::count_of;
  Kokkos::initialize();
  ferry_test::captured_stderr output;
  ferry::ticket late;
  {
    const exec_space exec;
    ferry::tensor<float, ferry::mapped_space> weights("weights", 8, 4);
    ferry::tensor<float, ferry::device_space> grads("grads", 2, 4), rows("rows", 2, 4);
    ferry::init::constant(exec, weights, 1);
    ferry::init::constant(exec, grads, 1);
    const ferry::optim::sgd rule{.lr = 0.5};
    auto state = ferry::optim::make_state(rule, weights);
    ferry::step(exec, rule, weights, state, std::vector<std::int32_t>{1, 99}, grads).detach();
    ferry::gather(exec, weights, std::vector<std::int32_t>{-1, 2}, rows).detach();
    ferry::gather(exec, weights, std::vector<std::int32_t>{3, 2}, rows).detach();
    bool thrown = false;
    try {
      ferry::gather(exec, weights, std::vector<std::int32_t>{3, 2}, rows).wait();
    } catch (const ferry::out_of_range& said) {
      thrown = count_of(said.what(), "ferry::step: 1 of 2 indices are outside of 'weights' [8 x 4]") == 1;
    }
    FERRY_TEST_CHECK(thrown);
    late = ferry::gather(exec, weights, std::vector<std::int32_t>{77, 2}, rows);
    const pid_t child = ::fork();
    if (child == 0) std::exit(0);
    int status = -1;
    ::waitpid(child, &status, 0);
    FERRY_TEST_CHECK(status == 0);
    late.detach();
  }
  Kokkos::finalize();
  const std::string text = output.text();
  FERRY_TEST_CHECK(count_of(text, "nobody waited for this error") == 2);
  FERRY_TEST_CHECK(count_of(text, "index -1 at position 0") == 1);
  FERRY_TEST_CHECK(count_of(text, "index 77 at position 0") == 1);
  FERRY_TEST_CHECK(count_of(text, "index 99") == 0);
  if (failures != 0) std::fputs(text.c_str(), stdout);
}

/// Prefetchers that live when Kokkos is finalized: finalize stops them, so no thread, instance or memory of
/// theirs outlives Kokkos. Afterwards next() says so, and the destructors have nothing left to do.
void stop_prefetchers() {
  Kokkos::initialize();
  static std::vector<std::int32_t> samples(1000, 3);
  using source = decltype(ferry::samples_of(samples));
  using table = ferry::tensor<float, ferry::mapped_space>;
  std::unique_ptr<ferry::prefetcher<exec_space, source>> batches;
  std::unique_ptr<ferry::row_prefetcher<exec_space, table, source>> rows;
  {
    const exec_space exec;
    auto weights = std::make_unique<table>("weights", 10, 4);
    ferry::init::zeros(exec, *weights);
    const ferry::prefetch_options options{.batch = 10, .workers = 2, .epochs = 0};
    batches =
        std::make_unique<ferry::prefetcher<exec_space, source>>(exec, ferry::samples_of(samples), options);
    rows = std::make_unique<ferry::row_prefetcher<exec_space, table, source>>(
        exec, *weights, ferry::samples_of(samples), options);
    for (int k = 0; k < 5; ++k) {
      FERRY_TEST_CHECK(batches->next().has_value());
      FERRY_TEST_CHECK(rows->next().has_value());
    }
    Kokkos::finalize();
  }
  const auto is_refused = [](auto& loader) {
    try {
      static_cast<void>(loader.next());
    } catch (const ferry::invalid_argument&) {
      return true;
    }
    return false;
  };
  FERRY_TEST_CHECK(is_refused(*batches));
  FERRY_TEST_CHECK(is_refused(*rows));
  batches = nullptr;
  rows = nullptr;
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::string_view part = argc == 2 ? argv[1] : "";
  if (part == "finalize")
    finalize_late();
  else if (part == "objects")
    outlive_kokkos();
  else if (part == "findings")
    print_findings();
  else if (part == "prefetchers")
    stop_prefetchers();
  else
    return 2;
  return failures == 0 ? 0 : 1;
}
