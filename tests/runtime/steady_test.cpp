// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"
#include "support/training_step.hpp"

/// The costs of a loop that is under way: no memory, and on a device no waiting. What Kokkos Tools can't see
/// is counted in tests/steady.
namespace ferry_test::steady_test {

namespace tools = Kokkos::Tools::Experimental;

std::vector<std::string>* notes = nullptr;

void on_fence(const char* name, const std::uint32_t, std::uint64_t*) {
  // Kokkos fences on its own account while a tool listens.
  if (std::string(name).find("Kokkos Profile Tool Fence") == std::string::npos)
    notes->push_back(std::string("fence ") + name);
}
void on_allocation(Kokkos_Profiling_SpaceHandle space, const char* name, const void*, std::uint64_t) {
  notes->push_back(std::string("allocation ") + space.name + " " + name);
}

/// Notes allocations while it lives, and fences where asked.
class watch {
 public:
  watch(std::vector<std::string>& list, bool fences) {
    notes = &list;
    tools::set_allocate_data_callback(on_allocation);
    if (fences) tools::set_begin_fence_callback(on_fence);
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  ~watch() {
    tools::set_allocate_data_callback(nullptr);
    tools::set_begin_fence_callback(nullptr);
  }
};

constexpr bool on_device = !ferry::detail::is_host_exec<exec_space>;

template <class Loop>
std::vector<std::string> costs_of(const Loop& loop, bool fences) {
  for (int i = 0; i < 20; ++i) loop();
  std::vector<std::string> costs;
  const watch watching(costs, fences);
  for (int i = 0; i < 20; ++i) loop();
  return costs;
}

TEMPLATE_TEST_CASE("a steady step allocates nothing and waits for nothing", "[steady]", ferry::device_space,
                   ferry::mapped_space) {
  const exec_space exec;
  training_step<TestType> step(exec);
  CHECK(costs_of([&] { step.run([](ferry::ticket ticket) { ticket.detach(); }); }, on_device) ==
        std::vector<std::string>{});
  CHECK(costs_of([&] { step.run([&](ferry::ticket ticket) { ticket.then(exec).detach(); }); }, on_device) ==
        std::vector<std::string>{});
  exec.fence("ferry_test::steady");
}

TEST_CASE("a steady step that is waited for allocates nothing", "[steady]") {
  const exec_space exec;
  training_step<ferry::device_space> step(exec);
  CHECK(costs_of([&] { step.run([](ferry::ticket ticket) { ticket.wait(); }); }, false) ==
        std::vector<std::string>{});
}

TEST_CASE("two instances that take turns allocate nothing and wait for nothing", "[steady]") {
  std::vector<exec_space> exec(2);
  if constexpr (on_device) exec = Kokkos::Experimental::partition_space(exec_space{}, std::vector<int>{1, 1});
  training_step<ferry::device_space> step(exec[0]);
  int turn = 0;
  const auto costs_of_turns = [&] {
    return costs_of(
        [&] {
          step.run([&](ferry::ticket ticket) {
            ticket.detach();
            step.exec = exec[static_cast<std::size_t>(++turn % 2)];
          });
        },
        on_device);
  };
  // The instances share scratch memory for as long as the device keeps up with the host. Where it
  // is late, as on a busy card, each gets blocks of its own, which it keeps.
  auto costs = costs_of_turns();
  for (int repeat = 0; repeat < 4 && !costs.empty(); ++repeat) costs = costs_of_turns();
  CHECK(costs == std::vector<std::string>{});
  for (const auto& instance : exec) instance.fence("ferry_test::steady");
}

}  // namespace ferry_test::steady_test
