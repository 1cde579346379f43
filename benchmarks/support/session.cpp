#include "session.hpp"

#include "../baseline/baseline.hpp"
#include "machine.hpp"
#include "measure.hpp"

#include "formulas.hpp"

#include <algorithm>
#include <stdexcept>

namespace ferry_bench {

namespace {

/// Memory is never timed on zeros.
struct fill_words {
  std::uint64_t* words;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { words[i] = mix(static_cast<std::uint64_t>(i)); }
};

std::vector<benchmark_case>& case_list() {
  static std::vector<benchmark_case> all;
  return all;
}

}  // namespace

registration::registration(std::string name, function run) { case_list().push_back({std::move(name), run}); }

std::vector<benchmark_case> registered_cases() {
  auto sorted = case_list();
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return sorted;
}

std::string session::ceiling(const std::string& name) {
  using kind = baseline::block::kind;
  if (const figure* known = report_.find(name)) return known->name;
  const bool on_device = name == "ceiling.device_copy";
  if (!on_device && name != "ceiling.h2d" && name != "ceiling.d2h")
    throw std::logic_error("no ceiling " + name);
  // On the device twice the size, so that the caches hold little of it.
  const auto words = static_cast<std::int64_t>(options_.ceiling_gib * (on_device ? 2.0 : 1.0) * 0x1p30 / 8);
  const auto bytes = static_cast<std::size_t>(words) * 8;
  const baseline::block from(name == "ceiling.h2d" ? kind::locked : kind::device, bytes);
  const baseline::block to(name == "ceiling.d2h" ? kind::locked : kind::device, bytes);
  for (const baseline::block* one : {&from, &to})
    Kokkos::parallel_for("ferry_bench::fill",
                         Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(exec_, 0, words),
                         fill_words{static_cast<std::uint64_t*>(one->data())});
  exec_.fence("ferry_bench::fill");
  figure made;
  made.name = name;
  made.setting = {{"gib", static_cast<double>(bytes) / 0x1p30}};
  made.bytes = static_cast<double>(bytes) * (on_device ? 2.0 : 1.0);
  made.counts = on_device ? "read + write" : "payload";
  made.verified = true;
  made.time = measure(*this, 1, [&](int) { baseline::copy(exec_, to.data(), from.data(), bytes); });
  report_.add(made);
  return name;
}

void session::limit_calls(int repeats, int warm_up) {
  options_.repeats = std::min(options_.repeats, repeats);
  options_.warm_up = std::min(options_.warm_up, warm_up);
}

std::size_t session::host_table_bytes() const {
  if (options_.table_gib) return static_cast<std::size_t>(*options_.table_gib * 0x1p30);
  return std::min(std::size_t{16} << 30, free_host_bytes() / 2);
}

std::size_t session::device_table_bytes() const {
  if (options_.device_table_gib) return static_cast<std::size_t>(*options_.device_table_gib * 0x1p30);
  return std::min(std::size_t{32} << 30, free_device_bytes() / 2);
}

}  // namespace ferry_bench
