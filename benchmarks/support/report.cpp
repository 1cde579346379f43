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

json to_json(const facts& setting) {
  json document = json::object();
  for (const auto& [key, value] : setting)
    std::visit([&document, &key = key](const auto& content) { document[key] = content; }, value);
  return document;
}

json to_json(const timing& times) {
  return {{"median", times.median()},
          {"min", times.least()},
          {"max", times.most()},
          {"repeats", times.count()},
          {"readings", times.all()}};
}

json to_json(const std::vector<std::pair<std::string, std::string>>& notes) {
  json object = json::array();
  for (const auto& [name, why] : notes) object.push_back({{"name", name}, {"why", why}});
  return object;
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

void report::describe(const std::string& section, const facts& setting) {
  auto& known = sections_[section];
  known.insert(known.end(), setting.begin(), setting.end());
}

void report::add(const figure& result) {
  if (figures_.empty())
    std::printf("%-50s %11s %11s %11s %11s %9s  %s\n", "figure", "ms", "min", "max", "wall ms", "GB/s", "of");
  figures_.push_back(result);
  const timing& device = result.time.device;
  std::printf("%-50s %11.4f %11.4f %11.4f %11.4f", result.name.c_str(), device.median(), device.least(),
              device.most(), result.time.wall.median());
  if (result.bytes > 0)
    std::printf(" %9.2f", result.gb_per_s());
  else
    std::printf(" %9s", "");
  const figure* top = result.ceiling.empty() ? nullptr : find(result.ceiling);
  if (top != nullptr && top->gb_per_s() > 0) {
    const double value = result.gb_per_s() / top->gb_per_s();
    std::printf("  %.3f of %s", value, result.ceiling.c_str());
    ratios_.push_back({result.name, result.ceiling, value});
  }
  for (const auto& [title, times] : result.counted)
    if (const auto* value = std::get_if<double>(&times)) std::printf("  %g %s", *value, title.c_str());
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
  for (const auto& [section, setting] : sections_) whole[section] = to_json(setting);
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
  for (const figure& result : figures_) {
    json object = {{"name", result.name}, {"setting", to_json(result.setting)}};
    object["ms"] = to_json(result.time.device);
    object["wall_ms"] = to_json(result.time.wall);
    if (result.bytes > 0) {
      object["bytes"] = result.bytes;
      object["counts"] = result.counts;
      object["gb_per_s"] = result.gb_per_s();
    }
    if (!result.counted.empty()) object["counted"] = to_json(result.counted);
    if (!result.ceiling.empty()) object["ceiling"] = result.ceiling;
    object["verified"] = result.verified;
    whole["figures"].push_back(std::move(object));
  }
  whole["ratios"] = json::array();
  for (const ratio_of& ratio : ratios_)
    whole["ratios"].push_back(
        {{"numerator", ratio.numerator}, {"denominator", ratio.denominator}, {"value", ratio.value}});
  whole["failures"] = to_json(failures_);
  whole["skipped"] = to_json(skipped_);
  std::ofstream file(chosen.json);
  file << whole.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("can't write " + chosen.json);
}

}  // namespace ferry_bench
