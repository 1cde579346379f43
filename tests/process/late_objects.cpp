// SPDX-License-Identifier: Apache-2.0
// Tensors, plans, tickets and futures may outlive Kokkos: they hold no instance of an execution space and keep no
// engine alive. Work that was in flight has ended with Kokkos::finalize.
#include <ferry/ferry.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultExecutionSpace;
using ferry::detail::engine;

void require(bool holds, const char* text) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::_Exit(EXIT_FAILURE);
}

struct late_objects {
  std::optional<ferry::tensor<float, ferry::pinned_space>> table;
  std::optional<ferry::tensor<float, ferry::device_space>> rows;
  ferry::row_plan plan;
  ferry::ticket gathered, staged, stepped, detached;
  ferry::future<ferry::tensor<float, ferry::device_space>> future_rows;
};

}  // namespace

int main(int argc, char* argv[]) {
  static late_objects late;
  std::weak_ptr<engine> shared;
  Kokkos::initialize(argc, argv);
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
  require(shared.expired(), "the engine is gone although tickets live");
  late.detached.detach();
  late.gathered.wait();
  require(late.staged.ready(), "work has ended");
  require(late.plan.positions() == 4, "a plan knows its size");
  return EXIT_SUCCESS;
}
