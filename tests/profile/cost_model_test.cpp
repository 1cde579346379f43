// SPDX-License-Identifier: Apache-2.0
#include <ferry/ferry.hpp>
#include <ferry/profile/detail/fit_reach.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

namespace ferry_test::cost_model_test {

using Catch::Matchers::WithinRel;
using ferry::machine_profile;
using ferry::path_kind;
using ferry::verb;
using ferry::detail::choose_route;
using ferry::detail::move_facts;
using ferry::detail::path_set;
using ferry::detail::predict;

namespace {

constexpr std::string_view device = "device_space";
constexpr std::string_view pinned = "pinned_space";
constexpr std::string_view mapped = "mapped_space";
constexpr path_set any_route{path_kind::direct, path_kind::ordered, path_kind::staged,
                             path_kind::cooperative};

constexpr std::int64_t gib(double count) { return static_cast<std::int64_t>(count * 0x1p30); }

move_facts gather_from(std::string_view space, double table_gib, std::int64_t row_bytes, std::int64_t n) {
  return {verb::gather, space, device, gib(table_gib), row_bytes, n};
}

/// What was measured on an H200 on PCIe 5 x16 with 16 cores, in GB/s of the rows: hand-written kernels, each
/// kernel's own time, where nothing else is said. Where the same list of rows was used again and again and the batch fits the device's cache
/// (131072 rows of up to 256 bytes), a reading is left out: it is too fast.
struct reading {
  std::string_view space;
  double table_gib;
  std::int64_t row_bytes;
  std::int64_t n;
  path_kind path;
  double gb_per_s;
  verb what = verb::gather;
};

constexpr std::int64_t k128 = 131072, m1 = 1048576;
constexpr reading readings[] = {
    // Random rows of registered memory, by size of the table.
    {pinned, 0.5, 128, m1, path_kind::direct, 50.76},
    {pinned, 0.5, 512, m1, path_kind::direct, 50.98},
    {pinned, 1, 128, m1, path_kind::direct, 13.77},
    {pinned, 1, 512, m1, path_kind::direct, 50.98},
    {pinned, 2, 128, m1, path_kind::direct, 7.41},
    {pinned, 2, 512, m1, path_kind::direct, 27.43},
    {pinned, 4, 128, m1, path_kind::direct, 5.85},
    {pinned, 4, 512, m1, path_kind::direct, 20.08},
    {pinned, 8, 128, m1, path_kind::direct, 5.01},
    {pinned, 8, 512, m1, path_kind::direct, 17.10},
    {pinned, 8, 512, m1, path_kind::direct, 17.04, verb::scatter},
    {pinned, 16, 128, m1, path_kind::direct, 4.31, verb::scatter},
    // By size of the row.
    {pinned, 16, 16, 2000000, path_kind::direct, 0.63},
    {pinned, 16, 32, 2000000, path_kind::direct, 1.21},
    {pinned, 16, 64, 2000000, path_kind::direct, 2.29},
    {pinned, 16, 128, 2000000, path_kind::direct, 4.29},
    {pinned, 16, 256, m1, path_kind::direct, 8.09},
    {pinned, 16, 512, 524288, path_kind::direct, 15.47},
    {pinned, 16, 1024, 262144, path_kind::direct, 30.03},
    {pinned, 16, 4096, 65536, path_kind::direct, 50.8},
    {pinned, 16, 4096, 65536, path_kind::direct, 44.4, verb::scatter},
    {pinned, 64, 64, m1, path_kind::direct, 1.84},
    {pinned, 64, 128, m1, path_kind::direct, 3.61},
    {pinned, 64, 256, m1, path_kind::direct, 7.08},
    {pinned, 64, 512, m1, path_kind::direct, 13.99},
    {pinned, 64, 512, k128, path_kind::direct, 14.00},
    {pinned, 64, 1024, m1, path_kind::direct, 27.75},
    {pinned, 64, 1024, k128, path_kind::direct, 27.70},
    // Sorted rows, few teams.
    {pinned, 16, 64, m1, path_kind::ordered, 10.7},
    {pinned, 16, 128, m1, path_kind::ordered, 21.0},
    {pinned, 16, 256, m1, path_kind::ordered, 40.9},
    {pinned, 16, 512, m1, path_kind::ordered, 51.0},
    {pinned, 16, 512, k128, path_kind::ordered, 26.1},
    {pinned, 16, 1024, k128, path_kind::ordered, 49.9},
    {pinned, 16, 1024, m1, path_kind::ordered, 52.0},
    {pinned, 64, 64, m1, path_kind::ordered, 4.0},
    {pinned, 64, 128, m1, path_kind::ordered, 8.3},
    {pinned, 64, 256, m1, path_kind::ordered, 16.5},
    {pinned, 64, 512, m1, path_kind::ordered, 32.7},
    {pinned, 64, 512, k128, path_kind::ordered, 20.4},
    {pinned, 64, 1024, k128, path_kind::ordered, 41.1},
    {pinned, 64, 1024, m1, path_kind::ordered, 51.4},
    // ferry's own cooperative path, sorting included, by the host's clock: benchmarks/results/*-h200-selection-3.
    {pinned, 16, 128, k128, path_kind::cooperative, 22.4},
    {pinned, 16, 128, m1, path_kind::cooperative, 45.7},
    {pinned, 16, 512, k128, path_kind::cooperative, 46.2},
    {pinned, 16, 512, m1, path_kind::cooperative, 50.8},
    {pinned, 64, 128, m1, path_kind::cooperative, 30.2},
    {pinned, 64, 512, m1, path_kind::cooperative, 50.3},
    // Its staged path.
    {pinned, 16, 128, k128, path_kind::staged, 21.1},
    {pinned, 16, 128, m1, path_kind::staged, 39.7},
    {pinned, 16, 512, k128, path_kind::staged, 38.0},
    {pinned, 16, 512, m1, path_kind::staged, 47.8},
    {pinned, 64, 128, m1, path_kind::staged, 32.1},
    {pinned, 64, 512, m1, path_kind::staged, 47.3},
    // Large device pages.
    {mapped, 16, 16, m1, path_kind::direct, 5.66},
    {mapped, 16, 32, m1, path_kind::direct, 11.32},
    {mapped, 16, 64, m1, path_kind::direct, 22.54},
    {mapped, 16, 128, m1, path_kind::direct, 45.72},
    {mapped, 16, 256, m1, path_kind::direct, 50.78},
    {mapped, 16, 1024, m1, path_kind::direct, 51.23},
    {mapped, 80, 16, m1, path_kind::direct, 5.01},
    {mapped, 80, 128, m1, path_kind::direct, 40.68},
    {mapped, 80, 1024, m1, path_kind::direct, 48.43},
    {mapped, 16, 128, m1, path_kind::direct, 41.82, verb::scatter},
    {mapped, 16, 512, m1, path_kind::direct, 47.34, verb::scatter},
    {mapped, 80, 512, m1, path_kind::direct, 39.49, verb::scatter},
    {mapped, 16, 16, m1, path_kind::direct, 2.87, verb::step},
    {mapped, 16, 128, m1, path_kind::direct, 22.97, verb::step},
    {mapped, 16, 512, m1, path_kind::direct, 31.17, verb::step},
    {mapped, 80, 512, m1, path_kind::direct, 32.17, verb::step},
    // The device's own memory.
    {device, 16, 128, m1, path_kind::direct, 1643},
    {device, 16, 512, k128, path_kind::direct, 1619},
    {device, 16, 512, m1, path_kind::direct, 1905},
    {device, 64, 128, m1, path_kind::direct, 1658},
    {device, 96, 128, m1, path_kind::direct, 1086},
    {device, 96, 512, m1, path_kind::direct, 1946},
    {device, 120, 128, m1, path_kind::direct, 795},
    {device, 120, 512, m1, path_kind::direct, 1892},
};

}  // namespace

TEST_CASE("the default profile predicts what was measured on its machine", "[profile][cost_model]") {
  const machine_profile profile;
  double logs = 0.0;
  for (const auto& one : readings) {
    const move_facts facts{one.what, one.space, device, gib(one.table_gib), one.row_bytes, one.n};
    const double measured = static_cast<double>(one.n * one.row_bytes) / one.gb_per_s * 1e-9;
    const double ratio = predict(profile, facts, one.path).seconds / measured;
    CAPTURE(one.space, one.table_gib, one.row_bytes, one.n, name(one.path), name(one.what), ratio);
    // Paths with host threads differ more from run to run than kernels do.
    const double within = one.path == path_kind::staged || one.path == path_kind::cooperative ? 1.5 : 1.2;
    CHECK(ratio < within);
    CHECK(ratio > 1.0 / within);
    logs += std::abs(std::log(ratio));
  }
  CHECK(logs / static_cast<double>(std::size(readings)) < 0.05);
}

TEST_CASE("the choice is within a tenth of the best measured path", "[profile][cost_model]") {
  struct point {
    double table_gib;
    std::int64_t row_bytes, n;
    /// GB/s of rows; the sorting that ordered and cooperative need comes on top, see below.
    double direct, ordered, cooperative;
  };
  constexpr point points[] = {
      {16, 128, k128, 4.71, 11.4, 24.0}, {16, 128, m1, 4.23, 21.7, 45.1},  {16, 512, k128, 15.14, 27.0, 46.2},
      {16, 512, m1, 15.16, 52.0, 49.1},  {64, 128, k128, 4.95, 8.2, 32.4}, {64, 128, m1, 3.61, 8.5, 40.6},
      {64, 512, k128, 14.0, 20.9, 46.5}, {64, 512, m1, 13.99, 33.6, 49.7},
  };
  const machine_profile profile;
  for (const auto& at : points) {
    const double sort_ms = at.n == k128 ? 0.071 : 0.163;  // ferry::make_plan
    const auto ms = [&](double gb_per_s) {
      return static_cast<double>(at.n * at.row_bytes) / gb_per_s * 1e-6;
    };
    const double direct = ms(at.direct);
    const double ordered = ms(at.ordered) + sort_ms;
    const double cooperative = ms(at.cooperative) + sort_ms;
    const double best = std::min({direct, ordered, cooperative});
    const path_kind chosen = choose_route(profile, gather_from(pinned, at.table_gib, at.row_bytes, at.n),
                                          {path_kind::direct, path_kind::ordered, path_kind::cooperative});
    const double took = chosen == path_kind::direct    ? direct
                        : chosen == path_kind::ordered ? ordered
                                                       : cooperative;
    CAPTURE(at.table_gib, at.row_bytes, at.n, name(chosen), took, best);
    CHECK(took <= 1.1 * best);
  }
}

TEST_CASE("small batches, and tables that the device keeps translated, go directly",
          "[profile][cost_model]") {
  const machine_profile profile;
  for (const std::int64_t row_bytes : {16, 128, 512, 4096}) {
    for (const double size : {0.25, 2.0, 16.0, 64.0}) {
      CAPTURE(row_bytes, size);
      CHECK(choose_route(profile, gather_from(pinned, size, row_bytes, 1000), any_route) ==
            path_kind::direct);
      CHECK(choose_route(profile, gather_from(mapped, size, row_bytes, 1000), any_route) ==
            path_kind::direct);
      CHECK(choose_route(profile, gather_from(device, size, row_bytes, m1),
                         {path_kind::direct, path_kind::ordered}) == path_kind::direct);
    }
    if (row_bytes >= 128) {
      CHECK(choose_route(profile, gather_from(pinned, 0.5, row_bytes, m1), any_route) == path_kind::direct);
    }
    if (row_bytes >= 512)
      CHECK(choose_route(profile, gather_from(mapped, 16, row_bytes, m1), any_route) == path_kind::direct);
  }
}

TEST_CASE("predictions follow the profile's numbers", "[profile][cost_model]") {
  const auto large = gather_from(pinned, 16, 128, m1);
  machine_profile profile;
  REQUIRE(choose_route(profile, large, any_route) != path_kind::direct);

  SECTION("a device that keeps everything translated needs no other path") {
    profile.pinned_reach_gib = 1024;
    CHECK(choose_route(profile, large, any_route) == path_kind::direct);
  }
  SECTION("slow host threads leave the work to the device") {
    profile.host_read_row_ns = 1000;
    profile.cooperative_call_us = 1000;
    CHECK(choose_route(profile, large, any_route) == path_kind::ordered);
  }
  SECTION("fast ones do it alone where sorting is dear") {
    profile.host_read_row_ns = 0.5;
    profile.host_read_gb_per_s = 200;
    profile.sort_us = 1e5;
    CHECK(choose_route(profile, large, any_route) == path_kind::staged);
  }
  SECTION("a plan saves the sorting") {
    auto planned = large;
    planned.planned = true;
    const double sorting =
        profile.sort_us * 1e-6 + profile.sort_ns_per_index * 1e-9 * static_cast<double>(m1);
    CHECK_THAT(predict(profile, large, path_kind::ordered).seconds -
                   predict(profile, planned, path_kind::ordered).seconds,
               WithinRel(sorting, 1e-9));
  }
  SECTION("a planned write on the direct path already walks in the table's order") {
    auto write = large;
    write.what = verb::scatter;
    const double random = predict(profile, write, path_kind::direct).seconds;
    write.planned = true;
    CHECK(predict(profile, write, path_kind::direct).seconds < 0.5 * random);
  }
  SECTION("a host's own verbs cost what its threads cost") {
    const move_facts here{verb::gather, "pageable_space", "pageable_space", gib(1), 128, m1, false, true};
    const double row = profile.host_read_row_ns + 128.0 / profile.host_read_gb_per_s;
    CHECK_THAT(predict(profile, here, path_kind::direct).seconds,
               WithinRel(profile.call_us * 1e-6 + row * 1e-9 * static_cast<double>(m1), 1e-9));
  }
}

TEST_CASE("equal predictions go to the path that leaves the caller free", "[profile][cost_model]") {
  machine_profile profile;
  profile.pinned_reach_gib = 1024;
  profile.call_us = profile.staged_call_us = 0;
  profile.host_read_row_ns = 0;
  const auto facts = gather_from(pinned, 1, 4096, m1);
  // Rows that cost a device's kernel so much that the host's threads are as fast.
  while (predict(profile, facts, path_kind::staged).seconds >=
         predict(profile, facts, path_kind::direct).seconds)
    profile.link_row_ns = std::max(1.0, profile.link_row_ns) * 1.005;
  REQUIRE_THAT(predict(profile, facts, path_kind::staged).seconds,
               WithinRel(predict(profile, facts, path_kind::direct).seconds, 0.02));
  CHECK(choose_route(profile, facts, {path_kind::direct, path_kind::staged}) == path_kind::direct);
  CHECK(choose_route(profile, facts, {path_kind::staged}) == path_kind::staged);
}

TEST_CASE("every prediction is a finite time that does not shrink with the batch", "[profile][cost_model]") {
  const machine_profile profile;
  for (const verb what : {verb::gather, verb::scatter, verb::scatter_add, verb::step, verb::copy})
    for (const std::string_view table : {device, pinned, mapped, std::string_view("pageable_space")})
      for (const std::string_view batch : {device, pinned, mapped, std::string_view("pageable_space")})
        for (const bool planned : {false, true})
          for (const bool on_host : {false, true})
            for (const std::int64_t row_bytes : {0, 1, 4096, 1 << 24})
              for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, gib(100)})
                for (const path_kind by : ferry::detail::every_path_kind) {
                  double before = 0.0;
                  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, m1}) {
                    const auto made =
                        predict(profile, {what, table, batch, bytes, row_bytes, n, planned, on_host}, by);
                    if (!(std::isfinite(made.seconds) && made.seconds > 0.0 && made.seconds >= before &&
                          made.start_seconds <= made.seconds)) {
                      CAPTURE(name(what), table, batch, planned, on_host, row_bytes, bytes, name(by), n,
                              before, made.seconds);
                      FAIL("not a time");
                    }
                    before = made.seconds;
                  }
                }
}

