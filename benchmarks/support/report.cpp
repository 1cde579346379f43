// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>

namespace ferry_bench {

namespace {

using json = nlohmann::ordered_json;

json to_json(const facts& found) {
  json made = json::object();
  for (const auto& [key, value] : found)
    std::visit([&made, &key = key](const auto& held) { made[key] = held; }, value);
  return made;
}

json to_json(const timing& times) {
  return {{"median", times.median()},
          {"min", times.least()},
          {"max", times.most()},
          {"repeats", times.count()},
          {"readings", times.all()}};
}

json to_json(const std::vector<std::pair<std::string, std::string>>& notes) {
  json made = json::array();
  for (const auto& [name, why] : notes) made.push_back({{"name", name}, {"why", why}});
  return made;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

double figure::gb_per_s() const {
  const double ms = time.device.median();
  return ms > 0 ? bytes / ms / 1e6 : 0.0;
}

void report::describe(const std::string& section, const facts& found) {
  auto& known = sections_[section];
  known.insert(known.end(), found.begin(), found.end());
}

void report::add(const figure& made) {
  if (figures_.empty())
    std::printf("%-50s %11s %11s %11s %11s %9s  %s\n", "figure", "ms", "min", "max", "wall ms", "GB/s", "of");
  figures_.push_back(made);
  const timing& device = made.time.device;
  std::printf("%-50s %11.4f %11.4f %11.4f %11.4f", made.name.c_str(), device.median(), device.least(),
              device.most(), made.time.wall.median());
  if (made.bytes > 0)
    std::printf(" %9.2f", made.gb_per_s());
  else
    std::printf(" %9s", "");
  const figure* top = made.ceiling.empty() ? nullptr : find(made.ceiling);
  if (top != nullptr && top->gb_per_s() > 0) {
    const double value = made.gb_per_s() / top->gb_per_s();
    std::printf("  %.3f of %s", value, made.ceiling.c_str());
    ratios_.push_back({made.name, made.ceiling, value});
  }
  for (const auto& [what, times] : made.counted)
    if (const auto* value = std::get_if<double>(&times)) std::printf("  %g %s", *value, what.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void report::ratio(const std::string& numerator, const std::string& denominator, double value) {
  ratios_.push_back({numerator, denominator, value});
  std::printf("  %s / %s = %.3f\n", numerator.c_str(), denominator.c_str(), value);
  std::fflush(stdout);
}

void report::failed(const std::string& name, const std::string& why) {
  failures_.emplace_back(name, why);
  std::printf("%-50s FAILED: %s\n", name.c_str(), why.c_str());
  std::fflush(stdout);
}

void report::skipped(const std::string& name, const std::string& why) {
  skipped_.emplace_back(name, why);
  std::printf("%-50s skipped: %s\n", name.c_str(), why.c_str());
}

const figure* report::find(const std::string& name) const {
  for (const figure& known : figures_)
    if (known.name == name) return &known;
  return nullptr;
}

void report::print_end() const {
  if (failures_.empty()) return;
  std::printf("%zu failures:\n", failures_.size());
  for (const auto& [name, why] : failures_) std::printf("  %s: %s\n", name.c_str(), why.c_str());
}

void report::write(const options& chosen, double seconds) const {
  json whole;
  whole["date"] = now_text();
  whole["seconds"] = seconds;
  for (const auto& [section, found] : sections_) whole[section] = to_json(found);
  whole["options"] = {{"quick", chosen.quick},
                      {"repeats", chosen.repeats},
                      {"warm_up", chosen.warm_up},
                      {"index_sets", chosen.index_sets},
                      {"n", chosen.n},
                      {"device_n", chosen.device_n},
                      {"step_rows", chosen.step_rows},
                      {"step_n", chosen.step_n},
                      {"width", chosen.width},
                      {"rows_bytes", chosen.rows_bytes},
                      {"ceiling_gib", chosen.ceiling_gib}};
  whole["figures"] = json::array();
  for (const figure& one : figures_) {
    json made = {{"name", one.name}, {"setting", to_json(one.setting)}};
    made["ms"] = to_json(one.time.device);
    made["wall_ms"] = to_json(one.time.wall);
    if (one.bytes > 0) {
      made["bytes"] = one.bytes;
      made["counts"] = one.counts;
      made["gb_per_s"] = one.gb_per_s();
    }
    if (!one.counted.empty()) made["counted"] = to_json(one.counted);
    if (!one.ceiling.empty()) made["ceiling"] = one.ceiling;
    made["verified"] = one.verified;
    whole["figures"].push_back(std::move(made));
  }
  whole["ratios"] = json::array();
  for (const ratio_of& one : ratios_)
    whole["ratios"].push_back(
        {{"numerator", one.numerator}, {"denominator", one.denominator}, {"value", one.value}});
  whole["failures"] = to_json(failures_);
  whole["skipped"] = to_json(skipped_);
  std::ofstream file(chosen.json);
  file << whole.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("can't write " + chosen.json);
}

}  // namespace ferry_bench
