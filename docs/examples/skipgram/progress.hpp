// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace skipgram {

/// One line on a terminal that rewrites itself, a few times a second; nothing where the output is no
/// terminal.
class progress_bar {
 public:
  explicit progress_bar(std::string title, bool speaks = true);

  void show(double share, std::int64_t pairs, double loss);
  void clear();

 private:
  using clock = std::chrono::steady_clock;

  std::string title_;
  bool on_terminal_;
  clock::time_point started_;
  clock::time_point last_;
};

}  // namespace skipgram
