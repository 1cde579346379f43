// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "report.hpp"

// The survey of the backend that Kokkos was built with; CMake names it.
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
std::int64_t block_bytes(const ferry_info::report& facts, std::int64_t most) {
  std::int64_t bytes = most;
  const auto stay_below = [&](std::int64_t room) {
    if (room >= 0) bytes = std::min(bytes, room / 8);
  };
  stay_below(facts.machine.available);
  if (facts.machine.group_limit >= 0 && facts.machine.group_used >= 0)
    stay_below(facts.machine.group_limit - facts.machine.group_used);
  for (const auto& device : facts.survey.devices)
    if (device.number == facts.device && device.free_bytes != 0)
      stay_below(static_cast<std::int64_t>(device.free_bytes));
  return bytes;
}

void look_through_kokkos(ferry_info::report& facts, const wishes& options) {
  Kokkos::InitializationSettings settings;
  if (!facts.device_is_host()) settings.set_device_id(options.device);
  const Kokkos::ScopeGuard guard(settings);
  if (options.calibrate) {
    std::fprintf(stderr, "ferry-info: measuring for path::automatic ...\n");
    ferry_info::calibrate(4.0);
  }
  ferry_info::describe_program(facts);
  constexpr std::int64_t least = std::int64_t{1} << 20;
  const std::int64_t bytes = block_bytes(facts, options.mib << 20);
  if (options.no_rates)
    facts.rates.skipped = "--no-rates";
  else if (bytes < least)
    facts.rates.skipped = "too little memory is free";
  else
    facts.rates = ferry_info::measure(bytes);
}

int look(const wishes& options) {
  ferry_info::report facts;
  facts.ferry = version_text();
  facts.backend = FERRY_INFO_BACKEND;
  facts.device = options.device;
  facts.survey = ferry::backend_survey::survey(options.device);
  facts.machine = ferry_info::look_at_machine();
  if (facts.survey.failure.empty()) {
    look_through_kokkos(facts, options);
    // Under load the link has left the state in which it rests.
    facts.survey = ferry::backend_survey::survey(options.device);
  } else {
    facts.rates.skipped = facts.survey.failure;
  }
  facts.checks = ferry_info::judge(facts);
  std::fputs((options.json ? ferry_info::as_json(facts) : ferry_info::as_text(facts)).c_str(), stdout);

  const auto worst =
      std::max_element(facts.checks.begin(), facts.checks.end(), [](const auto& a, const auto& b) {
        return a.result < b.result;
      })->result;
  if (worst == ferry_info::verdict::failure) return 1;
  return options.strict && worst == ferry_info::verdict::warning ? 2 : 0;
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
  const option names[] = {{"json", no_argument, nullptr, 'j'},
                          {"no-rates", no_argument, nullptr, 'n'},
                          {"calibrate", no_argument, nullptr, 'c'},
                          {"strict", no_argument, nullptr, 's'},
                          {"device", required_argument, nullptr, 'd'},
                          {"mib", required_argument, nullptr, 'm'},
                          {"version", no_argument, nullptr, 'v'},
                          {"help", no_argument, nullptr, 'h'},
                          {}};
  wishes options;
  for (int letter = 0; (letter = ::getopt_long(argc, argv, "h", names, nullptr)) != -1;) {
    switch (letter) {
      case 'j':
        options.json = true;
        break;
      case 'n':
        options.no_rates = true;
        break;
      case 'c':
        options.calibrate = true;
        break;
      case 's':
        options.strict = true;
        break;
      case 'd':
        options.device = static_cast<int>(number_of("device", optarg, 0, std::numeric_limits<int>::max()));
        break;
      case 'm':
        options.mib = number_of("mib", optarg, 1, 65536);
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
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  wishes options;
  try {
    options = parse(argc, argv);
  } catch (const std::invalid_argument& mistake) {
    std::fprintf(stderr, "ferry-info: %s\n", mistake.what());
    return wrong_usage;
  }
  try {
    return look(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ferry-info: %s\n", failure.what());
    return 1;
  }
}
