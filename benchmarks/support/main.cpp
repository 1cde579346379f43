// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"
#include "session.hpp"

#include <ferry/version.hpp>

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <regex>

namespace {

std::string kokkos_version() {
  return std::to_string(KOKKOS_VERSION / 10000) + "." + std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
         std::to_string(KOKKOS_VERSION % 100);
}

std::string ferry_version() {
  return std::to_string(FERRY_VERSION_MAJOR) + "." + std::to_string(FERRY_VERSION_MINOR) + "." +
         std::to_string(FERRY_VERSION_PATCH);
}

int run(const ferry_bench::options& chosen) {
  const auto begin = std::chrono::steady_clock::now();
  ferry_bench::session session(chosen);
  auto& results = session.results();
  results.describe("ferry", {{"version", ferry_version()}});
  results.describe("kokkos",
                   {{"version", kokkos_version()},
                    {"execution_space", std::string(ferry_bench::exec_space::name())},
                    {"host_execution_space", std::string(Kokkos::DefaultHostExecutionSpace::name())}});
  results.describe("machine", ferry_bench::describe_machine());
  results.describe("device", ferry_bench::describe_device());
  const std::regex pattern(chosen.filter);
  int ran = 0;
  for (const auto& entry : ferry_bench::registered_cases()) {
    if (!std::regex_search(entry.name, pattern)) continue;
    ++ran;
    try {
      entry.run(session);
    } catch (const std::exception& error) {
      results.failed(entry.name, error.what());
    }
  }
  if (ran == 0) results.failed("--filter " + chosen.filter, "no case has such a name; --list shows them");
  results.print_end();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%d cases, %.1f s\n", ran, seconds);
  if (!chosen.json.empty()) results.write(session.chosen(), seconds);
  return results.has_failures() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Kokkos::ScopeGuard guard(argc, argv);
    std::optional<int> exit_status;
    const auto chosen = ferry_bench::parse_options(argc, argv, exit_status);
    if (exit_status) return *exit_status;
    if (chosen.list) {
      for (const auto& entry : ferry_bench::registered_cases()) std::printf("%s\n", entry.name.c_str());
      return 0;
    }
    return run(chosen);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
