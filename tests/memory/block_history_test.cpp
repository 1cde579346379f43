// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/block_cache.hpp"
#include "support/heap_space.hpp"
#include "support/test.hpp"

#include <ferry/memory/detail/access_tracker.hpp>

#include <catch2/generators/catch_generators_range.hpp>

#include <set>

/// Random histories of blocks and tensors on several instances, held against a model of what is ordered after
/// what: a taker of a block comes after all of its uses that have not ended.
namespace ferry_test::block_history_test {

struct history_tag {
  static constexpr std::string_view name = "history_space";
};
using cache = ferry::detail::block_cache<heap_space<history_tag>>;
using ferry::detail::instance_id;

/// A point in the work of an instance, with all points that happen before it.
class model_event final : public ferry::detail::event {
 public:
  explicit model_event(const std::set<model_event*>& earlier) : before(earlier) { before.insert(this); }
  void wait() override { end(); }
  [[nodiscard]] bool ready() override { return ended; }
  void end() {
    for (model_event* const point : before) point->ended = true;
  }

  std::set<model_event*> before;
  bool ended = false;
};
using model_handle = std::shared_ptr<model_event>;

struct model {
  explicit model(unsigned seed) : random(seed) {}

  int number(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); }
  /// Enqueues work of an instance, which the event stands for.
  model_handle enqueue(instance_id who) {
    auto work = std::make_shared<model_event>(known[who]);
    known[who].insert(work.get());
    events.push_back(work);
    return work;
  }
  void order_after(instance_id who, ferry::detail::event& earlier) {
    const auto& before = dynamic_cast<model_event&>(earlier).before;
    known[who].insert(before.begin(), before.end());
  }
  [[nodiscard]] bool is_ordered(instance_id who, const std::vector<model_handle>& uses) const {
    const auto after = known.find(who);
    for (const auto& use : uses)
      if (!use->ended && (after == known.end() || after->second.count(use.get()) == 0)) return false;
    return true;
  }

  std::mt19937 random;
  std::map<instance_id, std::set<model_event*>> known;  ///< what the next work of an instance comes after
  std::vector<model_handle> events;
};

struct block_in_use {
  std::shared_ptr<void> lease;
  instance_id taker;
};

TEST_CASE("whoever takes a block comes after all of its uses", "[block_history]") {
  const unsigned seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  model world(seed);
  cache pool;
  std::map<void*, std::vector<model_handle>> uses;
  std::vector<block_in_use> in_use;
  bool ordered = true;
  constexpr int instances = 12;
  for (int turn = 0; turn < 1000; ++turn) {
    const auto who = static_cast<instance_id>(1 + world.number(instances));
    const int choice = world.number(10);
    if (choice < 3) {
      auto lease =
          pool.take(5000, who, [&](ferry::detail::event& earlier) { world.order_after(who, earlier); });
      ordered = ordered && world.is_ordered(who, uses[lease.get()]);
      in_use.push_back({std::move(lease), who});
    } else if (choice == 3) {
      auto lease = pool.take(5000);
      ordered = ordered && world.is_ordered(0, uses[lease.get()]);
      in_use.push_back({std::move(lease), who});
    } else if (choice < 7 && !in_use.empty()) {  // a verb of the taker, or of another instance
      block_in_use& block = in_use[static_cast<std::size_t>(world.number(static_cast<int>(in_use.size())))];
      auto* const lent = ferry::detail::block_of_lease(block.lease);
      const instance_id user = world.number(4) == 0 ? who : block.taker;
      lent->promise();
      if (world.number(5) == 0) {
        lent->withdraw();
      } else {
        auto work = world.enqueue(user);
        uses[block.lease.get()].push_back(work);
        lent->record(true, work, user);
      }
    } else if (choice < 9 && !in_use.empty()) {
      const auto place = world.number(static_cast<int>(in_use.size()));
      in_use.erase(in_use.begin() + place);
    } else if (!world.events.empty()) {
      world.events[static_cast<std::size_t>(world.number(static_cast<int>(world.events.size())))]->end();
    }
    if (world.number(200) == 0) ferry::trim<heap_space<history_tag>>();
    if (!ordered) break;
  }
  CHECK(ordered);
  in_use.clear();
}

TEST_CASE("work on a tensor comes after what conflicts with it", "[block_history]") {
  const unsigned seed = GENERATE(range(0u, 20u));
  CAPTURE(seed);
  model world(seed);
  ferry::detail::access_tracker tensor;
  std::vector<model_handle> reads, writes;
  bool ordered = true;
  for (int turn = 0; turn < 1000 && ordered; ++turn) {
    const auto who = static_cast<instance_id>(1 + world.number(6));
    const bool writing = world.number(3) == 0;
    if (world.number(20) == 0) {
      writing ? tensor.wait_for_all() : tensor.wait_for_writes();
      ordered = world.is_ordered(0, writes) && (!writing || world.is_ordered(0, reads));
    } else if (world.number(4) == 0 && !world.events.empty()) {
      world.events[static_cast<std::size_t>(world.number(static_cast<int>(world.events.size())))]->end();
    } else {
      for (const auto& earlier : writing ? tensor.before_write(who) : tensor.before_read(who))
        world.order_after(who, *earlier);
      ordered = world.is_ordered(who, writes) && (!writing || world.is_ordered(who, reads));
      tensor.promise();
      if (world.number(5) == 0) {
        tensor.withdraw();
      } else {
        auto work = world.enqueue(who);
        (writing ? writes : reads).push_back(work);
        tensor.record(writing, work, who);
      }
    }
  }
  CHECK(ordered);
}

}  // namespace ferry_test::block_history_test
