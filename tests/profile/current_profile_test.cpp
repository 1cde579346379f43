// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/profile.hpp"
#include "support/test.hpp"

namespace ferry_test::current_profile_test {

using Catch::Matchers::StartsWith;
using ferry::machine_profile;

machine_profile special() {
  machine_profile profile;
  profile.call_us = 12.25;
  profile.measured = 1;
  return profile;
}

std::string text_of(const machine_profile& profile, const char* driver_ends_with = "") {
  auto identity = ferry::detail::identity_of(exec_space{});
  identity.driver += driver_ends_with;
  return ferry::detail::to_text(profile, identity);
}

TEST_CASE("a backend names what it runs on", "[profile]") {
  const auto id = ferry::detail::identity_of(exec_space{});
  CHECK_FALSE(id.device.empty());
  CHECK_FALSE(id.driver.empty());
  CHECK(std::stoi(id.threads) >= 1);
  CHECK_THAT(id.ferry, ContainsSubstring("."));
}

TEST_CASE("the file of this machine is used", "[profile]") {
  const ferry_test::fresh_profile around;
  const temporary_folder folder;
  const exec_space exec;
  const std::string backend(ferry::execution_backend<exec_space>::name);
  SECTION("named by FERRY_PROFILE") {
    const std::string path = folder.path() + "/own.txt";
    const environment_variable named("FERRY_PROFILE", path.c_str());
    ferry::detail::write_text(path, text_of(special()));
    CHECK(ferry::current_profile(exec) == special());
    CHECK(ferry::profile_origin(exec) == "read from " + path);
    // Once: later changes of the file are not seen.
    ferry::detail::write_text(path, text_of(machine_profile{}));
    CHECK(ferry::current_profile(exec) == special());
  }
  SECTION("in the cache") {
    const environment_variable named("FERRY_PROFILE", nullptr);
    const environment_variable cache("XDG_CACHE_HOME", folder.path().c_str());
    const std::string path = folder.path() + "/ferry/profile-" + backend + ".txt";
    CHECK(ferry::detail::profile_path(backend) == path);
    ferry::detail::write_text(path, text_of(special()));
    CHECK(ferry::current_profile(exec) == special());
    CHECK(ferry::profile_origin(exec) == "read from " + path);
  }
  SECTION("in the home folder's cache") {
    const environment_variable named("FERRY_PROFILE", "");
    const environment_variable cache("XDG_CACHE_HOME", "relative/is/ignored");
    const environment_variable home("HOME", folder.path().c_str());
    CHECK(ferry::detail::profile_path(backend) ==
          folder.path() + "/.cache/ferry/profile-" + backend + ".txt");
  }
}

TEST_CASE("without a file there are defaults, and a reason", "[profile]") {
  const ferry_test::fresh_profile around;
  const temporary_folder folder;
  const exec_space exec;
  const environment_variable named("FERRY_PROFILE", nullptr);
  const environment_variable cache("XDG_CACHE_HOME", folder.path().c_str());
  const environment_variable home("HOME", nullptr);
  const std::string path = ferry::detail::profile_path(ferry::execution_backend<exec_space>::name);
  SECTION("none there") {
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
    CHECK_THAT(ferry::profile_origin(exec),
               StartsWith("defaults (") && ContainsSubstring("not of this machine): there is no " + path));
  }
  SECTION("no place for one") {
    cache.set(nullptr);
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
    CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("HOME"));
  }
  SECTION("of another driver") {
    ferry::detail::write_text(path, text_of(special(), ".1"));
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
    CHECK_THAT(ferry::profile_origin(exec),
               StartsWith("defaults (") && ContainsSubstring("): " + path + " is of driver"));
  }
  SECTION("damaged") {
    // A device's name decides where a line ends.
    std::string part = text_of(special()).substr(0, 200);
    if (part.back() == '\n') part.pop_back();
    ferry::detail::write_text(path, part);
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
    CHECK_THAT(ferry::profile_origin(exec), StartsWith("defaults (") && ContainsSubstring("): " + path));
    CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("cut off"));
  }
}

