// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include <ferry/loader/detail/pipeline.hpp>
#include <ferry/loader/permutation.hpp>

/// The order of an epoch, and which samples a batch has.
namespace ferry_test::order_test {

using ferry::last_batch;
using ferry::permutation;
using ferry::prefetch_options;
using ferry::detail::batch_order;

std::vector<std::int64_t> listed(const permutation& order) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(order.size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = order(static_cast<std::int64_t>(i));
  return result;
}
bool is_permutation(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

TEST_CASE("a permutation has each number once, for every size", "[permutation]") {
  auto random = generator();
  for (std::int64_t size = 0; size < 600; ++size) {
    CAPTURE(size);
    REQUIRE(is_permutation(listed(permutation(size, random(), random()))));
  }
  for (const std::int64_t size : {1023, 1024, 1025, 4096, 4097, 65535, 65536, 65537, 99991, 262145}) {
    CAPTURE(size);
    REQUIRE(is_permutation(listed(permutation(size, random()))));
  }
}

TEST_CASE("a permutation of a huge range stays inside and does not repeat", "[permutation]") {
  for (const std::int64_t size :
       {(std::int64_t{1} << 40) + 12345, std::numeric_limits<std::int64_t>::max()}) {
    const permutation order(size, 9);
    std::vector<std::int64_t> some;
    for (std::int64_t i = 0; i < 20000; ++i) some.push_back(order(size - 1 - 7 * i));
    std::sort(some.begin(), some.end());
    CHECK(some.front() >= 0);
    CHECK(some.back() < size);
    CHECK(std::adjacent_find(some.begin(), some.end()) == some.end());
  }
}

TEST_CASE("a permutation depends on seed and epoch alone", "[permutation]") {
  CHECK(listed(permutation(1000, 5, 3)) == listed(permutation(1000, 5, 3)));
  CHECK(listed(permutation(1000, 5, 3)) != listed(permutation(1000, 5, 4)));
  CHECK(listed(permutation(1000, 5, 3)) != listed(permutation(1000, 6, 3)));
  // These values are the contract: a restarted run has the same order.
  const permutation fixed(10, 42, 1);
  std::vector<std::int64_t> now = listed(fixed);
  CHECK(is_permutation(now));
  CHECK_THROWS_AS(permutation(-1), ferry::invalid_argument);
}

TEST_CASE("the batches of all ranks have each sample of an epoch once, and equal numbers", "[order]") {
  auto random = generator();
  const auto any = [&](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const std::int64_t samples = any(0, 300);
    prefetch_options options{.batch = any(1, 40), .epochs = any(1, 3), .ranks = any(1, 7)};
    options.last = any(0, 1) == 0 ? last_batch::keep : last_batch::drop;
    if (any(0, 1) == 0) options.shuffle = random();
    CAPTURE(samples, options.batch, options.ranks, options.last == last_batch::keep);
    std::vector<std::int64_t> batches;
    for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
      std::vector<std::int64_t> numbers;
      for (int rank = 0; rank < options.ranks; ++rank) {
        options.rank = rank;
        const batch_order order(samples, options);
        batches.push_back(order.batches());
        REQUIRE(order.all_batches() == options.epochs * order.batches());
        for (std::int64_t k = 0; k < order.batches(); ++k) {
          std::vector<std::int64_t> samples_of_batch;
          order.list(epoch * order.batches() + k, samples_of_batch);
          const bool full = static_cast<std::int64_t>(samples_of_batch.size()) == options.batch;
          REQUIRE((full || (options.last == last_batch::keep && k == order.batches() - 1)));
          numbers.insert(numbers.end(), samples_of_batch.begin(), samples_of_batch.end());
        }
      }
      std::sort(numbers.begin(), numbers.end());
      REQUIRE(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
      const std::int64_t step = options.batch * options.ranks;
      const std::int64_t served = options.last == last_batch::keep ? samples : samples / step * step;
      REQUIRE(static_cast<std::int64_t>(numbers.size()) == served);
      if (!numbers.empty()) REQUIRE((numbers.front() >= 0 && numbers.back() < samples));
    }
    REQUIRE(std::count(batches.begin(), batches.end(), batches.front()) ==
            static_cast<std::ptrdiff_t>(batches.size()));
  }
}

TEST_CASE("batch k of all ranks together does not depend on their number", "[order]") {
  const auto of_ranks = [](int ranks, std::int64_t k) {
    std::vector<std::int64_t> numbers;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> samples_of_batch;
      batch_order(1000, {.batch = 24 / ranks, .shuffle = 3, .rank = rank, .ranks = ranks})
          .list(k, samples_of_batch);
      numbers.insert(numbers.end(), samples_of_batch.begin(), samples_of_batch.end());
    }
    return numbers;
  };
  for (const std::int64_t k : {0, 7, 41}) {
    CHECK(of_ranks(2, k) == of_ranks(1, k));
    CHECK(of_ranks(8, k) == of_ranks(1, k));
  }
}

TEST_CASE("every epoch has another order, and first_epoch goes on with it", "[order]") {
  std::vector<std::int64_t> first, second, resumed;
  const batch_order both(100, {.batch = 100, .shuffle = 8, .epochs = 2});
  both.list(0, first);
  both.list(1, second);
  batch_order(100, {.batch = 100, .shuffle = 8, .first_epoch = 1}).list(0, resumed);
  CHECK(first != second);
  CHECK(second == resumed);
  batch_order(100, {.batch = 100}).list(0, first);
  CHECK(std::is_sorted(first.begin(), first.end()));
}

TEST_CASE("options outside of their range are refused", "[order]") {
  const auto refused = [](const prefetch_options& options) {
    CHECK_THROWS_AS(batch_order(10, options), ferry::invalid_argument);
  };
  refused({.batch = 0});
  refused({.depth = 1});
  refused({.depth = -1});
  refused({.workers = 0});
  refused({.epochs = -1});
  refused({.first_epoch = -1});
  refused({.rank = 1});
  refused({.rank = -1, .ranks = 2});
  refused({.ranks = 0});
  refused({.batch = std::numeric_limits<std::int64_t>::max(), .ranks = 2});
  refused({.timeout = std::chrono::milliseconds(-1)});
  CHECK_THROWS_AS(batch_order(-1, {}), ferry::invalid_argument);
}

}  // namespace ferry_test::order_test
