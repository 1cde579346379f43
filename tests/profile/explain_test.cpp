// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/profile.hpp"
#include "support/test.hpp"

#include <ferry/calibrate.hpp>

namespace ferry_test::explain_test {

using ferry::path_kind;
using ferry::verb;
using ferry::detail::move_facts;
using ferry::detail::path_set;

void check_table(const ferry::explanation& report) {
  REQUIRE_FALSE(report.candidates.empty());
  int picked = 0;
  for (const auto& line : report.candidates) {
    CAPTURE(name(line.path), line.reason);
    picked += line.picked ? 1 : 0;
    CHECK(line.picked == (line.path == report.picked));
    CHECK(line.seconds > 0.0);
    CHECK(line.reason.ends_with("."));
    CHECK_THAT(report.to_string(), ContainsSubstring(line.reason));
    CHECK_THAT(report.to_string(), ContainsSubstring(std::string(name(line.path))));
  }
  CHECK(picked == 1);
  CHECK(report.candidates.front().picked);
}

TEMPLATE_TEST_CASE("explain names the path that the profile gives", "[explain]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const exec_space exec;
  const ferry::tensor<float, TestType> table("weights", 1000, 32);
  const auto report = ferry::explain(verb::gather, table, 100);
  check_table(report);
  const auto candidates =
      ferry::detail::candidate_paths<exec_space, TestType, ferry::device_space>(verb::gather);
  CHECK(report.candidates.size() == static_cast<std::size_t>(candidates.size()));
  const auto facts =
      ferry::detail::facts_of<exec_space, ferry::device_space>(verb::gather, make_ref(table), 100);
  CHECK(report.picked == ferry::detail::choose_route(exec, facts, candidates));
  for (const auto& line : report.candidates) {
    CHECK(candidates.contains(line.path));
    const auto cost = ferry::detail::costs_of(ferry::current_profile(exec), facts)[line.path];
    CHECK(line.seconds == cost.seconds(100));
    CHECK(line.gb_per_s == 32 * 4 / cost.row_ns);
  }
  CHECK_THAT(report.call, ContainsSubstring("'weights' [1000 x 32] in " + std::string(TestType::name)));
  CHECK(report.profile == ferry::profile_origin(exec));
  CHECK_THAT(report.to_string(), ContainsSubstring(report.profile));
}

TEST_CASE("explain says whose readings it predicts from", "[explain]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/none.txt";
  const ferry_test::environment_variable named("FERRY_PROFILE", path.c_str());
  const exec_space exec;
  const ferry::tensor<float, ferry::pageable_space> table("weights", 1000, 32);
  const Kokkos::DefaultHostExecutionSpace host;
  const auto text = ferry::explain<ferry::pageable_space>(verb::gather, table, 100, host).to_string();
  CHECK_THAT(text, ContainsSubstring("profile: defaults (readings of one H200") &&
                       ContainsSubstring("not of this machine): there is no " + path) &&
                       ContainsSubstring("ferry::calibrate"));
  CHECK_THAT(text, ContainsSubstring(std::to_string(host.concurrency()) + " host threads"));
  ferry::use_profile(host, ferry::machine_profile{});
  CHECK_THAT(ferry::explain<ferry::pageable_space>(verb::gather, table, 100, host).to_string(),
             ContainsSubstring("profile: set by ferry::use_profile"));
  ferry::detail::profile_holder<Kokkos::DefaultHostExecutionSpace>::forget();
}

TEST_CASE("explain for another batch, another instance and a plan", "[explain]") {
  const Kokkos::DefaultHostExecutionSpace host;
  const ferry::tensor<double, ferry::pageable_space> table("table", 50, 3);
  const auto report = ferry::explain<ferry::pinned_space>(verb::step, table, 0, host, {.planned = true});
  check_table(report);
  CHECK(report.picked == path_kind::direct);
  CHECK_THAT(report.call, ContainsSubstring("batch in pinned_space, with a plan"));
  CHECK_THAT(report.candidates.front().reason, ContainsSubstring("only way"));
  CHECK_THROWS_AS(static_cast<void>(ferry::explain(verb::gather, table, -1)), ferry::invalid_argument);
}

TEST_CASE("reasons name what limits a path, and the numbers that decided", "[explain]") {
  const path_set every_path{path_kind::direct, path_kind::ordered, path_kind::staged, path_kind::cooperative};
  const ferry::machine_profile profile;
  const auto explained = [&](std::string_view space, std::int64_t gib, std::int64_t row_bytes,
                             std::int64_t n) {
    auto report = ferry::detail::explain_choice(
        profile, move_facts{verb::gather, space, "device_space", gib << 30, row_bytes, n}, every_path);
    check_table(report);
    CHECK_THAT(report.to_string(), ContainsSubstring("compared: " + report.compared));
    return report;
  };
  const auto reason = [](const ferry::explanation& report, path_kind path) {
    for (const auto& line : report.candidates)
      if (line.path == path) return line.reason;
    return std::string();
  };
  const auto large = explained("pinned_space", 16, 128, 1 << 20);
  CHECK(large.picked == path_kind::cooperative);
  CHECK_THAT(reason(large, path_kind::direct),
             ContainsSubstring("10 us to start, then 28.22 ns a row: pages"));
  CHECK_THAT(reason(large, path_kind::ordered), ContainsSubstring("shared by sorted rows"));
  CHECK_THAT(reason(large, path_kind::staged),
             ContainsSubstring("host's threads") && ContainsSubstring("times the picked one"));
  CHECK_THAT(large.compared,
             ContainsSubstring("within four times each other's rate") &&
                 ContainsSubstring("2.50 ns of the link") &&
                 ContainsSubstring("look-ups 26.92 ns, sorted 6.61 ns") &&
                 ContainsSubstring("2.63 ns of the host's threads") &&
                 ContainsSubstring("table has 16.00 GiB, pages stay translated up to 0.62 GiB"));
  const auto small = explained("mapped_space", 1, 16, 1000);
  CHECK(small.picked == path_kind::direct);
  CHECK_THAT(small.compared, ContainsSubstring("no other path saves"));
  CHECK_THAT(reason(explained("mapped_space", 16, 16, 1 << 20), path_kind::ordered),
             ContainsSubstring("however short"));
  const auto wide = explained("mapped_space", 16, 4096, 1 << 18);
  CHECK_THAT(reason(wide, path_kind::direct), ContainsSubstring("link's bytes"));
  CHECK_THAT(wide.compared, ContainsSubstring("within a tenth of the link's time"));
  CHECK_THAT(reason(explained("device_space", 16, 512, 1 << 20), path_kind::direct),
             ContainsSubstring("device's memory"));
  CHECK_THAT(explained("pinned_space", 2, 512, 1 << 20).compared, ContainsSubstring("sorted rows save"));
  CHECK_THAT(explained("pinned_space", 64, 64, 1 << 17).compared, ContainsSubstring("host's threads save"));
}

}  // namespace ferry_test::explain_test
