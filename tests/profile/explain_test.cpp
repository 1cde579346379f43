// SPDX-License-Identifier: Apache-2.0
#include <ferry/calibrate.hpp>
#include <ferry/ferry.hpp>

#include "support/arrays.hpp"
#include "support/folder.hpp"
#include "support/profile.hpp"

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry_test::explain_test {

using Catch::Matchers::ContainsSubstring;
using ferry::path_kind;
using ferry::verb;
using ferry::detail::move_facts;
using ferry::detail::path_set;

namespace {

void check_table(const ferry::explanation& made) {
  REQUIRE_FALSE(made.candidates.empty());
  int picked = 0;
  for (const auto& one : made.candidates) {
    CAPTURE(name(one.path), one.reason);
    picked += one.picked ? 1 : 0;
    CHECK(one.picked == (one.path == made.picked));
    CHECK(one.seconds > 0.0);
    CHECK(one.reason.ends_with("."));
    CHECK_THAT(made.to_string(), ContainsSubstring(one.reason));
    CHECK_THAT(made.to_string(), ContainsSubstring(std::string(name(one.path))));
  }
  CHECK(picked == 1);
  CHECK(made.candidates.front().picked);
}

}  // namespace

TEMPLATE_TEST_CASE("explain names the path that the profile gives", "[explain]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const exec_space exec;
  const ferry::tensor<float, TestType> table("weights", 1000, 32);
  const auto made = ferry::explain(verb::gather, table, 100);
  check_table(made);
  const auto candidates =
      ferry::detail::candidate_paths<exec_space, TestType, ferry::device_space>(verb::gather);
  CHECK(made.candidates.size() == static_cast<std::size_t>(candidates.size()));
  const auto facts =
      ferry::detail::facts_of<exec_space, ferry::device_space>(verb::gather, make_ref(table), 100);
  CHECK(made.picked == ferry::detail::choose_route(exec, facts, candidates));
  for (const auto& one : made.candidates) {
    CHECK(candidates.contains(one.path));
    const double seconds = ferry::detail::predict(ferry::current_profile(exec), facts, one.path).seconds;
    CHECK(one.seconds == seconds);
    CHECK(one.gb_per_s == 100 * 32 * 4 / seconds * 1e-9);
  }
  CHECK_THAT(made.call, ContainsSubstring("'weights' [1000 x 32] in " + std::string(TestType::name)));
  CHECK(made.profile == ferry::profile_origin(exec));
  CHECK_THAT(made.to_string(), ContainsSubstring(made.profile));
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
  const auto made = ferry::explain<ferry::pinned_space>(verb::step, table, 0, host, {.planned = true});
  check_table(made);
  CHECK(made.picked == path_kind::direct);
  CHECK_THAT(made.call, ContainsSubstring("batch in pinned_space, with a plan"));
  CHECK_THAT(made.candidates.front().reason, ContainsSubstring("only way"));
  CHECK_THROWS_AS(static_cast<void>(ferry::explain(verb::gather, table, -1)), ferry::invalid_argument);
}

TEST_CASE("reasons name what limits a path", "[explain]") {
  const path_set all{path_kind::direct, path_kind::ordered, path_kind::staged, path_kind::cooperative};
  const ferry::machine_profile profile;
  const auto of = [&](std::string_view space, std::int64_t gib, std::int64_t row_bytes, std::int64_t n) {
    auto made = ferry::detail::explain_choice(
        profile, move_facts{verb::gather, space, "device_space", gib << 30, row_bytes, n}, all);
    check_table(made);
    return made;
  };
  const auto reason = [](const ferry::explanation& made, path_kind by) {
    for (const auto& one : made.candidates)
      if (one.path == by) return one.reason;
    return std::string();
  };
  const auto large = of("pinned_space", 16, 128, 1 << 20);
  CHECK(large.picked == path_kind::cooperative);
  CHECK_THAT(reason(large, path_kind::direct),
             ContainsSubstring("small pages: 35 Mrow/s") && ContainsSubstring("0.7 GiB"));
  CHECK_THAT(reason(large, path_kind::ordered), ContainsSubstring("shared by sorted rows"));
  CHECK_THAT(reason(large, path_kind::staged),
             ContainsSubstring("host's threads") && ContainsSubstring("times the fastest"));
  const auto small = of("mapped_space", 1, 16, 1000);
  CHECK(small.picked == path_kind::direct);
  CHECK_THAT(reason(small, path_kind::direct), ContainsSubstring("us to start"));
  CHECK_THAT(reason(small, path_kind::ordered), ContainsSubstring("to sort the indices"));
  CHECK_THAT(reason(of("mapped_space", 16, 16, 1 << 20), path_kind::direct),
             ContainsSubstring("Mrow/s, however short"));
  CHECK_THAT(reason(of("mapped_space", 16, 4096, 1 << 18), path_kind::direct),
             ContainsSubstring("link's bytes"));
  CHECK_THAT(reason(of("device_space", 16, 512, 1 << 20), path_kind::direct),
             ContainsSubstring("device's memory"));
}

}  // namespace ferry_test::explain_test
