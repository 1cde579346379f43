// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <set>

/// The view that Kokkos Tools have of the verbs: labels, the instance that kernels run on, transfers,
/// allocations, fences.
namespace ferry_test::tools_test {

using Catch::Matchers::StartsWith;

namespace tools = Kokkos::Tools::Experimental;

struct sighting {
  std::string name;
  std::uint32_t device;
};

struct log {
  std::vector<sighting> kernels, fences, copies, allocations, deallocations;
};
log* listening = nullptr;

void on_kernel(const char* name, const std::uint32_t device, std::uint64_t*) {
  listening->kernels.push_back({name, device});
}
void on_fence(const char* name, const std::uint32_t device, std::uint64_t*) {
  // Kokkos fences on its own account while a tool listens.
  if (std::string(name).find("Kokkos Profile Tool Fence") != std::string::npos) return;
  listening->fences.push_back({name, device});
}
void on_copy(Kokkos_Profiling_SpaceHandle target, const char* name, const void*,
             Kokkos_Profiling_SpaceHandle source, const char*, const void*, std::uint64_t) {
  listening->copies.push_back({std::string(target.name) + " <- " + source.name + " " + name, 0});
}
void on_allocation(Kokkos_Profiling_SpaceHandle space, const char* name, const void*, std::uint64_t bytes) {
  listening->allocations.push_back({std::string(space.name) + " " + name + " " + std::to_string(bytes), 0});
}
void on_deallocation(Kokkos_Profiling_SpaceHandle space, const char* name, const void*, std::uint64_t bytes) {
  listening->deallocations.push_back({std::string(space.name) + " " + name + " " + std::to_string(bytes), 0});
}

/// Listens while it lives.
class listener {
 public:
  listener() {
    listening = &notes;
    tools::set_begin_parallel_for_callback(on_kernel);
    tools::set_begin_parallel_scan_callback(on_kernel);
    tools::set_begin_parallel_reduce_callback(on_kernel);
    tools::set_begin_fence_callback(on_fence);
    tools::set_begin_deep_copy_callback(on_copy);
    tools::set_allocate_data_callback(on_allocation);
    tools::set_deallocate_data_callback(on_deallocation);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    tools::set_begin_parallel_for_callback(nullptr);
    tools::set_begin_parallel_scan_callback(nullptr);
    tools::set_begin_parallel_reduce_callback(nullptr);
    tools::set_begin_fence_callback(nullptr);
    tools::set_begin_deep_copy_callback(nullptr);
    tools::set_allocate_data_callback(nullptr);
    tools::set_deallocate_data_callback(nullptr);
    listening = nullptr;
  }
  log notes;
};

std::set<std::string> names_of(const std::vector<sighting>& sightings) {
  std::set<std::string> names;
  for (const auto& event : sightings) names.insert(event.name);
  return names;
}

/// An instance next to the default one, where the backend has more than one.
exec_space second_instance() { return Kokkos::Experimental::partition_space(exec_space{}, 1).at(0); }

/// Every verb on one table.
template <class Space, class Path>
void all_verbs(const exec_space& exec, Path path, ferry::tensor<float, Space>& table,
               ferry::tensor<float, ferry::device_space>& batch,
               ferry::optim::state<ferry::optim::adam, float, Space>& state, log& notes, const char* verb) {
  const std::vector<std::int64_t> indices{3, 1, 3};
  const std::string name(verb);
  const auto plan = ferry::make_plan(exec, indices, table.rows());
  static_cast<void>(plan.unique_count());
  notes = {};
  if (name == "gather") {
    ferry::gather(exec, table, indices, batch, path).wait();
    ferry::gather(exec, table, plan, batch, path).wait();
  } else if (name == "scatter") {
    ferry::scatter(exec, table, plan, batch, path).wait();
    ferry::scatter(exec, table, std::vector<std::int64_t>{1, 2, 3}, batch, path,
                   ferry::duplicates::assume_unique{})
        .wait();
  } else if (name == "scatter_add") {
    ferry::scatter_add(exec, table, plan, batch, path).wait();
  } else if (name == "step") {
    ferry::step(exec, ferry::optim::adam{}, table, state, plan, batch, path).wait();
  } else {
    // Larger than what is copied without a kernel.
    ferry::tensor<float, ferry::device_space> large("large", 200000);
    ferry::tensor<float, Space> second("other", 200000);
    ferry::init::zeros(exec, large);
    notes = {};
    ferry::copy(exec, large, second, path).wait();
  }
}

TEMPLATE_TEST_CASE(
    "kernels of the direct path are labelled and run on the given instance, which alone is fenced", "[tools]",
    ferry::mapped_space, ferry::device_space) {
  const exec_space exec = second_instance();
  const auto id = tools::device_id(exec);
  ferry::tensor<float, TestType> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, batch);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  for (const char* verb : {"gather", "scatter", "scatter_add", "step", "copy"}) {
    CAPTURE(verb);
    listener tool;
    all_verbs(exec, ferry::path::direct{}, table, batch, state, tool.notes, verb);
    const std::string label = std::string("ferry::") + verb + "::direct";
    for (const auto& kernel : tool.notes.kernels) {
      CHECK_THAT(kernel.name, StartsWith(label));
      CHECK(kernel.device == id);
    }
    if (std::string(verb) != "copy") CHECK_FALSE(tool.notes.kernels.empty());
    for (const auto& fence : tool.notes.fences) {
      CAPTURE(fence.name);
      CHECK(fence.device == id);
    }
    if (std::string(verb) == "copy") CHECK(tool.notes.copies.size() == 1);
  }
}