TEST_CASE("the reach is found again from a machine's readings", "[profile][cost_model]") {
  SECTION("the readings of the default's machine") {
    const std::vector<double> sizes{0.25, 0.5, 1, 2}, extras{0, 0, 6.8, 14.75};
    machine_profile fitted;
    fitted.pinned_miss_ns = fitted.pinned_walk_ns = 0;
    ferry::detail::fit_reach(sizes, extras, fitted);
    const machine_profile usual;
    CHECK_THAT(fitted.pinned_reach_gib, WithinRel(usual.pinned_reach_gib, 0.1));
    CHECK_THAT(fitted.pinned_miss_ns, WithinRel(usual.pinned_miss_ns, 0.15));
    // And with them the tables that were not measured.
    const auto facts = gather_from(pinned, 64, 128, m1);
    CHECK_THAT(predict(fitted, facts, path_kind::direct).seconds,
               WithinRel(predict(usual, facts, path_kind::direct).seconds, 0.15));
  }
  SECTION("a machine of another reach and another speed") {
    machine_profile other;
    other.pinned_reach_gib = 0.3;
    other.pinned_miss_ns *= 2.5;
    other.pinned_walk_ns *= 2.5;
    const std::vector<double> sizes{0.25, 0.5, 1, 2};
    std::vector<double> extras;
    for (const double size : sizes) {
      const double row = predict(other, gather_from(pinned, size, 128, m1), path_kind::direct).seconds -
                         other.call_us * 1e-6;
      extras.push_back(row * 1e9 / static_cast<double>(m1) - other.link_row_ns);
    }
    machine_profile fitted;
    ferry::detail::fit_reach(sizes, extras, fitted);
    CHECK_THAT(fitted.pinned_reach_gib, WithinRel(0.3, 0.05));
    CHECK_THAT(fitted.pinned_miss_ns, WithinRel(other.pinned_miss_ns, 0.05));
  }
  SECTION("no knee as far as one has looked") {
    const std::vector<double> sizes{0.25, 0.5, 1, 2, 4}, extras{0, 0.1, 0, 0.2, 0.1};
    machine_profile fitted;
    ferry::detail::fit_reach(sizes, extras, fitted);
    CHECK(fitted.pinned_reach_gib == 4.0);
    CHECK(fitted.pinned_miss_ns == machine_profile{}.pinned_miss_ns);
  }
}

}  // namespace ferry_test::cost_model_test
