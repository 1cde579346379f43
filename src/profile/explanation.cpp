// SPDX-License-Identifier: Apache-2.0
#include <ferry/profile/explanation.hpp>

namespace ferry {

std::string explanation::to_string() const {
  std::string text = call + "\n";
  for (const auto& one : candidates) {
    char line[80];
    std::snprintf(line, sizeof line, "%c %-11s %10.3f ms %9.2f GB/s  ", one.picked ? '*' : ' ',
                  std::string(name(one.path)).c_str(), one.seconds * 1e3, one.gb_per_s);
    text.append(line).append(one.reason).append("\n");
  }
  return text + "profile: " + profile + "\n";
}

namespace detail {

std::string in_words(double value, int digits, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, unit);
  return text;
}

std::string limit_in_words(const machine_profile& profile, const move_facts& facts, path_kind by,
                           const prediction& made) {
  const double moving = std::max(made.seconds - made.start_seconds, 1e-12);
  const auto rows = static_cast<double>(facts.positions);
  const std::string rate = in_words(rows / moving * 1e-6, 0, "Mrow/s");
  const std::string bytes = in_words(rows * static_cast<double>(facts.row_bytes) / moving * 1e-9, 1, "GB/s");
  switch (made.limit) {
    case bottleneck::start:
      return in_words(made.start_seconds * 1e6, 0, "us") + " to start" +
             (by == path_kind::ordered || by == path_kind::cooperative
                  ? (facts.planned ? "" : " and to sort the indices")
                  : "") +
             " are most of it";
    case bottleneck::device_memory:
      return "the device's memory, " + bytes;
    case bottleneck::link_rows:
      return "the link takes " + rate + ", however short the rows are";
    case bottleneck::link_bytes:
      return "the link's bytes, " + bytes;
    case bottleneck::translation:
      if (by == path_kind::ordered) return "the device looks up small pages, shared by sorted rows: " + rate;
      return "the device looks up small pages: " + rate + " where a table is larger than " +
             in_words(profile.pinned_reach_gib, 1, "GiB");
    default:
      if (by == path_kind::cooperative) return "the device and the host's threads together, " + rate;
      return "the host's threads, " + rate;
  }
}

explanation explain_choice(const machine_profile& profile, const move_facts& facts, path_set candidates) {
  explanation made;
  made.picked = choose_route(profile, facts, candidates);
  const prediction best = predict(profile, facts, made.picked);
  for (const path_kind by : every_path_kind) {
    if (!candidates.contains(by)) continue;
    const prediction one = predict(profile, facts, by);
    explanation::candidate line;
    line.path = by;
    line.seconds = one.seconds;
    line.gb_per_s = static_cast<double>(facts.positions) * static_cast<double>(facts.row_bytes) /
                    std::max(one.seconds, 1e-12) * 1e-9;
    line.picked = by == made.picked;
    line.reason = limit_in_words(profile, facts, by, one);
    if (line.picked)
      line.reason += candidates.size() == 1 ? "; the only way between these spaces" : "; the fastest";
    else if (one.seconds < best.seconds)
      line.reason += "; not clearly faster, and keeps the calling thread busy";
    else
      line.reason += "; " + in_words(one.seconds / std::max(best.seconds, 1e-12), 2, "times the fastest");
    line.reason += ".";
    made.candidates.push_back(std::move(line));
  }
  // The picked one first, then the fastest.
  for (std::size_t next = 1; next < made.candidates.size(); ++next)
    for (std::size_t at = next; at != 0; --at) {
      auto& after = made.candidates[at];
      auto& before = made.candidates[at - 1];
      if (after.picked != before.picked ? !after.picked : after.seconds >= before.seconds) break;
      std::swap(before, after);
    }
  return made;
}

}  // namespace detail

}  // namespace ferry