TEST_CASE("a plan's kernels are labelled and run on the given instance", "[tools]") {
  const exec_space exec = second_instance();
  const auto id = tools::device_id(exec);
  listener tool;
  const auto plan = ferry::make_plan(exec, std::vector<std::int32_t>{5, 3, 5, 1}, 10);
  CHECK_FALSE(tool.notes.kernels.empty());  // a device makes a small plan by one
  for (const auto& kernel : tool.notes.kernels) {
    CHECK_THAT(kernel.name, StartsWith("ferry::make_plan::"));
    CHECK(kernel.device == id);
  }
  for (const auto& fence : tool.notes.fences) {
    CAPTURE(fence.name);
    CHECK(fence.device == id);
  }
  CHECK(plan.unique_count() == 3);
}

TEMPLATE_TEST_CASE("kernels and transfers of the staged path are labelled and reported", "[tools]",
                   ferry::pinned_space, ferry::pageable_space) {
  const exec_space exec;
  ferry::tensor<float, TestType> table("table", 10, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 3, 4);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, batch);
  auto state = ferry::optim::make_state(ferry::optim::adam{}, table);
  for (const char* verb : {"gather", "scatter", "scatter_add", "step", "copy"}) {
    CAPTURE(verb);
    listener tool;
    all_verbs(exec, ferry::path::staged{}, table, batch, state, tool.notes, verb);
    // A copy is its slots alone, which is a transfer.
    if (std::string(verb) != "copy") CHECK_FALSE(tool.notes.kernels.empty());
    for (const auto& kernel : tool.notes.kernels)
      CHECK_THAT(kernel.name, StartsWith(std::string("ferry::") + verb + "::staged"));
    CHECK_FALSE(tool.notes.copies.empty());
    bool between_spaces = false;
    for (const auto& copy : tool.notes.copies) {
      CHECK_THAT(copy.name,
                 ContainsSubstring("ferry::pinned_space") && ContainsSubstring("ferry::device_space"));
      between_spaces =
          between_spaces || copy.name.find(std::string("ferry::") + verb + "::staged") != std::string::npos;
    }
    CHECK(between_spaces);
  }
}

TEMPLATE_TEST_CASE("allocations are reported with space, label and size, and so is their end", "[tools]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const auto expected = "ferry::" + std::string(TestType::name) + " ferry::tensor::weights 480";
  listener tool;
  {
    const ferry::tensor<float, TestType> table("weights", 12, 10);
    CHECK(names_of(tool.notes.allocations).contains(expected));
    // A pool may give memory of earlier tests back.
    CHECK_FALSE(names_of(tool.notes.deallocations).contains(expected));
  }
  CHECK(names_of(tool.notes.deallocations).contains(expected));
  // A pool may keep the memory, under its own label.
  for (const auto& notes : {tool.notes.allocations, tool.notes.deallocations})
    for (const auto& name : names_of(notes))
      CHECK(
          (name == expected || name.starts_with("ferry::" + std::string(TestType::name) + " ferry::pool::")));
}

TEST_CASE("a verb's own memory is labelled, and kept for the next call", "[tools]") {
  const exec_space exec;
  ferry::tensor<float, ferry::mapped_space> table("table", 1000, 4);
  ferry::tensor<float, ferry::device_space> batch("batch", 5000, 4);
  ferry::init::zeros(exec, table);
  ferry::init::zeros(exec, batch);
  const std::vector<std::int64_t> indices(5000, 7);
  listener tool;
  ferry::scatter(exec, table, indices, batch).wait();
  for (const auto& name : names_of(tool.notes.allocations)) CHECK_THAT(name, ContainsSubstring(" ferry::"));
  tool.notes = {};
  for (int i = 0; i < 3; ++i) ferry::scatter(exec, table, indices, batch).wait();
  for (const auto& event : tool.notes.allocations) CHECK_THAT(event.name, !StartsWith("ferry::"));
}

}  // namespace ferry_test::tools_test
