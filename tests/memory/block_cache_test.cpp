// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/block_cache.hpp"
#include "support/test.hpp"

namespace ferry_test::block_cache_test {

TEMPLATE_TEST_CASE("a block that came back is handed out again", "[block_cache]", ferry::pinned_space,
                   ferry::pageable_space) {
  ferry::detail::block_cache<TestType> cache;
  auto lease = cache.take(100000);
  void* const block = lease.get();
  std::memset(block, 1, 100000);
  auto second = cache.take(100000);
  CHECK(second.get() != block);
  lease.reset();
  // A little more or less is the same block.
  auto third = cache.take(99000);
  CHECK(third.get() == block);
  std::memset(third.get(), 2, 99000);
  third.reset();
  // A far smaller request does not waste it, a larger one can't have it.
  const auto small = cache.take(1000);
  CHECK(small.get() != block);
  const auto large = cache.take(200000);
  CHECK(large.get() != block);
  std::memset(large.get(), 3, 200000);
}

TEMPLATE_TEST_CASE("a block has at least the asked size", "[block_cache]", ferry::pinned_space,
                   ferry::pageable_space) {
  ferry::detail::block_cache<TestType> cache;
  std::vector<std::shared_ptr<void>> leases;
  for (const std::size_t bytes :
       {0u, 1u, 4095u, 4096u, 4097u, 5000u, 65535u, 65537u, (1u << 20) + 1u, 3000001u}) {
    leases.push_back(cache.take(bytes));
    REQUIRE(leases.back() != nullptr);
    std::memset(leases.back().get(), static_cast<int>(leases.size()), bytes);
  }
  // None lies in another.
  CHECK(*static_cast<char*>(leases[1].get()) == 2);
  CHECK(static_cast<char*>(leases[9].get())[3000000] == 10);
  CHECK(static_cast<char*>(leases[8].get())[1 << 20] == 9);
}

TEST_CASE("copies of a lease share it; it comes back with the last of them", "[block_cache]") {
  ferry::detail::block_cache<ferry::pageable_space> cache;
  auto lease = cache.take(10000);
  void* block = lease.get();
  auto copy = lease;
  lease.reset();
  CHECK(cache.take(10000).get() != block);
  copy.reset();
  const auto first = cache.take(10000);
  const auto second = cache.take(10000);
  CHECK((first.get() == block || second.get() == block));
}

TEST_CASE("a lease may outlive its cache", "[block_cache]") {
  std::optional<ferry::detail::block_cache<ferry::pageable_space>> cache(std::in_place);
  auto lease = cache->take(10000);
  auto spare = cache->take(10000);
  spare.reset();
  cache.reset();
  std::memset(lease.get(), 5, 10000);
  CHECK(static_cast<char*>(lease.get())[9999] == 5);
}

TEST_CASE("several threads take from one cache", "[block_cache]") {
  ferry::detail::block_cache<ferry::pageable_space> cache;
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t)
    workers.emplace_back([&cache, &bad = wrong[static_cast<std::size_t>(t)], t] {
      for (int i = 0; i < 200; ++i) {
        const std::size_t bytes = 5000 + 100 * static_cast<std::size_t>(i % 7);
        const auto lease = cache.take(bytes);
        auto* data = static_cast<unsigned char*>(lease.get());
        std::memset(data, t + 1, bytes);
        std::this_thread::yield();
        for (std::size_t b = 0; b < bytes; b += 97) bad += data[b] != t + 1;
      }
    });
  for (auto& thread : workers) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace ferry_test::block_cache_test
