// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include "../baseline/baseline.hpp"
#include "machine.hpp"
#include "measure.hpp"

#include "formulas.hpp"

#include <algorithm>
#include <stdexcept>

namespace ferry_bench {

namespace {

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;

/// Memory is never timed on zeros. Read as doubles the words are in [1, 2).
struct fill_words {
  std::uint64_t* words;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    words[i] = mix(static_cast<std::uint64_t>(i)) >> 12 | std::uint64_t{0x3FF} << 52;
  }
};

/// STREAM's.
struct triad {
  double* a;
  const double* b;
  const double* c;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { a[i] = b[i] + 3.0 * c[i]; }
};

/// A block of `words` words, filled.
class filled_block {
 public:
  filled_block(const exec_space& exec, baseline::block::kind place, std::int64_t words)
      : block_(place, static_cast<std::size_t>(words) * 8) {
    Kokkos::parallel_for("ferry_bench::fill", range(exec, 0, words),
                         fill_words{static_cast<std::uint64_t*>(block_.data())});
    exec.fence("ferry_bench::fill");
  }
  [[nodiscard]] double* data() const { return static_cast<double*>(block_.data()); }

 private:
  baseline::block block_;
};

std::vector<benchmark_case>& case_list() {
  static std::vector<benchmark_case> cases;
  return cases;
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
  const auto words = static_cast<std::int64_t>(options_.ceiling_gib * 0x1p30 / 8);
  figure result;
  result.name = name;
  const auto settle = [&](double gib, double factor, const char* counts) {
    result.setting = {{"gib", gib}};
    result.bytes = gib * 0x1p30 * factor;
    result.counts = counts;
    result.verified = true;
    report_.add(result);
    return name;
  };
  const double gib = static_cast<double>(words) * 8 / 0x1p30;
  if (name == "ceiling.link_both_ways") {
    const filled_block from_host(exec_, kind::locked, words), to_device(exec_, kind::device, words);
    const filled_block from_device(exec_, kind::device, words), to_host(exec_, kind::locked, words);
    const baseline::copies_at_once two_way(exec_, 2);
    const auto bytes = static_cast<std::size_t>(words) * 8;
    result.time = measure(*this, 1, [&](int) {
      two_way.enqueue(
          exec_, {{to_device.data(), from_host.data(), bytes}, {to_host.data(), from_device.data(), bytes}});
    });
    return settle(gib, 2.0, "payload, both ways");
  }
  if (name == "ceiling.triad") {
    const filled_block a(exec_, kind::device, words), b(exec_, kind::device, words),
        c(exec_, kind::device, words);
    result.time = measure(*this, 1, [&](int) {
      Kokkos::parallel_for("ferry_bench::triad", range(exec_, 0, words), triad{a.data(), b.data(), c.data()});
    });
    return settle(gib, 3.0, "two reads + write");
  }
  const bool on_device = name == "ceiling.device_copy";
  if (!on_device && name != "ceiling.h2d" && name != "ceiling.d2h")
    throw std::logic_error("no ceiling " + name);
  // On the device twice the size, so that the caches hold little of it.
  const std::int64_t copied = on_device ? 2 * words : words;
  const filled_block source(exec_, name == "ceiling.h2d" ? kind::locked : kind::device, copied);
  const filled_block target(exec_, name == "ceiling.d2h" ? kind::locked : kind::device, copied);
  result.time = measure(*this, 1, [&](int) {
    baseline::copy(exec_, target.data(), source.data(), static_cast<std::size_t>(copied) * 8);
  });
  return on_device ? settle(2 * gib, 2.0, "read + write") : settle(gib, 1.0, "payload");
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
