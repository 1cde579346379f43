#include <ferry/ferry.hpp>

#include "support/arrays.hpp"
#include "support/folder.hpp"
#include "support/profile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using ferry::detail::reading;
using ferry_test::environment_variable;
using ferry_test::exec_space;

namespace {

constexpr ferry::calibration_options brief{.max_seconds = 0.5, .max_bytes = std::size_t{1} << 24};

bool has(const ferry::machine_profile& profile, reading one) {
  return (profile.measured & bit_of(one)) != 0u;
}

}  // namespace

TEST_CASE("calibrate measures, installs and saves", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/new/profile.json";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  const exec_space exec;
  const auto made = ferry::calibrate(exec, brief);
  CHECK(has(made, reading::calls));
  CHECK(made.call_us > 0.0);
  for (const auto& field : ferry::detail::profile_fields) {
    CAPTURE(field.name);
    CHECK(is_usable(field, made.*field.member));
  }
  if constexpr (ferry::HostExecutionSpace<exec_space>) {
    CHECK(has(made, reading::host_read));
    CHECK(has(made, reading::host_write));
    CHECK_FALSE(has(made, reading::dma));
    CHECK(made.dma_to_device_gb_per_s == ferry::machine_profile{}.dma_to_device_gb_per_s);
  } else {
    CHECK(has(made, reading::device));
    CHECK(has(made, reading::dma));
  }
  CHECK(ferry::current_profile(exec) == made);
  CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("measured by this program, saved to " + path));
  // The next program reads it.
  ferry_test::profile_holder::forget();
  CHECK(ferry::current_profile(exec) == made);
  CHECK(ferry::profile_origin(exec) == "read from " + path);
}

TEST_CASE("calibrate without a file, without time", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string path = folder.path() + "/profile.json";
  const environment_variable named("FERRY_PROFILE", path.c_str());
  const exec_space exec;
  const auto begin = std::chrono::steady_clock::now();
  const auto made = ferry::calibrate(exec, {.max_seconds = 0.0, .max_bytes = 0, .save = false});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK(made == ferry::machine_profile{});
  CHECK(ferry::profile_origin(exec) == "measured by this program");
  CHECK(ferry_test::entries_of(folder.path()) == 0);
}

TEST_CASE("a profile that can't be saved is used all the same", "[calibrate]") {
  const ferry_test::fresh_profile around;
  const ferry_test::temporary_folder folder;
  const std::string file = folder.path() + "/file";
  ferry::detail::write_text(file, "no folder");
  const environment_variable named("FERRY_PROFILE", nullptr);
  const environment_variable cache("XDG_CACHE_HOME", file.c_str());
  const exec_space exec;
  auto made = ferry::calibrate(exec, brief);
  CHECK(ferry::current_profile(exec) == made);
  CHECK_THAT(ferry::profile_origin(exec), ContainsSubstring("not saved") && ContainsSubstring(file));
  // Where the user names the file, that is an error, after the same.
  named.set((file + "/profile.json").c_str());
  CHECK_THROWS_AS(ferry::calibrate(exec, brief), ferry::io_error);
  CHECK(ferry::current_profile(exec) != ferry::machine_profile{});
}

TEST_CASE("a scrambled list names no row twice", "[calibrate]") {
  for (const int bits : {1, 2, 3, 8, 15}) {
    const ferry::kernels::scrambled_row row{0x1234567ull * static_cast<std::uint64_t>(bits), bits};
    std::vector<int> seen(std::size_t{1} << bits);
    for (std::size_t p = 0; p < seen.size(); ++p) {
      const auto at = row(static_cast<std::int64_t>(p), 0);
      REQUIRE(at >= 0);
      REQUIRE(at < static_cast<std::int64_t>(seen.size()));
      ++seen[static_cast<std::size_t>(at)];
    }
    for (const int count : seen) REQUIRE(count == 1);
  }
}
