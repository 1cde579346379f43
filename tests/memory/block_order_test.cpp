// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/block_cache.hpp"
#include "support/block_uses.hpp"
#include "support/heap_space.hpp"
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <future>
#include <set>

/// Blocks that come back while work still uses them: who may have them, and when.
namespace ferry_test::block_order_test {

struct order_tag {
  static constexpr std::string_view name = "order_space";
};
using space = heap_space<order_tag>;
using cache = ferry::detail::block_cache<space>;
constexpr std::size_t size = 10000;

/// Notes what a taker was ordered after.
struct order_log {
  void operator()(ferry::detail::event& before) { after.push_back(&before); }
  std::vector<ferry::detail::event*> after;
};

std::shared_ptr<manual_event> put_back(std::shared_ptr<void>& lease, ferry::detail::instance_id who) {
  auto work = std::make_shared<manual_event>();
  REQUIRE(release_after(lease, work, who));
  CHECK(lease == nullptr);
  return work;
}

/// Blocks of `pool` that are in flight, as many as it lets be, each by an instance of its own from `who` on.
std::vector<std::shared_ptr<manual_event>> fill(cache& pool, std::size_t count,
                                                ferry::detail::instance_id who) {
  std::vector<std::shared_ptr<void>> leases;
  for (std::size_t i = 0; i < count; ++i) leases.push_back(pool.take(size));
  std::vector<std::shared_ptr<manual_event>> work;
  for (auto& lease : leases) work.push_back(put_back(lease, who++));
  return work;
}

TEST_CASE("the same instance has its block back at once", "[block_order]") {
  cache pool;
  order_log order;
  auto lease = pool.take(size, 7, order);
  void* const block = lease.get();
  std::shared_ptr<manual_event> work;
  for (int call = 0; call < 100; ++call) {
    work = put_back(lease, 7);
    lease = pool.take(size, 7, order);
    CHECK(lease.get() == block);
    CHECK(work->questions == 0);
    CHECK(work->waits == 0);
  }
  CHECK(order.after.empty());
  work->end();  // the cache ends after it
}

TEST_CASE("others get a block of their own while it is in ticket_state, and this one once it is not",
          "[block_order]") {
  cache pool;
  order_log order;
  auto lease = pool.take(size, 7, order);
  void* const block = lease.get();
  const auto work = put_back(lease, 7);
  CHECK(pool.take(size, 8, order).get() != block);
  CHECK(pool.take(size).get() != block);
  CHECK(ferry::memory_statistics<space>().reserved >= size);
  work->end();
  ferry::trim<space>();
  CHECK(ferry::memory_statistics<space>().current == 0);
  // With the event ended it is anybody's.
  lease = pool.take(size, 7, order);
  void* const second = lease.get();
  put_back(lease, 7)->end();
  lease = pool.take(size, 8, order);
  CHECK(lease.get() == second);
  put_back(lease, 8)->end();
  CHECK(pool.take(size).get() == second);
  CHECK(order.after.empty());
}

TEST_CASE("a block without an event is anybody's", "[block_order]") {
  cache pool;
  order_log order;
  auto lease = pool.take(size, 7, order);
  void* const block = lease.get();
  CHECK(release_after(lease, nullptr, 7));
  lease = pool.take(size);
  CHECK(lease.get() == block);
  lease.reset();
  CHECK(pool.take(size, 8, order).get() == block);
}

TEST_CASE("beyond a number of blocks in ticket_state a taker is ordered after one of them", "[block_order]") {
  cache pool;
  const auto work = fill(pool, cache::in_flight_limit, 1);
  const auto bytes = ferry::memory_statistics<space>().current;
  order_log order;
  auto lease = pool.take(size, 100, order);
  REQUIRE(order.after.size() == 1);
  CHECK(order.after[0] == work[0].get());
  CHECK(ferry::memory_statistics<space>().current == bytes);
  // Back from there it needs only the last taker's order.
  void* const block = lease.get();
  const auto mine = put_back(lease, 100);
  CHECK(pool.take(size, 100, order).get() == block);
  CHECK(order.after.size() == 1);
  for (const auto& event : work) event->end();
  mine->end();
}

TEST_CASE("detached calls in a loop use a bounded number of blocks", "[block_order]") {
  const bool one_instance = GENERATE(true, false);
  cache pool;
  std::set<void*> addresses;
  std::vector<std::shared_ptr<manual_event>> work;
  order_log order;
  for (ferry::detail::instance_id call = 0; call < 200; ++call) {
    const ferry::detail::instance_id who = one_instance ? 1 : call;
    auto first = pool.take(size, who, order), second = pool.take(size / 2, who, order);
    addresses.insert(first.get());
    addresses.insert(second.get());
    work.push_back(put_back(first, who));
    work.push_back(put_back(second, who));
  }
  CHECK(addresses.size() <= (one_instance ? 2 : 2 * cache::in_flight_limit));
  for (const auto& event : work) CHECK(event->waits == 0);
  for (const auto& event : work) event->end();
}

TEST_CASE("the host waits for a block where too many are in ticket_state", "[block_order]") {
  cache pool;
  const auto work = fill(pool, cache::in_flight_limit, 1);
  auto taker = std::async(std::launch::async, [&] { return pool.take(size); });
  while (work[0]->waits == 0) std::this_thread::yield();
  CHECK(taker.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  work[0]->end();
  CHECK(taker.get() != nullptr);
  for (const auto& event : work) event->end();
}

TEST_CASE("earlier work stays with a block that was put back unused", "[block_order]") {
  cache pool;
  order_log order;
  auto lease = pool.take(size, 7, order);
  void* const block = lease.get();
  const auto work = put_back(lease, 7);
  lease = pool.take(size, 7, order);
  REQUIRE(lease.get() == block);
  SECTION("dropped") { lease.reset(); }
  SECTION("with another instance's event, which does not come after the first one's") {
    put_back(lease, 8)->end();
  }
  CHECK(pool.take(size).get() != block);
  work->end();
  CHECK(pool.take(size).get() != nullptr);
}

TEST_CASE("a block that several instances used is free when all of them have ended", "[block_order]") {
  cache pool;
  auto lease = pool.take(size);
  void* const block = lease.get();
  auto copy = lease, third = lease;
  const auto first = std::make_shared<manual_event>(), second = std::make_shared<manual_event>();
  CHECK(release_after(copy, first, 1));
  CHECK(release_after(third, second, 2));
  order_log order;
  auto loan = pool.take(size, 1, order);  // still on loan
  CHECK(loan.get() != block);
  lease.reset();
  CHECK(pool.take(size, 1, order).get() != block);
  first->end();
  CHECK(pool.take(size).get() != block);
  // The first instance is free of its own work, not of the other's.
  auto spare = pool.take(size);
  CHECK(spare.get() != block);
  second->end();
  auto repeat = pool.take(size, 3, order);
  auto more = pool.take(size, 3, order);
  CHECK((repeat.get() == block || more.get() == block));
  CHECK(order.after.empty());
}

TEST_CASE("a taker that can't be ordered leaves the block and its work in the cache", "[block_order]") {
  cache pool;
  const auto work = fill(pool, cache::in_flight_limit, 1);
  const auto before = ferry::memory_statistics<space>();
  CHECK_THROWS_AS(pool.take(size, 100, [](ferry::detail::event&) { throw std::runtime_error("no"); }),
                  std::runtime_error);
  CHECK(ferry::memory_statistics<space>().reserved == before.reserved);
  CHECK(ferry::trim<space>() == 0);
  for (const auto& event : work) event->end();
  CHECK(ferry::trim<space>() == before.reserved);
}

TEST_CASE("a cache and its late leases end after the work on their blocks", "[block_order]") {
  std::optional<cache> pool(std::in_place);
  auto late = pool->take(size);
  auto lease = pool->take(size);
  const auto work = put_back(lease, 1);
  auto end_of_cache = std::async(std::launch::async, [&] { pool.reset(); });
  while (work->waits == 0) std::this_thread::yield();
  work->end();
  end_of_cache.get();
  CHECK(ferry::memory_statistics<space>().count == 1);
  const auto last = std::make_shared<manual_event>();
  auto end_of_lease = std::async(std::launch::async, [&] { release_after(late, last, 1); });
  while (last->waits == 0) std::this_thread::yield();
  CHECK(ferry::memory_statistics<space>().count == 1);
  last->end();
  end_of_lease.get();
  CHECK(ferry::memory_statistics<space>().count == 0);
}

TEST_CASE("only leases can be released after an event", "[block_order]") {
  std::shared_ptr<void> owner = std::make_shared<int>(3);
  CHECK_FALSE(release_after(owner, nullptr, 1));
  CHECK(owner != nullptr);
  std::shared_ptr<void> nothing;
  CHECK_FALSE(release_after(nothing, nullptr, 1));
}

TEST_CASE("blocks are little larger than what is asked for", "[block_order]") {
  CHECK(cache::block_bytes(0) == 4096);
  CHECK(cache::block_bytes(4096) == 4096);
  for (std::size_t bytes = 4097; bytes < (std::size_t{1} << 62); bytes += bytes / 37 + 1) {
    const std::size_t block = cache::block_bytes(bytes);
    REQUIRE(block >= bytes);
    REQUIRE(static_cast<double>(block) <= 1.125 * static_cast<double>(bytes));
    REQUIRE(cache::block_bytes(block) == block);
    REQUIRE(cache::largest_reused(bytes) >= block);
    REQUIRE(static_cast<double>(cache::largest_reused(bytes)) <= 1.266 * static_cast<double>(bytes));
  }
  for (std::size_t bits = 12; bits < 62; ++bits)
    CHECK(cache::block_bytes(std::size_t{1} << bits) == std::size_t{1} << bits);
  CHECK(cache::block_bytes(~std::size_t{0}) == ~std::size_t{0});
  CHECK_THROWS_AS(ferry::detail::block_cache<ferry::pageable_space>{}.take(~std::size_t{0} - 5),
                  ferry::bad_alloc);
}

}  // namespace ferry_test::block_order_test
