// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.hpp"
#include "options.hpp"
#include "report.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ferry_bench {

/// One run: what was asked for, where it runs, what came out.
class session {
 public:
  explicit session(const options& chosen) : options_(chosen) {}

  [[nodiscard]] const exec_space& exec() const { return exec_; }
  [[nodiscard]] const options& chosen() const { return options_; }
  [[nodiscard]] report& results() { return report_; }

  /// "ceiling.h2d", "ceiling.d2h", "ceiling.link_both_ways", "ceiling.device_copy" or "ceiling.triad": measured when it
  /// is first asked for, once a run.
  std::string ceiling(const std::string& name);

  /// Size of the tables: as asked for, else the default, less where memory is short.
  [[nodiscard]] std::size_t host_table_bytes() const;
  [[nodiscard]] std::size_t device_table_bytes() const;

  /// Fewer calls from here on, for a program of many figures.
  void limit_calls(int repeats, int warm_up);

  /// A number that no other call of this run gets.
  std::uint64_t fresh_seed() { return ++seed_; }

 private:
  exec_space exec_;
  options options_;
  report report_;
  std::uint64_t seed_ = 0;
};

/// A case registers itself where it is linked in: `const registration mine{"gather.mapped", run};` at
/// namespace scope.
struct registration {
  using function = void (*)(session&);
  registration(std::string name, function run);
};

struct benchmark_case {
  std::string name;
  registration::function run;
};

/// All cases of this program, by name.
std::vector<benchmark_case> registered_cases();

}  // namespace ferry_bench
