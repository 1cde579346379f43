// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "report.hpp"

// survey.hpp of the backend that Kokkos was built with; CMake names it.
#include FERRY_INFO_SURVEY

#include <ferry/version.hpp>

#include <Kokkos_Core.hpp>

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

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

constexpr const char* usage = R"(ferry-info [OPTION...]
Describes this machine as ferry sees it, and says what to change when page-locking or mapping will be slow.
  --json        print JSON
  --no-rates    allocate and copy nothing
  --calibrate   measure the machine for path::automatic first, and save the profile
  --strict      exit with 2 when a check warns
  --device N    number of the device to use
  --mib N       size of the blocks that are measured, at most an eighth of the free memory (1 to 65536)
  --version     print the version
  --help        print this text
Exits with 1 when ferry can't work here, with 64 when an option is wrong.
)";

/// The exit status when an option is wrong, as sysexits.h has it.
constexpr int wrong_usage = 64;

std::int64_t number_of(const char* option, const char* text, std::int64_t least, std::int64_t greatest) {
  std::int64_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, problem] = std::from_chars(text, end, number);
  if (problem == std::errc{} && rest == end && number >= least && number <= greatest) return number;
  throw std::invalid_argument(std::string("--") + option + " takes a number from " + std::to_string(least) +
                              " to " + std::to_string(greatest) + ", not '" + text + "'");
}

/// Ends the program after --help, --version and options that it does not know.
wishes parse(int argc, char** argv) {
  const option options[] = {{"json", no_argument, nullptr, 'j'},
                            {"no-rates", no_argument, nullptr, 'n'},
                            {"calibrate", no_argument, nullptr, 'c'},
                            {"strict", no_argument, nullptr, 's'},
                            {"device", required_argument, nullptr, 'd'},
                            {"mib", required_argument, nullptr, 'm'},
                            {"version", no_argument, nullptr, 'v'},
                            {"help", no_argument, nullptr, 'h'},
                            {}};
  wishes asked;
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (letter) {
      case 'j':
        asked.json = true;
        break;
      case 'n':
        asked.no_rates = true;
        break;
      case 'c':
        asked.calibrate = true;
        break;
      case 's':
        asked.strict = true;
        break;
      case 'd':
        asked.device = static_cast<int>(number_of("device", optarg, 0, std::numeric_limits<int>::max()));
        break;
      case 'm':
        asked.mib = number_of("mib", optarg, 1, 65536);
        break;
      case 'v':
        std::printf("ferry-info %s\n", version_text().c_str());
        std::exit(0);
      case 'h':
        std::fputs(usage, stdout);
        std::exit(0);
      default:
        std::exit(wrong_usage);  // getopt_long has named the option
    }
  }
  if (optind < argc) throw std::invalid_argument(std::string("'") + argv[optind] + "' is no option");
  return asked;
}

}  // namespace

int main(int argc, char** argv) {
  wishes asked;
  try {
    asked = parse(argc, argv);
  } catch (const std::invalid_argument& mistake) {
    std::fprintf(stderr, "ferry-info: %s\n", mistake.what());
    return wrong_usage;
  }
  try {
    return look(asked);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ferry-info: %s\n", failure.what());
    return 1;
  }
}
