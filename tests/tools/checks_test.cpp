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
  ferry_info::report made;
  made.backend = "cuda";
  made.host_threads = 16;
  made.survey.toolkit = made.survey.runtime = "13.0";
  ferry::detail::device_facts one;
  one.maps_host_memory = one.takes_registered_memory = one.concurrent_managed_access = true;
  one.link_generation = one.best_link_generation = 5;
  one.link_lanes = one.best_link_lanes = 16;
  one.numa_node = 1;
  made.survey.devices = {one};
  auto& host = made.machine;
  host.processors = host.usable_processors = 16;
  for (int processor = 0; processor < 16; ++processor) host.processor_set.push_back(processor);
  host.memory = 125 * gib;
  host.available = 120 * gib;
  host.huge_pages = host.huge_pages_defrag = "madvise";
  host.advised_bytes = host.huge_bytes = 1 << 24;
  host.nodes = {{0, "0-3,8-11", 64 * gib, 60 * gib}, {1, "4-7,12-15", 64 * gib, 60 * gib}};
  made.rates.bytes = gib / 4;
  made.rates.spaces = {{"pinned_space", 10, 55.4, 55.2, ""},
                       {"mapped_space", 10, 51, 52, ""},
                       {"pageable_space", 0, 20, 20, ""}};
  made.profile = {"read from a file", {"calls"}, {}};
  return made;
}

/// The verdict of a check; all checks that did not pass have advice.
const ferry_info::check* find(const std::vector<ferry_info::check>& all, const std::string& name) {
  for (const auto& each : all)
    if (each.name == name) return &each;
  return nullptr;
}
verdict verdict_of(const ferry_info::report& of, const std::string& name) {
  const auto all = ferry_info::judge(of);
  const auto* found = find(all, name);
  REQUIRE(found != nullptr);
  CHECK(found->advice.empty() == (found->result == verdict::good));
  return found->result;
}

}  // namespace

TEST_CASE("a machine without faults passes every check", "[info]") {
  for (const auto& each : ferry_info::judge(good_machine())) {
    CAPTURE(each.name, each.finding);
    CHECK(each.result == verdict::good);
    CHECK(each.advice.empty());
  }
}

TEST_CASE("each fault that slows page-locking or mapping has its check", "[info]") {
  auto of = good_machine();
  std::string name;
  auto expected = verdict::warning;
  SECTION("no huge pages") {
    of.machine.huge_pages = "never";
    name = "huge pages";
  }
  SECTION("a kernel without them") {
    of.machine.huge_pages = "";
    name = "huge pages";
  }
  SECTION("fragmented memory") {
    of.machine.huge_bytes = of.machine.advised_bytes / 4;
    name = "huge pages";
  }
  SECTION("slow page-locking") {
    of.rates.spaces[0].allocation = 1.5;
    name = "page-locking";
  }
  SECTION("a limit on locked memory") {
    of.machine.lockable = 65536;
    name = "memlock limit";
    expected = verdict::note;
  }
  SECTION("a control group that is nearly full") {
    of.machine.group_limit = 16 * gib;
    of.machine.group_used = 15 * gib;
    name = "memory limit";
  }
  SECTION("a control group with room") {
    of.machine.group_limit = 64 * gib;
    of.machine.group_used = gib;
    name = "memory limit";
    expected = verdict::note;
  }
  SECTION("little free memory") {
    of.machine.available = 2 * gib;
    name = "free memory";
  }
  SECTION("a process far from the device") {
    of.machine.processor_set = {0, 1, 2, 3, 8, 11};
    name = "NUMA";
  }
  SECTION("no concurrent managed access") {
    of.survey.devices[0].concurrent_managed_access = false;
    name = "mapped memory";
  }
  SECTION("no mapped memory at all") {
    of.survey.devices[0].maps_host_memory = false;
    name = "mapped memory";
    expected = verdict::failure;
  }
  SECTION("half of the lanes") {
    of.survey.devices[0].link_lanes = 8;
    name = "link";
  }
  SECTION("a slow link") {
    of.rates.spaces[0].from_device = 30;
    name = "link";
  }
  SECTION("slow zero-copy") {
    of.rates.spaces[1].to_device = 9;
    name = "zero-copy";
  }
  SECTION("more threads than the quota allows") {
    of.machine.quota = 4;
    name = "processors";
  }
  SECTION("few threads") {
    of.host_threads = 4;
    name = "processors";
    expected = verdict::note;
  }
  SECTION("blocking launches") {
    of.machine.environment = {{"CUDA_LAUNCH_BLOCKING", "1"}};
    name = "environment";
  }
  SECTION("a profile of defaults") {
    of.profile.measured.clear();
    name = "profile";
    expected = verdict::note;
  }
  SECTION("an old driver") {
    of.survey.runtime = "12.4";
    name = "driver";
    expected = verdict::failure;
  }
  SECTION("no device") {
    of.survey.devices.clear();
    of.survey.failure = "no CUDA-capable device is detected";
    name = "device";
    expected = verdict::failure;
  }
  CHECK(verdict_of(of, name) == expected);
}

TEST_CASE("a process on one processor of the device's node is near", "[info]") {
  auto of = good_machine();
  of.machine.processor_set = {0, 15};
  CHECK(verdict_of(of, "NUMA") == verdict::good);
}

TEST_CASE("the rate of a link follows from its generation and lanes", "[info]") {
  CHECK_THAT(ferry_info::link_rate(5, 16), WithinRel(63.0, 0.01));
  CHECK_THAT(ferry_info::link_rate(3, 8), WithinRel(7.88, 0.01));
  CHECK(ferry_info::link_rate(0, 16) == 0.0);
  CHECK(ferry_info::link_rate(7, 16) == 0.0);
}

TEST_CASE("text and JSON hold bytes that are not text", "[info]") {
  auto of = good_machine();
  of.machine.processor = "a \"processor\" \xff of \n two lines";
  of.checks = ferry_info::judge(of);
  CHECK_THAT(ferry_info::as_json(of), ContainsSubstring("\\\"processor\\\"") && ContainsSubstring("\\n two"));
  CHECK_THAT(ferry_info::as_text(of), ContainsSubstring("PCIe 5 x16 (63.0 GB/s each way)"));
}

}  // namespace ferry_test::checks_test
