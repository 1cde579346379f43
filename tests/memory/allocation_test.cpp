// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <fstream>

namespace ferry_test::allocation_test {

using Catch::Matchers::StartsWith;

constexpr std::size_t page = 4096;
constexpr std::size_t huge = std::size_t{1} << 21;

/// A number of the kernel's, -1 where it does not say.
long long number_in(const char* file, const std::string& key) {
  std::ifstream input(file);
  for (std::string word; input >> word;)
    if (long long value = 0; key.empty()) {
      return std::stoll(word);
    } else if (word == key && input >> value) {
      return value;
    }
  return -1;
}

TEMPLATE_TEST_CASE("all bytes of a block can be written and read", "[allocation]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  auto random = generator();
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{7}, page - 1, page, page + 1, 3 * page, huge - page, huge - 1, huge,
        huge + 1, huge + page + 1, 2 * huge - 1, 2 * huge + 1}) {
    CAPTURE(bytes);
    ferry::tensor<std::uint8_t, TestType> block("block", bytes);
    REQUIRE(block.data() != nullptr);
    CHECK(block.size() == bytes);
    std::vector<std::uint8_t> contents(bytes);
    for (auto& byte : contents) byte = static_cast<std::uint8_t>(random());
    put(block, contents);
    CHECK(take(block) == contents);
  }
}

TEMPLATE_TEST_CASE("a block has exactly the asked size, zero included", "[allocation]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  using allocation = ferry::detail::allocation<TestType>;
  const allocation nothing("nothing", 0);
  CHECK(nothing.data() == nullptr);
  CHECK(nothing.bytes() == 0);
  const allocation unmade;
  CHECK(unmade.data() == nullptr);

  allocation first("first", 1000);
  CHECK(first.bytes() == 1000);
  void* const data = first.data();
  CHECK(reinterpret_cast<std::uintptr_t>(data) % 16 == 0);
  allocation second = std::move(first);
  CHECK(second.data() == data);
  CHECK(first.data() == nullptr);
  CHECK(first.bytes() == 0);
  allocation third("third", huge + 5);
  CHECK(third.bytes() == huge + 5);
  third = std::move(second);
  CHECK(third.data() == data);
  CHECK(third.bytes() == 1000);
  CHECK(second.data() == nullptr);
}

TEMPLATE_TEST_CASE("a block says how its memory was obtained", "[allocation]", ferry::device_space,
                   ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  for (const std::size_t bytes : {page, 2 * huge}) {
    const auto text = ferry::detail::allocation<TestType>("block", bytes).describe();
    CHECK_THAT(text, StartsWith(std::string(TestType::name) + ": ") && ContainsSubstring("memory"));
  }
}

TEMPLATE_TEST_CASE("memory that can't be had is an error that names space, label and size", "[allocation]",
                   ferry::device_space, ferry::pinned_space, ferry::mapped_space, ferry::pageable_space) {
  const std::string space(TestType::name);
  const auto impossible = std::size_t{1} << 60;
  CHECK_THROWS_MATCHES((ferry::tensor<std::int8_t, TestType>("too large", impossible)), ferry::bad_alloc,
                       MessageMatches(ContainsSubstring(space) && ContainsSubstring("too large") &&
                                      ContainsSubstring(std::to_string(impossible))));
  CHECK_THROWS_MATCHES((ferry::tensor<float, TestType>("also too large", impossible / 32, 8)),
                       ferry::bad_alloc,
                       MessageMatches(ContainsSubstring(space) && ContainsSubstring("also too large") &&
                                      ContainsSubstring(std::to_string(impossible))));
  // No page more fits after these.
  for (const std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} - page, ~std::size_t{0} - huge})
    CHECK_THROWS_MATCHES(ferry::detail::allocation<TestType>("end", bytes), ferry::bad_alloc,
                         MessageMatches(ContainsSubstring(space) && ContainsSubstring("end") &&
                                        ContainsSubstring(std::to_string(bytes))));
  // The failure left nothing allocated.
  const ferry::tensor<float, TestType> fits("fits", 1000);
  CHECK(fits.data() != nullptr);
}

TEMPLATE_TEST_CASE("more memory than the machine has is refused, not promised", "[allocation]",
                   ferry::pinned_space, ferry::pageable_space) {
  if (number_in("/proc/sys/vm/overcommit_memory", "") != 0)
    SKIP("the kernel was told to promise memory that it does not have, or to count it otherwise");
  const long long memory = number_in("/proc/meminfo", "MemTotal:");
  const long long swap = number_in("/proc/meminfo", "SwapTotal:");
  if (memory < 0 || swap < 0) SKIP("the kernel does not say how much memory it has");
  const auto bytes = static_cast<std::size_t>(memory + swap) * 1024 + (std::size_t{1} << 32);
  CHECK_THROWS_AS(ferry::detail::allocation<TestType>("all and more", bytes), ferry::bad_alloc);
}

}  // namespace ferry_test::allocation_test
