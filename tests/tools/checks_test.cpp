// SPDX-License-Identifier: Apache-2.0
#include "ferry_info/report.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using ferry_info::verdict;

/// The checks of ferry-info by facts about machines with one fault each.
namespace ferry_test::checks_test {

namespace {

constexpr std::int64_t gib = std::int64_t{1} << 30;

/// A machine as the H200 one, with nothing to complain about.
ferry_info::report good_machine() {
  ferry_info::report result;
  result.backend = "cuda";
  result.host_threads = 16;
  result.survey.toolkit = result.survey.runtime = "13.0";
  ferry_info::device_facts facts;
  facts.maps_host_memory = facts.takes_registered_memory = facts.concurrent_managed_access = true;
  facts.link_generation = facts.best_link_generation = 5;
  facts.link_lanes = facts.best_link_lanes = 16;
  facts.numa_node = 1;
  result.survey.devices = {facts};
  auto& host = result.machine;
  host.processors = host.usable_processors = 16;
  for (int processor = 0; processor < 16; ++processor) host.processor_set.push_back(processor);
  host.memory = 125 * gib;
  host.available = 120 * gib;
  host.huge_pages = host.huge_pages_defrag = "madvise";
  host.advised_bytes = host.huge_bytes = 1 << 24;
  host.nodes = {{0, "0-3,8-11", 64 * gib, 60 * gib}, {1, "4-7,12-15", 64 * gib, 60 * gib}};
  result.rates.bytes = gib / 4;
  result.rates.spaces = {{"pinned_space", 10, 55.4, 55.2, ""},
                         {"mapped_space", 10, 51, 52, ""},
                         {"pageable_space", 0, 20, 20, ""}};
  result.profile = {"read from a file", {"calls"}, {}};
  return result;
}

/// The verdict of a check; all checks that did not pass have advice.
const ferry_info::check* find(const std::vector<ferry_info::check>& checks, const std::string& name) {
  for (const auto& check : checks)
    if (check.name == name) return &check;
  return nullptr;
}
verdict verdict_of(const ferry_info::report& machine, const std::string& name) {
  const auto checks = ferry_info::judge(machine);
  const auto* actual = find(checks, name);
  REQUIRE(actual != nullptr);
  CHECK(actual->advice.empty() == (actual->result == verdict::good));
  return actual->result;
}

}  // namespace

TEST_CASE("a machine without faults passes every check", "[info]") {
  for (const auto& check : ferry_info::judge(good_machine())) {
    CAPTURE(check.name, check.finding);
    CHECK(check.result == verdict::good);
    CHECK(check.advice.empty());
  }
}

TEST_CASE("each fault that slows page-locking or mapping has its check", "[info]") {
  auto facts = good_machine();
  std::string name;
  auto expected = verdict::warning;
  SECTION("no huge pages") {
    facts.machine.huge_pages = "never";
    name = "huge pages";
  }
  SECTION("a kernel without them") {
    facts.machine.huge_pages = "";
    name = "huge pages";
  }
  SECTION("fragmented memory") {
    facts.machine.huge_bytes = facts.machine.advised_bytes / 4;
    name = "huge pages";
  }
  SECTION("slow page-locking") {
    facts.rates.spaces[0].allocation = 1.5;
    name = "page-locking";
  }
  SECTION("a limit on locked memory") {
    facts.machine.lockable = 65536;
    name = "memlock limit";
    expected = verdict::note;
  }
  SECTION("a control group that is nearly full") {
    facts.machine.group_limit = 16 * gib;
    facts.machine.group_used = 15 * gib;
    name = "memory limit";
  }
  SECTION("a control group with room") {
    facts.machine.group_limit = 64 * gib;
    facts.machine.group_used = gib;
    name = "memory limit";
    expected = verdict::note;
  }
  SECTION("little free memory") {
    facts.machine.available = 2 * gib;
    name = "free memory";
  }
  SECTION("a process far from the device") {
    facts.machine.processor_set = {0, 1, 2, 3, 8, 11};
    name = "NUMA";
  }
  SECTION("no concurrent managed access") {
    facts.survey.devices[0].concurrent_managed_access = false;
    name = "mapped memory";
  }
  SECTION("no mapped memory at all") {
    facts.survey.devices[0].maps_host_memory = false;
    name = "mapped memory";
    expected = verdict::failure;
  }
  SECTION("half of the lanes") {
    facts.survey.devices[0].link_lanes = 8;
    name = "link";
  }
  SECTION("a slow link") {
    facts.rates.spaces[0].from_device = 30;
    name = "link";
  }
  SECTION("slow zero-copy") {
    facts.rates.spaces[1].to_device = 9;
    name = "zero-copy";
  }
  SECTION("more threads than the quota allows") {
    facts.machine.quota = 4;
    name = "processors";
  }
  SECTION("few threads") {
    facts.host_threads = 4;
    name = "processors";
    expected = verdict::note;
  }
  SECTION("threads that spin on a busy machine") {
    facts.wakes = {8, 16, true, 4e-4};
    name = "host threads";
  }
  SECTION("more threads than processors") {
    facts.wakes = {32, 16, false, 4e-4};
    name = "host threads";
  }
  SECTION("blocking launches") {
    facts.machine.environment = {{"CUDA_LAUNCH_BLOCKING", "1"}};
    name = "environment";
  }
  SECTION("a profile of defaults") {
    facts.profile.measured.clear();
    name = "profile";
    expected = verdict::note;
  }
  SECTION("an old driver") {
    facts.survey.runtime = "12.4";
    name = "driver";
    expected = verdict::failure;
  }
  SECTION("no device") {
    facts.survey.devices.clear();
    facts.survey.failure = "no CUDA-capable device is detected";
    name = "device";
    expected = verdict::failure;
  }
  CHECK(verdict_of(facts, name) == expected);
}

TEST_CASE("a process on one processor of the device's node is near", "[info]") {
  auto facts = good_machine();
  facts.machine.processor_set = {0, 15};
  CHECK(verdict_of(facts, "NUMA") == verdict::good);
}

TEST_CASE("the rate of a link follows from its generation and lanes", "[info]") {
  CHECK_THAT(ferry_info::link_rate(5, 16), WithinRel(63.0, 0.01));
  CHECK_THAT(ferry_info::link_rate(3, 8), WithinRel(7.88, 0.01));
  CHECK(ferry_info::link_rate(0, 16) == 0.0);
  CHECK(ferry_info::link_rate(7, 16) == 0.0);
}

TEST_CASE("text and JSON hold bytes that are not text", "[info]") {
  auto facts = good_machine();
  facts.machine.processor = "a \"processor\" \xff of \n two lines";
  facts.checks = ferry_info::judge(facts);
  CHECK_THAT(ferry_info::as_json(facts),
             ContainsSubstring("\\\"processor\\\"") && ContainsSubstring("\\n two"));
  CHECK_THAT(ferry_info::as_text(facts), ContainsSubstring("PCIe 5 x16 (63.0 GB/s each way)"));
}

}  // namespace ferry_test::checks_test
