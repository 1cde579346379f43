// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

namespace ferry_test::memory_report_test {

const ferry::memory_holdings::space* find(const ferry::memory_holdings& holdings, std::string_view name) {
  for (const auto& entry : holdings.spaces)
    if (entry.name == name) return &entry;
  return nullptr;
}
const ferry::label_statistics* find(const ferry::memory_holdings::space& holdings, const std::string& label) {
  for (const auto& entry : holdings.labels)
    if (entry.label == label) return &entry;
  return nullptr;
}

TEMPLATE_TEST_CASE("the memory report holds what the statistics of each space say", "[memory_report]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const ferry::tensor<float, TestType> large("reported large", 100, 10);
  const ferry::tensor<float, TestType> small("reported small", 7);
  { const ferry::tensor<float, TestType> gone("reported gone", 1000); }
  const auto report = ferry::memory_report();
  const auto* const usage = find(report, TestType::name);
  REQUIRE(usage != nullptr);
  const auto expected = ferry::memory_statistics<TestType>();
  CHECK(usage->all.current == expected.current);
  CHECK(usage->all.peak == expected.peak);
  CHECK(usage->all.count == expected.count);
  CHECK(usage->labels.size() == ferry::memory_by_label<TestType>().size());
  std::size_t sum = 0;
  for (const auto& entry : usage->labels) sum += entry.current;
  CHECK(sum == usage->all.current);
  CHECK(std::is_sorted(usage->labels.begin(), usage->labels.end(),
                       [](const auto& a, const auto& b) { return a.current > b.current; }));

  REQUIRE(find(*usage, "ferry::tensor::reported large") != nullptr);
  CHECK(find(*usage, "ferry::tensor::reported large")->current == 4000);
  CHECK(find(*usage, "ferry::tensor::reported small")->current == 28);
  REQUIRE(find(*usage, "ferry::tensor::reported gone") != nullptr);
  CHECK(find(*usage, "ferry::tensor::reported gone")->current == 0);
  CHECK(find(*usage, "ferry::tensor::reported gone")->peak == 4000);
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

}  // namespace ferry_test::memory_report_test
