// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"
#include "support/profile.hpp"
#include "support/test.hpp"

#include <ferry/calibrate.hpp>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <ratio>

namespace ferry_test::calibrate_test {

using Catch::Matchers::StartsWith;
using ferry::detail::reading;

constexpr ferry::calibration_options brief{.max_seconds = 0.5, .max_bytes = std::size_t{1} << 24};

/// A clock on which a tick passes whenever somebody looks: every call of a verb takes one, however long it takes.
struct ticking_clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<ticking_clock>;

  static time_point now() {
    ++looks;
    return time_point(duration(looks * tick_ns));
  }
  static void pause(std::chrono::milliseconds time) {
    looks += std::chrono::duration_cast<duration>(time).count() / tick_ns;
  }
  static inline std::int64_t looks = 0, tick_ns = 1;
};

/// All readings with calls that take `tick_us` each.
ferry::machine_profile calibrated(double tick_us, double max_seconds) {
  ticking_clock::looks = 0;
  ticking_clock::tick_ns = static_cast<std::int64_t>(tick_us * 1e3);
  const exec_space exec;
  return ferry::detail::calibration<exec_space, ticking_clock>(exec, ferry::default_profile(exec),
                                                               max_seconds, std::size_t{1} << 24)
      .run();
}

void check_usable(const ferry::machine_profile& profile) {
  for (const auto& field : ferry::detail::profile_fields) {
    CAPTURE(field.name);
    CHECK(is_usable(field, profile.*field.member));
  }
}

bool has(const ferry::machine_profile& profile, reading group) {
  return (profile.measured & bit_of(group)) != 0u;
}

TEST_CASE("readings are what the clock says", "[calibrate]") {
  constexpr double tick_us = 50;
  const auto profile = calibrated(tick_us, 1e6);
  check_usable(profile);
  REQUIRE(has(profile, reading::calls));
  CHECK(std::abs(profile.call_us - tick_us) < 1e-6 * tick_us);
  if constexpr (ferry::HostExecutionSpace<exec_space>) {
    CHECK(profile.measured ==
          (bit_of(reading::calls) | bit_of(reading::host_read) | bit_of(reading::host_write)));
    CHECK(profile.dma_to_device_gb_per_s == ferry::machine_profile{}.dma_to_device_gb_per_s);
    // Rows of 16 and of 512 bytes took as long as one call: nothing is left for the rows, and no rate limits them.
    CHECK(profile.host_read_row_ns < 0.1);
    CHECK(profile.host_write_row_ns < 0.1);
  } else {
    CHECK(has(profile, reading::device));
    CHECK(has(profile, reading::dma));
    CHECK(has(profile, reading::link));
    CHECK(profile.device_row_ns == 0.0);
  }
  // Of nothing else: the same clock gives the same numbers.
  CHECK(calibrated(tick_us, 1e6) == profile);
}

TEST_CASE("no reading is begun after the time", "[calibrate]") {
  CHECK(calibrated(50, 0.0) == ferry::default_profile(exec_space{}));
  // A clock of which one look takes longer than all the time.
  CHECK(calibrated(3e6, 1.0).measured == 0u);
}

TEST_CASE("calibrate measures, installs and saves", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/new/profile.txt";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  const exec_space exec;
  // On a busy machine the time may suffice for no reading at all.
  const auto profile = ferry::calibrate(exec, brief);
  check_usable(profile);
  CHECK(ferry::current_profile(exec) == profile);
  CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring(", saved to " + path));
  // The next program reads it.
  ferry_test::profile_holder::forget();
  CHECK(ferry::current_profile(exec) == profile);
  CHECK(ferry::profile_origin(exec) == "read from " + path);
}

TEST_CASE("calibrate without a file, without time", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/profile.txt";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  const exec_space exec;
  const auto profile = ferry::calibrate(exec, {.max_seconds = 0.0, .max_bytes = 0, .save = false});
  CHECK(profile == ferry::default_profile(exec));
  CHECK_THAT(ferry::profile_origin(exec), StartsWith("defaults (") && ContainsSubstring("no time or memory"));
  CHECK(ferry_test::entries_of(folder.path()) == 0);
}

TEST_CASE("calibrate without limits, and with ones that are none", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const exec_space exec;
  for (const double endless : {1e11, std::numeric_limits<double>::infinity()}) {
    CAPTURE(endless);
    CHECK(ferry::calibrate(exec, {.max_seconds = endless, .max_bytes = std::size_t{1} << 22, .save = false})
              .measured != 0u);
  }
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_MATCHES(ferry::calibrate(exec, {.max_seconds = wrong, .save = false}),
                         ferry::invalid_argument, MessageMatches(ContainsSubstring("max_seconds is ")));
  // No memory for a single batch.
  ferry::trim<ferry::pageable_space>();
  ferry::set_memory_budget<ferry::pageable_space>(ferry::memory_statistics<ferry::pageable_space>().current +
                                                  1000);
  const auto profile = ferry::calibrate(exec, {.max_seconds = 1.0, .save = false});
  ferry::set_memory_budget<ferry::pageable_space>(0);
  if constexpr (ferry::HostExecutionSpace<exec_space>) CHECK(profile.measured == 0u);
}

