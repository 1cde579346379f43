// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_kit.hpp"

#include <ferry/cache/explain.hpp>

#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <string>

/// Predictions for verbs on cached tables.
namespace ferry_test::explain_test {

using Catch::Matchers::ContainsSubstring;

namespace {

ferry::detail::cached_facts facts(ferry::verb kind, std::int64_t n, double hit_rate) {
  ferry::detail::cached_facts result;
  result.cold = {
      kind, ferry::mapped_space::name, ferry::device_space::name, std::int64_t{16} << 30, 512, n, false,
      false};
  result.slots = 335544;
  result.rows = std::int64_t{1} << 25;
  result.known = true;
  result.hit_rate = hit_rate;
  return result;
}

}  // namespace

TEST_CASE("predictions for cached tables follow the hit rate", "[cache][explain]") {
  const ferry::machine_profile profile;
  const std::int64_t n = 1 << 20;
  double before = 1e9;
  for (const double rate : {0.0, 0.5, 0.9, 1.0}) {
    CAPTURE(rate);
    const auto explanation =
        ferry::detail::explain_cached<exec_space>(profile, facts(ferry::verb::gather, n, rate));
    REQUIRE(explanation.candidates.size() == 1);
    const double seconds = explanation.candidates.front().seconds;
    CHECK(seconds < before);
    before = seconds;
    CHECK(explanation.hit_rate == rate);
    CHECK(std::abs(static_cast<double>(explanation.link_bytes) -
                   (1 - rate) * 512.0 * static_cast<double>(n)) < 600);
    // Not below what the link takes for the misses, nor far above.
    const double link = static_cast<double>(explanation.link_bytes) / (profile.mapped_read_gb_per_s * 1e9);
    CHECK(seconds >= link);
    if (rate <= 0.9) CHECK(seconds < 1.3 * link + 1e-4);
  }
  const auto step = ferry::detail::explain_cached<exec_space>(profile, facts(ferry::verb::step, n, 0.5));
  CHECK(step.link_bytes == n * 512);
  auto unknown = facts(ferry::verb::gather, n, 0.0);
  unknown.known = false;
  const auto even = ferry::detail::explain_cached<exec_space>(profile, unknown);
  CHECK(std::abs(even.hit_rate - 0.01) < 1e-4);
  CHECK_THAT(even.to_string(), ContainsSubstring("equally likely"));
}

TEST_CASE("explain takes cached tables", "[cache][explain]") {
  auto random = generator(8000);
  const exec_space exec;
  auto table = make<ferry::mapped_space>("weights", 100, 16, values<float>(random, 1600));
  ferry::cached_table hot(table, ferry::cache::first{20});
  CHECK(ferry::explain(ferry::verb::gather, hot, 50).hit_rate == 0.2);
  ferry::tensor<float, ferry::device_space> out("out", 4, 16);
  ferry::gather(exec, hot, std::vector<int>{1, 2, 3, 99}, out).wait();
  const auto explanation = ferry::explain(ferry::verb::gather, hot, 1000, exec, {.planned = true});
  CHECK(explanation.hit_rate == 0.75);
  CHECK(explanation.link_bytes == 250 * 64);
  CHECK(explanation.picked == ferry::path_kind::direct);
  CHECK(explanation.candidates.front().seconds > 0);
  const std::string text = explanation.to_string();
  CHECK_THAT(text, ContainsSubstring("gather of 1000 rows, cached table 'weights' [100 x 16] in mapped_space "
                                     "with 20 rows in device_space, batch in ") &&
                       ContainsSubstring("with a plan") && ContainsSubstring("* direct") &&
                       ContainsSubstring("75.0 % hits so far") &&
                       ContainsSubstring("0.016 MB over the link"));
  CHECK_THROWS_AS(static_cast<void>(ferry::explain(ferry::verb::gather, hot, -1)), ferry::invalid_argument);
}

}  // namespace ferry_test::explain_test
