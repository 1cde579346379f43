// SPDX-License-Identifier: Apache-2.0
#include "support/random.hpp"

#include <ferry/memory/detail/dynamic_array.hpp>
#include <ferry/memory/detail/joined.hpp>
#include <ferry/memory/detail/owned.hpp>
#include <ferry/memory/detail/share.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry_test::containers_test {

namespace {

using ferry::detail::dynamic_array;
using ferry::detail::owned;

/// Counts the living objects. Copies of an object throw where it says so.
struct counted {
  explicit counted(int number = 0, bool no_copies = false) : value(number), throws(no_copies) { ++alive; }
  counted(const counted& other) : value(other.value), throws(other.throws) {
    if (throws) throw std::runtime_error("no copy");
    ++alive;
  }
  counted(counted&& other) noexcept : value(std::exchange(other.value, -1)), throws(other.throws) { ++alive; }
  counted& operator=(const counted&) = default;
  counted& operator=(counted&& other) noexcept {
    value = std::exchange(other.value, -1);
    throws = other.throws;
    return *this;
  }
  virtual ~counted() { --alive; }

  int value;
  bool throws;
  static inline int alive = 0;
};
struct derived final : counted {};

std::vector<int> values_of(const dynamic_array<counted>& of) {
  std::vector<int> all;
  for (const counted& each : of) all.push_back(each.value);
  return all;
}

static_assert(!std::is_copy_constructible_v<owned<counted>>);
static_assert(!std::is_constructible_v<owned<counted>, owned<derived>&>);
static_assert(std::is_constructible_v<owned<counted>, owned<derived>>);
static_assert(std::is_constructible_v<owned<counted>, std::unique_ptr<derived>>);
static_assert(!std::is_constructible_v<owned<derived>, owned<counted>>);

}  // namespace

TEST_CASE("a dynamic_array does what a vector does", "[memory]") {
  auto next = generator(1);
  {
    dynamic_array<counted> list;
    std::vector<int> like;
    for (int step = 0; step < 4000; ++step) {
      const int number = static_cast<int>(next() % 1000);
      const std::size_t place = like.empty() ? 0 : next() % like.size();
      switch (next() % 9) {
        case 0:
        case 1:
        case 2:
          CHECK(list.push_back(counted(number)).value == number);
          like.push_back(number);
          break;
        case 3:
          if (like.empty()) break;
          list.push_back(list[place]);  // an element of the list itself
          like.push_back(int{like[place]});
          break;
        case 4:
          if (like.empty()) break;
          list.pop_back();
          like.pop_back();
          break;
        case 5:
          if (like.empty()) break;
          list.erase(list.begin() + place);
          like.erase(like.begin() + static_cast<std::ptrdiff_t>(place));
          break;
        case 6:
          list.erase_if([&](const counted& each) { return each.value % 16 == number % 16; });
          std::erase_if(like, [&](int each) { return each % 16 == number % 16; });
          break;
        case 7: {
          const dynamic_array<counted> copy(list);
          dynamic_array<counted> moved(std::move(list));
          CHECK(list.empty());
          list = number % 2 == 0 ? copy : std::move(moved);
          break;
        }
        default:
          list.resize(like.size() / 2 + 1);
          like.resize(like.size() / 2 + 1);
          list.reserve(like.size() + 3);
      }
      REQUIRE(values_of(list) == like);
      REQUIRE(counted::alive == static_cast<int>(like.size()));
      CHECK(list.capacity() >= list.size());
    }
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("a copy of a dynamic_array that throws leaks nothing", "[memory]") {
  {
    dynamic_array<counted> list;
    list.push_back(counted(1));
    list.push_back(counted(2));
    list.push_back(counted(3, true));
    CHECK_THROWS(dynamic_array<counted>(list));
    dynamic_array<counted> other;
    other.push_back(counted(4));
    CHECK_THROWS(other = list);
    CHECK(values_of(other) == std::vector<int>{4});
    CHECK(values_of(list) == std::vector<int>{1, 2, 3});
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("owned and share end their objects once", "[memory]") {
  {
    owned<counted> one = ferry::detail::make_owned<derived>();
    owned<counted> two(std::move(one));
    CHECK(one == nullptr);
    CHECK(counted::alive == 1);
    two = ferry::detail::make_owned<derived>();
    CHECK(counted::alive == 1);
    one.reset(two.release());
    CHECK(counted::alive == 1);
    one.reset();
    CHECK(counted::alive == 0);

    std::weak_ptr<const counted> watched;
    {
      const std::shared_ptr<const counted> shared = ferry::detail::share<counted>(7);
      watched = shared;
      CHECK(shared->value == 7);
    }
    CHECK(watched.expired());
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("joined writes texts and numbers", "[memory]") {
  using ferry::detail::joined;
  CHECK(joined({}).empty());
  CHECK(joined({"a", std::string("b"), std::string_view("c"), 1, -2, 0}) == "abc1-20");
  CHECK(joined({std::numeric_limits<std::int64_t>::min()}) ==
        std::to_string(std::numeric_limits<std::int64_t>::min()));
  CHECK(joined({std::numeric_limits<std::uint64_t>::max()}) ==
        std::to_string(std::numeric_limits<std::uint64_t>::max()));
  auto next = generator(2);
  for (int i = 0; i < 100; ++i) {
    const auto number = static_cast<std::int64_t>(next() * 0x9e3779b97f4a7c15ull) >> (i % 64);
    CHECK(joined({number}) == std::to_string(number));
    CHECK(joined({static_cast<std::int32_t>(number)}) == std::to_string(static_cast<std::int32_t>(number)));
  }
}

}  // namespace ferry_test::containers_test
