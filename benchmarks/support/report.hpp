// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"
#include "timing.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ferry_bench {

using fact = std::pair<std::string, std::variant<std::string, std::int64_t, double>>;
using facts = std::vector<fact>;

/// One measured thing.
struct figure {
  std::string name;  ///< "gather.mapped.512B"
  facts setting;     ///< sizes, spaces, policies
  measured time;
  double bytes = 0;     ///< moved by one call; 0 where a rate says nothing
  std::string counts;   ///< what `bytes` counts: "payload", "read + write"
  facts counted;        ///< how often something happened in one call, empty where nothing was counted
  std::string ceiling;  ///< name of the figure that this one can't pass, empty where there is none
  bool verified = false;

  /// By the device's time, in 1e9 bytes a second.
  [[nodiscard]] double gb_per_s() const;
};

/// Everything that a run found out. Shows each figure as it comes.
class report {
 public:
  void describe(const std::string& section, const facts& setting);
  void add(const figure& result);
  /// value = figure / of, both from this run.
  void ratio(const std::string& numerator, const std::string& denominator, double value);
  void failed(const std::string& name, const std::string& why);
  void skipped(const std::string& name, const std::string& why);

  [[nodiscard]] const figure* find(const std::string& name) const;
  [[nodiscard]] bool has_failures() const { return !failures_.empty(); }

  void print_end() const;
  /// Throws std::runtime_error where the file can't be written.
  void write(const options& chosen, double seconds) const;

 private:
  struct ratio_of {
    std::string numerator, denominator;
    double value;
  };
  using notes = std::vector<std::pair<std::string, std::string>>;

  std::map<std::string, facts> sections_;
  std::vector<figure> figures_;
  std::vector<ratio_of> ratios_;
  notes failures_;
  notes skipped_;
};

}  // namespace ferry_bench
