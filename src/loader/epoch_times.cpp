// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/epoch_times.hpp>

#include <cstdio>

namespace ferry {

std::string_view epoch_times::bottleneck() const {
  if (step >= load && step >= transfer) return "step";
  return load >= transfer ? "load" : "transfer";
}

std::string to_string(std::span<const epoch_times> epochs) {
  std::string text =
      " epoch  batches     samples   load s  transfer s   step s   wait s   wall s  bottleneck\n";
  for (const epoch_times& epoch : epochs) {
    char line[192];
    std::snprintf(line, sizeof line, "%6lld %8lld %11lld %8.3f %11.3f %8.3f %8.3f %8.3f  %s\n",
                  static_cast<long long>(epoch.epoch), static_cast<long long>(epoch.batches),
                  static_cast<long long>(epoch.samples), epoch.load, epoch.transfer, epoch.step, epoch.wait,
                  epoch.wall, epoch.bottleneck().data());
    text += line;
  }
  return text;
}

}  // namespace ferry
