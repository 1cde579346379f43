// SPDX-License-Identifier: Apache-2.0
// Allocations and verbs throw before Kokkos::initialize and after Kokkos::finalize, and write nothing. Budgets may be
// set before, and tensors may be destroyed after.
#include "check.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/calibrate.hpp>
#include <ferry/ferry.hpp>
#include <ferry/int8.hpp>
#include <ferry/io.hpp>
#include <ferry/loader.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using exec_space = Kokkos::DefaultHostExecutionSpace;
using ferry::pageable_space;
using tensor = ferry::tensor<float, pageable_space>;

/// True if `call` throws a ferry::error that ends with `reason`.
template <class Call>
bool is_refused(const char* name, const std::string& reason, const Call& call) {
  try {
    call();
    std::printf("%s ran\n", name);
  } catch (const ferry::error& refused) {
    const std::string text = refused.what();
    if (text.starts_with("ferry") && text.ends_with(reason) && text.find('\n') == std::string::npos)
      return true;
    std::printf("%s says: %s\n", name, text.c_str());
  }
  return false;
}

/// Everything that is refused without Kokkos, on arrays that a program has without it.
void check_refusals(const std::string& reason, const std::string& folder) {
  const exec_space exec;
  std::vector<float> table{1, 2, 3, 4}, batch{-7, -7}, grads{1, 1};
  const std::vector<float> start = table;
  const std::vector<std::int32_t> indices{2, 0}, offsets{0, 1, 2};
  float number = 2;
  auto adopted = ferry::adopt<pageable_space>(std::span(table), 4, 1);
  const auto refused = [&](const char* name, const auto& call) {
    FERRY_TEST_CHECK(is_refused(name, reason, call));
  };

  refused("a tensor", [] { const tensor array("one", 3, 4); });
  refused("a pinned tensor", [] { const ferry::tensor<int, ferry::pinned_space> array("one", 3); });
  refused("a mapped tensor", [] { const ferry::tensor<int, ferry::mapped_space> array("one", 3); });
  refused("a device tensor", [] { const ferry::tensor<int, ferry::device_space> array("one", 3); });
  refused("adopt", [&] { static_cast<void>(ferry::adopt<ferry::pinned_space>(std::span(grads), 2, 1)); });
  refused("8-bit rows", [] { const ferry::rowwise_int8_tensor<pageable_space> rows("one", 3, 4); });
  refused("make_state", [&] { static_cast<void>(ferry::optim::make_state(ferry::optim::adam{}, adopted)); });
  refused("make_records", [&] {
    static_cast<void>(ferry::optim::make_records<float, pageable_space>(ferry::optim::adam{}, "one", 3, 4));
  });

  refused("gather", [&] { ferry::gather(exec, table, indices, batch).wait(); });
  refused("gather of nothing",
          [&] { ferry::gather(exec, table, std::vector<int>{}, std::span<float>{}).wait(); });
  refused("gather, staged",
          [&] { ferry::gather(exec, table, indices, batch, ferry::path::staged{}).wait(); });
  refused("gather into a new tensor",
          [&] { static_cast<void>(ferry::gather<pageable_space>(exec, table, indices).get()); });
  refused("gather_unique", [&] { ferry::gather_unique(exec, table, indices, batch).wait(); });
  refused("scatter", [&] { ferry::scatter(exec, table, indices, grads).wait(); });
  refused("scatter_add", [&] { ferry::scatter_add(exec, table, indices, grads).wait(); });
  refused("copy", [&] { ferry::copy(exec, grads, batch).wait(); });
  refused("clone", [&] { static_cast<void>(ferry::clone(exec, adopted).get()); });
  refused("make_plan", [&] { static_cast<void>(ferry::make_plan(exec, indices, 4)); });
  refused("unique", [&] { static_cast<void>(ferry::unique(exec, indices, 4)); });
  refused("gather_bags", [&] { ferry::gather_bags(exec, table, indices, offsets, batch).wait(); });
  refused("init", [&] { ferry::init::zeros(exec, table); });
  refused("init of nothing", [&] { ferry::init::constant(exec, std::span<float>{}, 3); });
  refused("grad_norm", [&] { static_cast<void>(ferry::optim::grad_norm(exec, grads)); });
  refused("clip_grad_norm", [&] { static_cast<void>(ferry::optim::clip_grad_norm(exec, 0.1, grads)); });
  refused("after", [&] { ferry::after(exec, exec); });
  refused("calibrate", [&] { static_cast<void>(ferry::calibrate(exec)); });
  refused("current_profile", [&] { static_cast<void>(ferry::current_profile(exec)); });
  refused("explain", [&] { static_cast<void>(ferry::explain(ferry::verb::gather, table, 2, exec)); });
  refused("cached_table", [&] { const ferry::cached_table one(adopted, ferry::cache::first{.rows = 2}); });
  refused("prefetcher", [&] { ferry::prefetcher loader(exec, ferry::samples_of(grads), {.batch = 1}); });
  refused("row_prefetcher",
          [&] { ferry::row_prefetcher loader(exec, adopted, ferry::samples_of(indices), {.batch = 1}); });
  refused("save_async", [&] {
    ferry::io::checkpoint run(folder);
    run.add("number", number);
    run.save_async(exec).wait();
  });

  FERRY_TEST_CHECK(table == start);
  FERRY_TEST_CHECK(batch == std::vector<float>(2, -7));
  FERRY_TEST_CHECK(grads == std::vector<float>(2, 1));
  FERRY_TEST_CHECK(ferry::memory_statistics<pageable_space>().total_count == 0 || Kokkos::is_finalized());
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::string folder = "outside_kokkos.ckpt";
  check_refusals(": Kokkos is not initialized", folder);
  ferry::set_memory_budget<pageable_space>(1 << 20);
  std::optional<tensor> late;
  std::optional<ferry::optim::state<ferry::optim::adam, float, pageable_space>> late_state;
  ferry::row_plan late_plan;
  Kokkos::initialize(argc, argv);
  {
    const exec_space exec;
    late.emplace("late", 3, 4);
    late_state.emplace(ferry::optim::make_state(ferry::optim::adam{}, *late));
    ferry::init::constant(exec, *late, 5);
    late_plan = ferry::make_plan(exec, std::vector<int>{1}, 3);
    tensor rows("rows", 2, 4);
    ferry::gather(exec, *late, std::vector<int>{2, 0}, rows).wait();
    for (std::size_t i = 0; i < rows.size(); ++i) FERRY_TEST_CHECK(rows.data()[i] == 5);
    bool refused = false;
    try {
      const tensor large("large", 1 << 20, 1);
    } catch (const ferry::budget_exceeded&) {
      refused = true;
    }
    FERRY_TEST_CHECK(refused);
  }
  Kokkos::finalize();
  check_refusals(": Kokkos has been finalized", folder);
  {
    const exec_space exec;
    const ferry::optim::adam rule;
    std::vector<float> row(4, -7);
    const auto single_row = ferry::adopt<pageable_space>(std::span(row), 1, 4);
    const auto refused = [&](const char* name, const auto& call) {
      FERRY_TEST_CHECK(is_refused(name, ": Kokkos has been finalized", call));
    };
    refused("scatter by a plan", [&] { ferry::scatter(exec, *late, late_plan, single_row).wait(); });
    refused("step", [&] { ferry::step(exec, rule, *late, *late_state, late_plan, single_row).wait(); });
    FERRY_TEST_CHECK(late->data()[11] == 5 && late_state->steps() == 0);
  }
  late.reset();
  late_state.reset();
  return failures == 0 ? 0 : 1;
}