TEST_CASE("calibrate replaces nothing but regular files", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const exec_space exec;
  const std::string path = folder.path() + "/special";
  const std::string target = folder.path() + "/target";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  struct stat before {};
  const auto refused = [&](const char* kind) {
    CAPTURE(kind);
    REQUIRE(::lstat(path.c_str(), &before) == 0);
    const int entries = ferry_test::entries_of(folder.path());
    // Before anything is measured: no reading changes the numbers in use.
    ferry::machine_profile marked;
    marked.call_us = 3.25;
    ferry::use_profile(exec, marked);
    CHECK_THROWS_MATCHES(ferry::calibrate(exec, brief), ferry::io_error,
                         MessageMatches(ContainsSubstring(path) && ContainsSubstring(kind)));
    CHECK(ferry::current_profile(exec) == marked);
    CHECK_THROWS_AS(ferry::detail::write_text(path, "text"), ferry::io_error);
    struct stat after {};
    REQUIRE(::lstat(path.c_str(), &after) == 0);
    CHECK(after.st_mode == before.st_mode);
    CHECK(after.st_ino == before.st_ino);
    CHECK(after.st_rdev == before.st_rdev);
    CHECK(ferry_test::entries_of(folder.path()) == entries);
  };
  SECTION("a pipe") {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    refused("no ordinary file");
  }
  SECTION("a folder") {
    REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    refused("a folder");
  }
  SECTION("a symbolic link to a file, which keeps its content") {
    ferry::detail::write_text(target, "precious");
    REQUIRE(::symlink(target.c_str(), path.c_str()) == 0);
    refused("a symbolic link");
    std::string why;
    bool missing = false;
    CHECK(ferry::detail::read_text(target, why, missing) == "precious");
  }
  SECTION("a symbolic link to nothing, which stays nothing") {
    REQUIRE(::symlink(target.c_str(), path.c_str()) == 0);
    refused("a symbolic link");
    CHECK(::access(target.c_str(), F_OK) != 0);
  }
  SECTION("a device, where this process may make one") {
    // The numbers of /dev/null.
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) SKIP("no right to make a device");
    refused("no ordinary file");
  }
  SECTION("a link in the cache is passed over") {
    named.set(nullptr);
    const environment_variable cache("XDG_CACHE_HOME", folder.path().c_str());
    const std::string file = ferry::detail::profile_path(ferry::execution_backend<exec_space>::name);
    ferry::detail::write_text(target, "precious");
    REQUIRE(::mkdir((folder.path() + "/ferry").c_str(), 0700) == 0);
    REQUIRE(::symlink(target.c_str(), file.c_str()) == 0);
    ferry::calibrate(exec, brief);
    CHECK_THAT(ferry::profile_origin(exec),
               ContainsSubstring("not saved") && ContainsSubstring("a symbolic link"));
    REQUIRE(::lstat(file.c_str(), &before) == 0);
    CHECK(S_ISLNK(before.st_mode));
  }
}

TEST_CASE("a profile that can't be saved is used all the same", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string file = folder.path() + "/file";
  ferry::detail::write_text(file, "no folder");
  const environment_variable named("FERRY_PROFILE", nullptr);
  const environment_variable cache("XDG_CACHE_HOME", file.c_str());
  const exec_space exec;
  auto profile = ferry::calibrate(exec, brief);
  CHECK(ferry::current_profile(exec) == profile);
  CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("not saved") && ContainsSubstring(file));
  // A file that the user names must be written; the numbers are in use all the same.
  named.set((file + "/profile.txt").c_str());
  CHECK_THROWS_AS(ferry::calibrate(exec, brief), ferry::io_error);
  CHECK_THAT(ferry::profile_origin(exec), !ContainsSubstring("saved to"));
}

TEST_CASE("a scrambled list names no row twice", "[calibrate]") {
  for (const int bits : {1, 2, 3, 8, 15}) {
    const ferry::kernels::scrambled_row row{0x1234567ull * static_cast<std::uint64_t>(bits), bits};
    std::vector<int> seen(std::size_t{1} << bits);
    for (std::size_t p = 0; p < seen.size(); ++p) {
      const auto target_row = row(static_cast<std::int64_t>(p), 0);
      REQUIRE(target_row >= 0);
      REQUIRE(target_row < static_cast<std::int64_t>(seen.size()));
      ++seen[static_cast<std::size_t>(target_row)];
    }
    for (const int count : seen) REQUIRE(count == 1);
  }
}

}  // namespace ferry_test::calibrate_test
