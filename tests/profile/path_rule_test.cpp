// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/profile/detail/path_rule.hpp>

#include <catch2/matchers/catch_matchers_floating_point.hpp>

namespace ferry_test::path_rule_test {

using Catch::Matchers::WithinRel;
using ferry::machine_profile;
using ferry::path_kind;
using ferry::verb;
using ferry::detail::call_costs;
using ferry::detail::choose_route;
using ferry::detail::costs_of;
using ferry::detail::move_facts;
using ferry::detail::path_set;

constexpr std::string_view device = "device_space";
constexpr std::string_view pinned = "pinned_space";
constexpr std::string_view mapped = "mapped_space";
constexpr path_set any_path{path_kind::direct, path_kind::ordered, path_kind::staged, path_kind::cooperative};
constexpr std::int64_t k1 = 1024, k16 = 16384, k128 = 131072, m1 = 1048576;

constexpr std::int64_t gib(double count) { return static_cast<std::int64_t>(count * 0x1p30); }

move_facts gather_from(std::string_view space, double table_gib, std::int64_t row_bytes, std::int64_t n) {
  return {verb::gather, space, device, gib(table_gib), row_bytes, n};
}

path_set candidates_of(std::string_view space) {
  if (space == device) return {path_kind::direct, path_kind::ordered};
  return space == mapped ? any_path.without(path_set{path_kind::staged}) : any_path;
}

/// The profile of the machine that the grid was measured on (H200, PCIe 5 x16, 16 cores), from its readings.
machine_profile machine_of_grid() {
  machine_profile profile;
  profile.call_us = 10.64;
  profile.ordered_call_us = 3.80;
  profile.staged_call_us = 36.7;
  profile.cooperative_call_us = 41.1;
  profile.sort_us = 10.7;
  profile.sort_ns_per_index = 0.0355;
  profile.dma_to_device_gb_per_s = 55.5;
  profile.dma_from_device_gb_per_s = 55.5;
  profile.link_row_ns = 1.352;
  profile.link_read_gb_per_s = 51.3;
  profile.link_write_gb_per_s = 52.7;
  profile.pinned_reach_gib = 0.647;
  profile.pinned_miss_ns = 26.9;
  profile.pinned_group_ns = 27.9;
  profile.mapped_row_ns = 1.318;
  profile.mapped_read_gb_per_s = 51.3;
  profile.mapped_write_gb_per_s = 52.7;
  profile.mapped_growth = 0.163;
  profile.device_row_ns = 0.0414;
  profile.device_gb_per_s = 3424;
  profile.host_read_row_ns = 1.81;
  profile.host_read_gb_per_s = 48.8;
  profile.host_write_row_ns = 6.25;
  profile.host_write_gb_per_s = 32.5;
  profile.cooperative_gb_per_s = 49.4;
  return profile;
}

/// A gather of random rows: the measured milliseconds of each path by path_kind, 0 for one without a reading.
struct reading {
  std::string_view space;
  double table_gib;
  std::int64_t row_bytes;
  std::int64_t n;
  std::array<double, 4> ms;
};

/// A part of the grid of tables up to 64 GiB that docs/decisions.md names: most points where path::direct
/// loses, and some where it wins.
constexpr reading grid[] = {
    {device, 16, 16, m1, {0.04865, 0.1541, 0, 0}},
    {mapped, 0.25, 64, k128, {0.2086, 0.2347, 0.3998, 0.2771}},
    {mapped, 2, 16, k128, {0.2986, 0.2457, 0.3695, 0.308}},
    {mapped, 2, 16, m1, {2.283, 1.513, 2.927, 1.442}},
    {mapped, 2, 64, k128, {0.3006, 0.254, 0.4002, 0.3114}},
    {mapped, 2, 64, m1, {2.285, 1.623, 2.713, 1.651}},
    {mapped, 16, 16, k16, {0.05968, 0.0902, 0.1246, 0.1755}},
    {mapped, 16, 16, k128, {0.3837, 0.2992, 0.5268, 0.3413}},
    {mapped, 16, 16, m1, {2.946, 1.707, 3.76, 1.534}},
    {mapped, 16, 64, k128, {0.3937, 0.2827, 0.4985, 0.3434}},
    {mapped, 16, 64, m1, {2.948, 1.651, 3.272, 1.67}},
    {mapped, 16, 128, k128, {0.376, 0.3837, 0.5507, 0.4579}},
    {mapped, 16, 512, k128, {1.321, 1.378, 1.473, 1.43}},
    {mapped, 64, 16, m1, {3.028, 1.952, 4.594, 1.912}},
    {mapped, 64, 64, k16, {0.06106, 0.09439, 0.1316, 0.1837}},
    {mapped, 64, 64, k128, {0.3887, 0.3238, 0.6233, 0.4032}},
    {mapped, 64, 64, m1, {3.012, 1.795, 3.732, 1.835}},
    {mapped, 64, 128, m1, {2.979, 2.716, 4.006, 2.919}},
    {pinned, 0.25, 16, m1, {1.458, 1.506, 2.579, 1.518}},
    {pinned, 2, 16, k1, {0.03892, 0.04533, 0.05774, 0.0726}},
    {pinned, 2, 16, k16, {0.2865, 0.2117, 0.08666, 0.1495}},
    {pinned, 2, 16, k128, {2.1, 0.4531, 0.3453, 0.3065}},
    {pinned, 2, 16, m1, {16.72, 1.529, 2.607, 1.327}},
    {pinned, 2, 128, k16, {0.2767, 0.2003, 0.1158, 0.1534}},
    {pinned, 2, 128, k128, {2.128, 0.4903, 0.4919, 0.4419}},
    {pinned, 2, 128, m1, {16.98, 2.722, 3.554, 2.856}},
    {pinned, 2, 512, k1, {0.03668, 0.04869, 0.08329, 0.1003}},
    {pinned, 2, 512, k16, {0.2862, 0.2333, 0.2821, 0.3181}},
    {pinned, 2, 512, k128, {2.356, 1.353, 1.748, 1.46}},
    {pinned, 2, 512, m1, {18.33, 10.26, 11.4, 10.66}},
    {pinned, 2, 4096, k16, {1.339, 1.395, 1.477, 1.438}},
    {pinned, 2, 4096, k128, {10.51, 10.29, 11.06, 10.58}},
    {pinned, 16, 16, k16, {0.5311, 0.4128, 0.1086, 0.241}},
    {pinned, 16, 16, k128, {3.339, 1.576, 0.6713, 0.8529}},
    {pinned, 16, 16, m1, {27.96, 6.17, 2.918, 2.959}},
    {pinned, 16, 128, k16, {0.5317, 0.4167, 0.124, 0.2146}},
    {pinned, 16, 128, k128, {3.816, 1.956, 0.7963, 0.7526}},
    {pinned, 16, 128, m1, {31.59, 6.282, 3.485, 3.001}},
    {pinned, 16, 512, k16, {0.5271, 0.386, 0.2663, 0.3604}},
    {pinned, 16, 512, k128, {4.378, 2.495, 1.713, 1.446}},
    {pinned, 16, 512, m1, {34.53, 10.47, 11.31, 10.63}},
    {pinned, 64, 16, k1, {0.04964, 0.06504, 0.08622, 0.0943}},
    {pinned, 64, 16, k16, {0.5889, 0.4964, 0.09641, 0.1632}},
    {pinned, 64, 16, k128, {4.334, 2.737, 0.6073, 1.418}},
    {pinned, 64, 16, m1, {34.93, 16.01, 3.26, 4.812}},
    {pinned, 64, 128, k16, {0.5905, 0.493, 0.1324, 0.2205}},
    {pinned, 64, 128, k128, {4.545, 3.076, 0.8802, 0.9667}},
    {pinned, 64, 128, m1, {36.38, 15.69, 3.512, 4.657}},
    {pinned, 64, 512, k1, {0.04925, 0.05991, 0.07206, 0.09629}},
    {pinned, 64, 512, k16, {0.5896, 0.5143, 0.2646, 0.4387}},
    {pinned, 64, 512, k128, {4.72, 3.096, 1.696, 1.479}},
    {pinned, 64, 512, m1, {37.42, 16.2, 11.25, 10.67}},
    {pinned, 64, 4096, k16, {1.323, 1.427, 1.435, 1.391}},
    {pinned, 64, 4096, k128, {10.47, 10.63, 10.97, 10.6}},
};

TEST_CASE("the chosen path is within a tenth of the fastest one that was measured", "[profile][path_rule]") {
  const machine_profile defaults, measured = machine_of_grid();
  for (const machine_profile& profile : {defaults, measured}) {
    int misses = 0;
    for (const reading& point : grid) {
      double best = point.ms[0];
      for (const double ms : point.ms)
        if (ms > 0.0) best = std::min(best, ms);
      const path_kind chosen =
          choose_route(profile, gather_from(point.space, point.table_gib, point.row_bytes, point.n),
                       candidates_of(point.space));
      const double ratio = point.ms[static_cast<std::size_t>(chosen)] / best;
      CAPTURE(point.space, point.table_gib, point.row_bytes, point.n, name(chosen), ratio);
      // Batches between those of staged and of ordered cost up to a quarter more.
      CHECK(ratio > 0.0);
      CHECK(ratio < 1.25);
      misses += ratio > 1.1 ? 1 : 0;
    }
    CHECK(misses <= 1);
  }
}

TEST_CASE("small batches, and tables that the device keeps translated, go directly", "[profile][path_rule]") {
  const machine_profile profile;
  for (const std::int64_t row_bytes : {16, 128, 512, 4096}) {
    for (const double size : {0.25, 2.0, 16.0, 64.0}) {
      CAPTURE(row_bytes, size);
      for (const auto space : {pinned, mapped})
        CHECK(choose_route(profile, gather_from(space, size, row_bytes, 1000), candidates_of(space)) ==
              path_kind::direct);
      CHECK(choose_route(profile, gather_from(device, size, row_bytes, m1), candidates_of(device)) ==
            path_kind::direct);
    }
    CHECK(choose_route(profile, gather_from(pinned, 0.5, row_bytes, m1), any_path) == path_kind::direct);
    if (row_bytes >= 512)
      CHECK(choose_route(profile, gather_from(mapped, 16, row_bytes, m1), candidates_of(mapped)) ==
            path_kind::direct);
  }
}

TEST_CASE("rows of a large mapped table are written in order", "[profile][path_rule]") {
  const path_set candidates{path_kind::direct, path_kind::ordered};
  for (const machine_profile& profile : {machine_profile{}, machine_of_grid()}) {
    const auto chosen = [&](verb action, double table_gib, std::int64_t row_bytes, std::int64_t n,
                            bool planned = false) {
      return choose_route(profile, {action, mapped, device, gib(table_gib), row_bytes, n, planned},
                          candidates);
    };
    for (const std::int64_t row_bytes : {128, 256, 512, 4096})
      for (const double size : {32.0, 64.0}) {
        CAPTURE(row_bytes, size);
        CHECK(chosen(verb::scatter, size, row_bytes, m1) == path_kind::ordered);
        CHECK(chosen(verb::scatter, size, row_bytes, m1, true) == path_kind::direct);  // in order already
        CHECK(chosen(verb::scatter, size, row_bytes, 1000) == path_kind::direct);
        // Reads of rows this long take no longer in any order.
        if (row_bytes >= 512) CHECK(chosen(verb::gather, size, row_bytes, m1) == path_kind::direct);
      }
    for (const std::int64_t row_bytes : {256, 512, 4096})
      for (const double size : {0.25, 2.0, 16.0})
        CHECK(chosen(verb::scatter, size, row_bytes, m1) == path_kind::direct);
    CHECK(chosen(verb::step, 64, 512, m1) == path_kind::ordered);
    CHECK(chosen(verb::step, 2, 512, m1) == path_kind::direct);
  }
}

TEST_CASE("times of mapped writes are those that were measured", "[profile][path_rule]") {
  // Shares of the link of distinct rows in any order, 0.5M to 1M of them; H200.
  const struct {
    double table_gib;
    std::int64_t row_bytes;
    double share;
  } readings[] = {{16, 256, 0.84}, {16, 512, 0.85}, {32, 256, 0.68},
                  {32, 512, 0.70}, {64, 256, 0.66}, {64, 512, 0.69}};
  for (const auto& point : readings) {
    const move_facts facts{verb::scatter, mapped, device, gib(point.table_gib), point.row_bytes, m1};
    const double row_ns = costs_of(machine_profile{}, facts)[path_kind::direct].row_ns;
    CAPTURE(point.table_gib, point.row_bytes, row_ns);
    CHECK_THAT(row_ns, WithinRel(static_cast<double>(point.row_bytes) / (point.share * 55.4), 0.15));
  }
}

TEST_CASE("choices follow the profile's numbers", "[profile][path_rule]") {
  const auto large = gather_from(pinned, 16, 128, m1);
  machine_profile profile;
  REQUIRE(choose_route(profile, large, any_path) == path_kind::cooperative);

  SECTION("a device that keeps everything translated needs no other path") {
    profile.pinned_reach_gib = 1024;
    CHECK(choose_route(profile, large, any_path) == path_kind::direct);
  }
  SECTION("look-ups that cost less than the link's bytes need none either") {
    profile.pinned_miss_ns = 1;
    CHECK(choose_route(profile, large, any_path) == path_kind::direct);
  }
  SECTION("sorted rows that the link takes as they come need no host threads") {
    profile.pinned_group_ns = 5;
    CHECK(choose_route(profile, large, any_path) == path_kind::ordered);
  }
  SECTION("a sort that costs more than the look-ups is left out") {
    profile.pinned_group_ns = 5;
    profile.sort_us = 1e5;
    CHECK(choose_route(profile, large, any_path) == path_kind::direct);
  }
  SECTION("host threads do it alone if sorting is expensive") {
    profile.sort_us = 1e5;
    CHECK(choose_route(profile, large, any_path) == path_kind::staged);
  }
  SECTION("host threads do it alone if sorted rows are far slower than theirs") {
    profile.host_read_row_ns = 0.1;
    profile.host_read_gb_per_s = 500;
    CHECK(choose_route(profile, large, any_path) == path_kind::staged);
  }
  SECTION("host threads that start slowly leave the work to the device") {
    profile.staged_call_us = 1e5;
    CHECK(choose_route(profile, large, any_path.without(path_set{path_kind::cooperative})) ==
          path_kind::direct);
  }
  SECTION("slow host threads leave the work to the device") {
    profile.host_read_row_ns = 1000;
    CHECK(choose_route(profile, large, any_path) == path_kind::direct);
    CHECK(choose_route(profile, large, {path_kind::direct, path_kind::ordered}) == path_kind::ordered);
  }
  SECTION("a plan saves the sorting") {
    auto planned = large;
    planned.planned = true;
    const double sorting = profile.sort_us + profile.sort_ns_per_index * 1e-3 * static_cast<double>(m1);
    for (const path_kind path : {path_kind::ordered, path_kind::cooperative})
      CHECK_THAT(costs_of(profile, large)[path].start_us - costs_of(profile, planned)[path].start_us,
                 WithinRel(sorting, 1e-9));
    // 16384 rows of mapped memory: worth the launch of path::ordered, not a sort.
    auto few = gather_from(mapped, 16, 64, k16);
    CHECK(choose_route(profile, few, candidates_of(mapped)) == path_kind::direct);
    few.planned = true;
    CHECK(choose_route(profile, few, candidates_of(mapped)) == path_kind::ordered);
  }
  SECTION("a planned write on the direct path already walks in the table's order") {
    for (const verb action : {verb::scatter, verb::scatter_add, verb::step}) {
      auto write = large;
      write.action = action;
      const double random = costs_of(profile, write)[path_kind::direct].row_ns;
      write.planned = true;
      CHECK(costs_of(profile, write)[path_kind::direct].row_ns < 0.5 * random);
      // Nothing is left to save if the link is busy.
      write.table_bytes = gib(2);
      CHECK(choose_route(profile, write, any_path) == path_kind::direct);
    }
  }
  SECTION("a step of unsorted rows in a large table goes through the host's threads or in order") {
    auto step = large;
    step.action = verb::step;
    const path_set without_both = any_path.without(path_set{path_kind::cooperative});
    CHECK(choose_route(profile, step, without_both) == path_kind::staged);
    profile.host_write_row_ns = 1000;
    CHECK(choose_route(profile, step, without_both.without(path_kind::staged)) == path_kind::ordered);
  }
  SECTION("a host's own verbs cost what its threads cost") {
    const move_facts call{verb::gather, "pageable_space", "pageable_space", gib(1), 128, m1, false, true};
    const double row = std::max(profile.host_read_row_ns, 128.0 / profile.host_read_gb_per_s);
    const auto costs = costs_of(profile, call);
    CHECK_THAT(costs[path_kind::direct].seconds(m1),
               WithinRel(profile.call_us * 1e-6 + row * 1e-9 * static_cast<double>(m1), 1e-9));
    CHECK(costs.reach_gib == 0.0);
  }
}

TEST_CASE("rates of the direct path are those of the spaces", "[profile][path_rule]") {
  const machine_profile profile;
  const auto rate = [&](verb action, std::string_view table, std::string_view batch) {
    return 4096.0 / costs_of(profile, {action, table, batch, gib(0.125), 4096, m1})[path_kind::direct].row_ns;
  };
  const double both_ways = 1.0 / (1.0 / profile.link_read_gb_per_s + 1.0 / profile.link_write_gb_per_s);
  CHECK_THAT(rate(verb::gather, pinned, device), WithinRel(profile.link_read_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::scatter, pinned, device), WithinRel(profile.link_write_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::step, pinned, device), WithinRel(both_ways, 1e-9));
  CHECK_THAT(rate(verb::gather, mapped, device), WithinRel(profile.mapped_read_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::gather, device, pinned), WithinRel(profile.link_write_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::scatter, device, pinned), WithinRel(profile.link_read_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::gather, device, device), WithinRel(profile.device_gb_per_s / 2, 1e-9));
  CHECK_THAT(rate(verb::step, device, device), WithinRel(profile.device_gb_per_s / 3, 1e-9));
  CHECK_THAT(rate(verb::copy, pinned, device), WithinRel(profile.dma_to_device_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::copy, device, pinned), WithinRel(profile.dma_from_device_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::copy, device, mapped), WithinRel(profile.mapped_write_gb_per_s, 1e-9));
  CHECK_THAT(rate(verb::copy, device, device), WithinRel(profile.device_gb_per_s / 2, 1e-9));
}

TEST_CASE("equal rates go to the path that leaves the caller free", "[profile][path_rule]") {
  machine_profile profile;
  profile.call_us = profile.ordered_call_us = profile.staged_call_us = profile.cooperative_call_us = 0;
  profile.sort_us = profile.sort_ns_per_index = 0;
  const auto facts = gather_from(pinned, 16, 512, m1);
  profile.host_read_row_ns = costs_of(profile, facts)[path_kind::direct].row_ns;
  CHECK(choose_route(profile, facts, {path_kind::direct, path_kind::staged}) == path_kind::direct);
  CHECK(choose_route(profile, facts, {path_kind::staged}) == path_kind::staged);
  CHECK(choose_route(profile, facts, {}) == path_kind::direct);
}

TEST_CASE("every cost is a finite time, and only candidates are chosen", "[profile][path_rule]") {
  machine_profile idle, slow;
  for (const auto& field : ferry::detail::profile_fields) {
    if (field.may_be_zero) idle.*field.member = 0.0;
    slow.*field.member *= field.member == &machine_profile::pinned_reach_gib ? 1.0 : 50.0;
  }
  const auto check = [](const machine_profile& profile, const move_facts& facts) {
    const call_costs costs = costs_of(profile, facts);
    for (const path_kind path : ferry::detail::every_path_kind) {
      double before = 0.0;
      for (const std::int64_t n : {std::int64_t{0}, facts.positions, 2 * facts.positions}) {
        const double seconds = costs[path].seconds(n);
        if (!(std::isfinite(seconds) && seconds >= before)) {
          CAPTURE(name(facts.action), facts.table_space, facts.batch_space, name(path), n, seconds);
          FAIL("not a time");
        }
        before = seconds;
      }
    }
    for (unsigned bits = 0; bits < 16; ++bits) {
      path_set candidates;
      candidates.bits = bits;
      const path_kind chosen = choose_route(profile, facts, candidates);
      const auto report = ferry::detail::explain_choice(profile, facts, candidates);
      if (candidates.empty() ? chosen != path_kind::direct
                             : !candidates.contains(chosen) || report.picked != chosen) {
        CAPTURE(name(facts.action), facts.table_space, facts.batch_space, bits, name(chosen));
        FAIL("not a candidate");
      }
    }
  };
  for (const machine_profile& profile : {machine_profile{}, idle, slow})
    for (const verb action : {verb::gather, verb::scatter, verb::scatter_add, verb::step, verb::copy})
      for (const std::string_view table : {device, pinned, mapped, std::string_view("pageable_space")})
        for (const std::string_view batch : {device, pinned, mapped, std::string_view("pageable_space")})
          for (const bool planned : {false, true})
            for (const bool on_host : {false, true})
              for (const std::int64_t row_bytes : {0, 1, 64, 4096, 1 << 24})
                for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, gib(100)})
                  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, m1})
                    check(profile, {action, table, batch, bytes, row_bytes, n, planned, on_host});
}

