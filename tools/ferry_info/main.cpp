// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "report.hpp"

// survey.hpp of the backend that Kokkos was built with; CMake names it.
#include FERRY_INFO_SURVEY

#include <ferry/version.hpp>

#include <Kokkos_Core.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace {

struct wishes {
  bool json = false;
  bool no_rates = false;
  bool calibrate = false;
  bool strict = false;
  int device = 0;
  std::int64_t mib = 256;
};

std::string version_text() {
  return std::to_string(FERRY_VERSION_MAJOR) + "." + std::to_string(FERRY_VERSION_MINOR) + "." +
         std::to_string(FERRY_VERSION_PATCH);
}

/// A block leaves most of the free memory to others.
std::int64_t block_bytes(const ferry_info::report& of, std::int64_t wanted) {
  std::int64_t bytes = wanted;
  const auto stay_below = [&](std::int64_t room) {
    if (room >= 0) bytes = std::min(bytes, room / 8);
  };
  stay_below(of.machine.available);
  if (of.machine.group_limit >= 0 && of.machine.group_used >= 0)
    stay_below(of.machine.group_limit - of.machine.group_used);
  for (const auto& each : of.survey.devices)
    if (each.number == of.device && each.free_bytes != 0)
      stay_below(static_cast<std::int64_t>(each.free_bytes));
  return bytes;
}

void look_through_kokkos(ferry_info::report& made, const wishes& asked) {
  Kokkos::InitializationSettings settings;
  if (!made.device_is_host()) settings.set_device_id(asked.device);
  const Kokkos::ScopeGuard guard(settings);
  if (asked.calibrate) {
    std::fprintf(stderr, "ferry-info: measuring for path::automatic ...\n");
    ferry_info::calibrate(4.0);
  }
  ferry_info::describe_program(made);
  constexpr std::int64_t least = std::int64_t{1} << 20;
  const std::int64_t bytes = block_bytes(made, asked.mib << 20);
  if (asked.no_rates)
    made.rates.skipped = "--no-rates";
  else if (bytes < least)
    made.rates.skipped = "too little memory is free";
  else
    made.rates = ferry_info::measure(bytes);
}

int look(const wishes& asked) {
  ferry_info::report made;
  made.ferry = version_text();
  made.backend = FERRY_INFO_BACKEND;
  made.device = asked.device;
  made.survey = ferry::backend_survey::survey(asked.device);
  made.machine = ferry_info::look_at_machine();
  if (made.survey.failure.empty()) {
    look_through_kokkos(made, asked);
    // Under load the link has left the state in which it rests.
    made.survey = ferry::backend_survey::survey(asked.device);
  } else {
    made.rates.skipped = made.survey.failure;
  }
  made.checks = ferry_info::judge(made);
  std::fputs((asked.json ? ferry_info::as_json(made) : ferry_info::as_text(made)).c_str(), stdout);

  const auto worst =
      std::max_element(made.checks.begin(), made.checks.end(), [](const auto& a, const auto& b) {
        return a.result < b.result;
      })->result;
  if (worst == ferry_info::verdict::failure) return 1;
  return asked.strict && worst == ferry_info::verdict::warning ? 2 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  wishes asked;
  CLI::App app(
      "Describes this machine as ferry sees it, and says what to change where page-locking or mapping will be slow.",
      "ferry-info");
  app.set_version_flag("--version", "ferry-info " + version_text());
  app.add_flag("--json", asked.json, "Print JSON");
  app.add_flag("--no-rates", asked.no_rates, "Allocate and copy nothing");
  app.add_flag("--calibrate", asked.calibrate,
               "Measure the machine for path::automatic first, and save the profile");
  app.add_flag("--strict", asked.strict, "Exit with 2 where a check warns");
  app.add_option("--device", asked.device, "Number of the device to use")->check(CLI::NonNegativeNumber);
  app.add_option("--mib", asked.mib,
                 "Size of the blocks that are measured, at most an eighth of the free memory")
      ->check(CLI::Range(1, 65536));
  app.footer("Exits with 1 where ferry can't work here.");
  CLI11_PARSE(app, argc, argv);
  try {
    return look(asked);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ferry-info: %s\n", failure.what());
    return 1;
  }
}