TEST_CASE("a file that the user names must be a profile, if it exists", "[profile]") {
  const ferry_test::fresh_profile around;
  const temporary_folder folder;
  const exec_space exec;
  const std::string path = folder.path() + "/own.txt";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  SECTION("to be written yet") {
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
    CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("calibrate would write"));
  }
  SECTION("of another machine") {
    ferry::detail::write_text(path, text_of(special(), ".1"));
    CHECK(ferry::current_profile(exec) == ferry::default_profile(exec));
  }
  SECTION("damaged: every use says so") {
    ferry::detail::write_text(path, "device 3");
    for (int i = 0; i < 2; ++i)
      CHECK_THROWS_MATCHES(static_cast<void>(ferry::current_profile(exec)), ferry::io_error,
                           MessageMatches(ContainsSubstring(path)));
    // Repaired, or replaced: good again.
    ferry::use_profile(exec, special());
    CHECK(ferry::current_profile(exec) == special());
  }
  SECTION("a folder") {
    named.set(folder.path().c_str());
    CHECK_THROWS_AS(static_cast<void>(ferry::current_profile(exec)), ferry::io_error);
  }
}

TEST_CASE("the defaults of a host backend are a host's, by its threads", "[profile]") {
  using ferry::detail::host_defaults;
  const Kokkos::DefaultHostExecutionSpace host;
  const int threads = host.concurrency();
  const auto usual = ferry::default_profile(host);
  CHECK(usual == host_defaults(threads));
  CHECK(usual.measured == 0u);
  for (const auto& field : ferry::detail::profile_fields) CHECK(is_usable(field, usual.*field.member));
  // The rate of a gather of rows of 512 bytes: no thread moves more than 20 GB/s, so 40 Mrow/s.
  const auto mrows = [](int count) {
    ferry::detail::move_facts facts;
    facts.table_space = facts.batch_space = "pageable_space";
    facts.table_bytes = std::int64_t{1} << 30;
    facts.row_bytes = 512;
    facts.positions = 1 << 20;
    facts.on_host = true;
    const auto costs = ferry::detail::costs_of(host_defaults(count), facts);
    const double seconds = costs[ferry::path_kind::direct].seconds(facts.positions);
    return static_cast<double>(facts.positions) / seconds * 1e-6;
  };
  double before = 0.0;
  for (const int count : {1, 2, 3, 8, 16}) {
    CAPTURE(count);
    CHECK(mrows(count) < 40.0 * count);
    CHECK(mrows(count) > before);
    before = mrows(count);
  }
  CHECK(mrows(64) == mrows(16));
  CHECK(host_defaults(0) == host_defaults(1));
  // A device keeps its own.
  if constexpr (!ferry::HostExecutionSpace<exec_space>)
    CHECK(ferry::default_profile(exec_space{}) == machine_profile{});
}

TEST_CASE("a program can set its own profile", "[profile]") {
  const ferry_test::fresh_profile around;
  const exec_space exec;
  ferry::use_profile(exec, special());
  CHECK(ferry::current_profile(exec) == special());
  CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("use_profile"));
  machine_profile bad = special();
  bad.device_gb_per_s = 0;
  CHECK_THROWS_MATCHES(ferry::use_profile(exec, bad), ferry::invalid_argument,
                       MessageMatches(ContainsSubstring("device_gb_per_s")));
  CHECK(ferry::current_profile(exec) == special());
}

TEST_CASE("the choice uses the profile in use", "[profile]") {
  const ferry_test::fresh_profile around;
  const exec_space exec;
  const ferry::detail::move_facts facts{
      ferry::verb::gather, "pinned_space", "device_space", std::int64_t{1} << 34, 128, 1 << 20};
  const ferry::detail::path_set paths{ferry::path_kind::direct, ferry::path_kind::staged};
  machine_profile profile;
  profile.pinned_miss_ns = 1000;
  ferry::use_profile(exec, profile);
  CHECK(ferry::detail::choose_route(exec, facts, paths) == ferry::path_kind::staged);
  profile.pinned_reach_gib = 1000;
  ferry::use_profile(exec, profile);
  CHECK(ferry::detail::choose_route(exec, facts, paths) == ferry::path_kind::direct);
  CHECK(ferry::detail::choose_route(exec, facts, {ferry::path_kind::staged}) == ferry::path_kind::staged);
}

TEST_CASE("threads find one profile", "[profile]") {
  const ferry_test::fresh_profile around;
  const environment_variable named("FERRY_PROFILE", nullptr);
  const exec_space exec;
  std::vector<std::shared_ptr<const ferry::detail::known_profile>> profiles(8);
  {
    std::vector<std::jthread> workers;
    for (auto& holder : profiles)
      workers.emplace_back([&holder, &exec] { holder = ferry_test::profile_holder::get(exec); });
  }
  for (const auto& holder : profiles) CHECK(holder == profiles.front());
}

}  // namespace ferry_test::current_profile_test
