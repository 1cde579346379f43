// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"

#include <ferry/memory/memory_report.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace ferry_test::memory_report_test {

using Catch::Matchers::ContainsSubstring;

namespace {

const ferry::memory_holdings::space* find(const ferry::memory_holdings& all, std::string_view name) {
  for (const auto& each : all.spaces)
    if (each.name == name) return &each;
  return nullptr;
}
const ferry::label_statistics* find(const ferry::memory_holdings::space& of, const std::string& label) {
  for (const auto& each : of.labels)
    if (each.label == label) return &each;
  return nullptr;
}

}  // namespace

TEMPLATE_TEST_CASE("the memory report holds what the statistics of each space say", "[memory_report]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const ferry::tensor<float, TestType> large("reported large", 100, 10);
  const ferry::tensor<float, TestType> small("reported small", 7);
  { const ferry::tensor<float, TestType> gone("reported gone", 1000); }
  const auto all = ferry::memory_report();
  const auto* const held = find(all, TestType::name);
  REQUIRE(held != nullptr);
  const auto expected = ferry::memory_statistics<TestType>();
  CHECK(held->totals.current == expected.current);
  CHECK(held->totals.peak == expected.peak);
  CHECK(held->totals.count == expected.count);
  CHECK(held->labels.size() == ferry::memory_by_label<TestType>().size());
  std::size_t sum = 0;
  for (const auto& each : held->labels) sum += each.current;
  CHECK(sum == held->totals.current);
  CHECK(std::is_sorted(held->labels.begin(), held->labels.end(),
                       [](const auto& a, const auto& b) { return a.current > b.current; }));

  REQUIRE(find(*held, "ferry::tensor::reported large") != nullptr);
  CHECK(find(*held, "ferry::tensor::reported large")->current == 4000);
  CHECK(find(*held, "ferry::tensor::reported small")->current == 28);
  REQUIRE(find(*held, "ferry::tensor::reported gone") != nullptr);
  CHECK(find(*held, "ferry::tensor::reported gone")->current == 0);
  CHECK(find(*held, "ferry::tensor::reported gone")->peak == 4000);
}

TEST_CASE("the memory report is a table with a line per space and label", "[memory_report]") {
  const ferry::tensor<float, ferry::pageable_space> table("a label of more than twenty-four letters",
                                                          3 << 18);
  const std::string text = ferry::memory_report().text();
  CHECK_THAT(text, ContainsSubstring("\npageable_space "));
  CHECK_THAT(
      text,
      ContainsSubstring(
          "\n  ferry::tensor::a label of more than twenty-four letters     3.0 MiB     3.0 MiB       1\n"));
  // The numbers of all lines stand below each other.
  std::vector<std::size_t> widths;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (text.compare(begin, 3, "  (") != 0) widths.push_back(end - begin);
    begin = end + 1;
  }
  CHECK(std::count(widths.begin(), widths.end(), widths.front()) ==
        static_cast<std::ptrdiff_t>(widths.size()));
}

TEST_CASE("memory is reported while other threads allocate", "[memory_report]") {
  std::vector<std::jthread> others;
  for (int t = 0; t < 3; ++t)
    others.emplace_back([t] {
      for (int i = 0; i < 200; ++i)
        const ferry::tensor<float, ferry::pageable_space> one("racing " + std::to_string(t * 200 + i),
                                                              10 + i);
    });
  for (int i = 0; i < 50; ++i) {
    const auto all = ferry::memory_report();
    const auto* const held = find(all, "pageable_space");
    if (held == nullptr) continue;
    for (const auto& each : held->labels) CHECK(each.current <= each.peak);
  }
}

}  // namespace ferry_test::memory_report_test
