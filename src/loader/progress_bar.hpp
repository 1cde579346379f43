// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/loader/epoch_times.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ferry::detail {

/// "epoch 3 [#######........] 120/256  48.2 batches/s  12 % waiting"
inline std::string progress_line(const epoch_times& times, std::int64_t served, std::int64_t batches) {
  constexpr std::int64_t cells = 32;
  const std::int64_t full = batches > 0 ? served * cells / batches : cells;
  std::string bar(static_cast<std::size_t>(std::clamp<std::int64_t>(full, 0, cells)), '#');
  bar.resize(cells, '.');
  char line[160];
  std::snprintf(line, sizeof line, "epoch %lld [%s] %lld/%lld  %.1f batches/s  %.0f %% waiting",
                static_cast<long long>(times.epoch), bar.c_str(), static_cast<long long>(served),
                static_cast<long long>(batches),
                times.wall > 0.0 ? static_cast<double>(times.batches) / times.wall : 0.0,
                times.wall > 0.0 ? 100.0 * times.wait / times.wall : 0.0);
  return line;
}

/// Draws progress_line on stderr, ten times a second at most, if that is a terminal.
class progress_bar {
 public:
  explicit progress_bar(bool shown) : shown_(shown && ::isatty(STDERR_FILENO) != 0) {}

  /// `served`: batches of the epoch, also those of the run before a restart.
  void show(const epoch_times& times, std::int64_t served, std::int64_t batches) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (served < batches && now < due_) return;
    due_ = now + std::chrono::milliseconds(100);
    std::fprintf(stderr, "\r%s\033[K", progress_line(times, served, batches).c_str());
    open_ = true;
  }
  /// Ends the line of an epoch.
  void end() {
    if (open_) std::fputc('\n', stderr);
    open_ = false;
  }

 private:
  bool shown_;
  bool open_ = false;
  std::chrono::steady_clock::time_point due_{};
};

}  // namespace ferry::detail
