// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace skipgram {

progress_bar::progress_bar(std::string title, bool speaks)
    : title_(std::move(title)),
      on_terminal_(speaks && ::isatty(STDOUT_FILENO) == 1),
      started_(clock::now()) {}

void progress_bar::show(double share, std::int64_t pairs, double loss) {
  const auto now = clock::now();
  if (!on_terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  constexpr int width = 30;
  const int filled = std::clamp(static_cast<int>(share * width), 0, width);
  const double so_far = std::chrono::duration<double>(now - started_).count();
  const double left = share > 0.0 ? so_far * (1.0 - share) / share : 0.0;
  std::printf("\r\033[K%s [%s%s] %3.0f %%  loss %.4f  %.2f M pairs/s  %.0f s left", title_.c_str(),
              std::string(static_cast<std::size_t>(filled), '#').c_str(),
              std::string(static_cast<std::size_t>(width - filled), '.').c_str(), 100.0 * share, loss,
              static_cast<double>(pairs) / std::max(so_far, 1e-9) * 1e-6, left);
  std::fflush(stdout);
}

void progress_bar::clear() {
  if (!on_terminal_) return;
  std::printf("\r\033[K");
  std::fflush(stdout);
}

}  // namespace skipgram