TEST_CASE("the reach is fitted to a machine's readings", "[profile][path_rule]") {
  SECTION("an H200's readings") {
    const std::vector<double> sizes{0.25, 0.5, 1, 2}, extras{0, 0, 6.8, 14.75};
    machine_profile fitted;
    fitted.pinned_miss_ns = 0;
    ferry::detail::fit_reach(sizes, extras, fitted);
    CHECK_THAT(fitted.pinned_reach_gib, WithinRel(0.7, 0.05));
    // Rows of 128 bytes in 16 and 64 GiB, which are not among the readings, took 28.3 and 34.1 ns more.
    CHECK_THAT(costs_of(fitted, gather_from(pinned, 16, 128, m1)).random_look_up_ns, WithinRel(28.3, 0.35));
    CHECK_THAT(costs_of(fitted, gather_from(pinned, 64, 128, m1)).random_look_up_ns, WithinRel(34.1, 0.35));
  }
  SECTION("a machine of another reach and another speed") {
    machine_profile machine;
    machine.pinned_reach_gib = 0.3;
    machine.pinned_miss_ns *= 2.5;
    const std::vector<double> sizes{0.25, 0.5, 1, 2};
    std::vector<double> extras;
    for (const double size : sizes)
      extras.push_back(costs_of(machine, gather_from(pinned, size, 128, m1)).random_look_up_ns);
    machine_profile fitted;
    ferry::detail::fit_reach(sizes, extras, fitted);
    CHECK_THAT(fitted.pinned_reach_gib, WithinRel(0.3, 0.05));
    CHECK_THAT(fitted.pinned_miss_ns, WithinRel(machine.pinned_miss_ns, 0.05));
  }
  SECTION("no table is beyond the reach") {
    const std::vector<double> sizes{0.25, 0.5, 1, 2, 4}, extras{0, 0.1, 0, 0.2, 0.1};
    machine_profile fitted;
    ferry::detail::fit_reach(sizes, extras, fitted);
    CHECK(fitted.pinned_reach_gib == 4.0);
    CHECK(fitted.pinned_miss_ns == machine_profile{}.pinned_miss_ns);
  }
}

}  // namespace ferry_test::path_rule_test
