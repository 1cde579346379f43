// SPDX-License-Identifier: Apache-2.0
#include "../../src/memory/tensor_pool.hpp"
#include "support/heap_space.hpp"
#include "support/manual_event.hpp"
#include "support/test.hpp"

#include <future>
#include <mutex>
#include <set>

namespace ferry_test::tensor_pool_test {

/// Host memory that is placed near one of four devices.
struct near_space {
  using ferry_memory_space = near_space;
  static constexpr std::string_view name = "near_space";
  static constexpr bool is_host_accessible = true;
  static constexpr bool is_device_mapped = true;
};

}  // namespace ferry_test::tensor_pool_test

template <>
struct ferry::device_backend<ferry_test::tensor_pool_test::near_space> {
  using space = ferry_test::tensor_pool_test::near_space;
  static int default_device() { return 0; }
  static int device_count() { return 4; }
  static std::size_t idle_limit(space, int) { return 100000; }
  static memory_block allocate(space, std::size_t bytes, const std::string&) {
    return {std::malloc(bytes), bytes, 0, 0};
  }
  static void deallocate(space, const memory_block& block) noexcept { std::free(block.data); }
  static std::string describe(space, const memory_block&) { return "near memory"; }
};

/// Memory of ended tensors: who may have it, and when.
namespace ferry_test::tensor_pool_test {

struct pool_tag {
  static constexpr std::string_view name = "idle_space";
};
using space = heap_space<pool_tag>;
using pool = ferry::detail::tensor_pool<space>;
using tracker = ferry::detail::access_tracker;
using memory = std::shared_ptr<ferry::detail::allocation<space>>;
constexpr std::size_t size = 10000, limit = 100 * size;

void make_room_in(pool& idle_pool, std::size_t bytes = limit) { idle_pool.limit(-1, bytes); }

/// A tensor allocates, verbs use it, and it ends.
struct tensor_stand_in {
  explicit tensor_stand_in(pool& home, std::size_t bytes = size, const std::string& label = "tensor::batch")
      : block(home.allocate(label, bytes, -1)) {}
  void end() { pool::end(std::move(block), *uses); }
  [[nodiscard]] void* data() const { return block->data(); }

  memory block;
  std::shared_ptr<tracker> uses = std::make_shared<tracker>();
};

std::size_t bytes_of_label(const std::string& label) {
  for (const auto& entry_of : ferry::memory_by_label<space>())
    if (entry_of.label == label) return entry_of.current;
  return 0;
}

TEST_CASE("the next tensor of a size has the memory of the last one", "[tensor_pool]") {
  {
    pool idle_pool;
    make_room_in(idle_pool);
    tensor_stand_in first(idle_pool);
    void* const block = first.data();
    CHECK(bytes_of_label("ferry::tensor::batch") == size);
    first.end();
    CHECK(bytes_of_label("ferry::tensor::batch") == 0);
    CHECK(bytes_of_label("ferry::pool::idle_space") == size);
    auto statistics = ferry::memory_statistics<space>();
    CHECK(statistics.current == size);
    CHECK(statistics.reserved == size);
    CHECK(statistics.count == 1);

    tensor_stand_in larger(idle_pool, size + 1);
    CHECK(larger.data() != block);
    tensor_stand_in second(idle_pool, size, "tensor::second");
    CHECK(second.data() == block);
    CHECK(bytes_of_label("ferry::tensor::second") == size);
    CHECK(bytes_of_label("ferry::pool::idle_space") == 0);
    statistics = ferry::memory_statistics<space>();
    CHECK(statistics.current == 2 * size + 1);
    CHECK(statistics.reserved == 0);
    CHECK(statistics.count == 2);
    CHECK(statistics.total_count == 2);  // one of them twice
    second.end();
    larger.end();
    CHECK(ferry::trim<space>() == 2 * size + 1);
    CHECK(ferry::memory_statistics<space>().current == 0);
    tensor_stand_in last(idle_pool);
    last.end();
  }
  CHECK(ferry::memory_statistics<space>().current == 0);  // with the pool
  CHECK(space::usage == 0);
}

TEST_CASE("memory that verbs in flight use is nobody else's, and nobody waits for it", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  const auto read = std::make_shared<manual_event>(), write = std::make_shared<manual_event>();
  tensor_stand_in first(idle_pool);
  void* const block = first.data();
  // The read comes after the write of the same instance, or before it: both count.
  first.uses->add_write(write, 7);
  first.uses->add_read(read, 7);
  first.end();
  const auto check_busy = [&] {
    tensor_stand_in next(idle_pool);
    CHECK(next.data() != block);
    next.end();
    ferry::trim<space>();  // frees the memory of `next` alone
    CHECK(ferry::memory_statistics<space>().current == size);
  };
  check_busy();
  write->end();
  check_busy();
  CHECK(read->waits + write->waits == 0);
  read->end();
  tensor_stand_in last(idle_pool);
  CHECK(last.data() == block);
  last.end();
}

TEST_CASE("work of the next tensor does not hide that of the last one", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  tensor_stand_in first(idle_pool);
  void* const block = first.data();
  const auto old_work = std::make_shared<manual_event>(), new_work = std::make_shared<manual_event>();
  first.uses->add_write(old_work, 1);
  first.end();
  old_work->end();
  tensor_stand_in second(idle_pool);
  REQUIRE(second.data() == block);
  second.uses->add_write(new_work, 1);
  second.end();
  tensor_stand_in third(idle_pool);
  CHECK(third.data() != block);
  new_work->end();
  third.end();
}

TEST_CASE("budgets and full memory take back what lies idle", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  tensor_stand_in idle(idle_pool), busy(idle_pool);
  const auto work = std::make_shared<manual_event>();
  busy.uses->add_read(work, 3);
  idle.end();
  busy.end();
  ferry::set_memory_budget<space>(2 * size + 500);
  {
    // A size of its own: the idle block goes, the busy one stays.
    tensor_stand_in larger(idle_pool, size + 100);
    CHECK(work->waits == 0);
    CHECK(ferry::memory_statistics<space>().current == 2 * size + 100);
    larger.end();
  }
  // Only busy memory could make room, so the allocation waits for its work.
  tensor_stand_in first(idle_pool, size + 100);
  auto second =
      std::async(std::launch::async, [&] { return idle_pool.allocate("tensor::late", size + 200, -1); });
  while (work->waits == 0) std::this_thread::yield();
  CHECK(second.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  work->end();
  const memory late = second.get();
  CHECK_THROWS_AS(idle_pool.allocate("tensor::more", size, -1), ferry::budget_exceeded);
  ferry::set_memory_budget<space>(0);
  first.end();
  // bad_alloc of the system is preceded by the same.
  space::limit = late->bytes() + size + 300;
  tensor_stand_in third(idle_pool, size + 300);
  CHECK(third.block->bytes() == size + 300);
  CHECK_THROWS_AS(idle_pool.allocate("tensor::more", size, -1), ferry::bad_alloc);
  space::limit = ~std::size_t{0};
  third.end();
}

TEST_CASE("the blocks that returned first are freed above the limit", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool, 4 * size);
  std::vector<tensor_stand_in> tensors;
  for (int i = 0; i < 5; ++i) tensors.emplace_back(idle_pool);
  std::vector<void*> blocks;
  for (auto& entry_of : tensors) {
    blocks.push_back(entry_of.data());
    entry_of.end();
  }
  CHECK(ferry::memory_statistics<space>().current == 4 * size);
  for (std::size_t i = 1; i < 5; ++i) {
    tensors[i] = tensor_stand_in(idle_pool);
    CHECK(tensors[i].data() == blocks[i]);
  }
  // Busy ones stay, so the last one to return is freed.
  std::vector<std::shared_ptr<manual_event>> work;
  for (std::size_t i = 1; i < 5; ++i) {
    work.push_back(std::make_shared<manual_event>());
    tensors[i].uses->add_write(work.back(), i);
    tensors[i].end();
  }
  tensor_stand_in last(idle_pool);
  last.end();
  CHECK(ferry::memory_statistics<space>().current == 4 * size);
  for (const auto& entry_of : work) {
    CHECK(entry_of->waits == 0);
    entry_of->end();
  }
  ferry::trim<space>();
  CHECK(ferry::memory_statistics<space>().current == 0);
  // A table is above a part of the limit.
  tensor_stand_in table(idle_pool, size + 1);
  table.end();
  CHECK(ferry::memory_statistics<space>().current == 0);
  idle_pool.limit(-1, 0);
  tensor_stand_in small(idle_pool, 8);
  small.end();
  CHECK(ferry::memory_statistics<space>().current == 0);
  // And there are not more than a number of small ones.
  idle_pool.limit(-1, limit);
  std::vector<tensor_stand_in> many;
  for (std::size_t i = 0; i < pool::max_blocks + 10; ++i) many.emplace_back(idle_pool, 64);
  for (auto& entry_of : many) entry_of.end();
  CHECK(ferry::memory_statistics<space>().count == pool::max_blocks);
}

TEST_CASE("a budget below what is held refuses idle memory, too", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  tensor_stand_in live(idle_pool, 3000), gone(idle_pool, 2000);
  gone.end();
  ferry::set_memory_budget<space>(4000);
  CHECK_THROWS_AS(idle_pool.allocate("tensor::more", 2000, -1), ferry::budget_exceeded);
  CHECK(ferry::memory_statistics<space>().current == 3000);  // what lay idle went first
  CHECK(idle_pool.allocate("tensor::less", 1000, -1)->bytes() == 1000);
  ferry::set_memory_budget<space>(0);
}

/// A budget or the system has no room but for a block that another thread is freeing.
void allocate_beside_a_trim(pool& idle_pool, bool by_trim) {
  tensor_stand_in gone(idle_pool, 2000);
  gone.end();
  space::closing = true;
  auto first = std::async(std::launch::async, [&] {
    if (!by_trim) return idle_pool.allocate("tensor::first", 900, -1);
    ferry::trim<space>();
    return memory();
  });
  while (space::closed == 0) std::this_thread::yield();
  auto second = std::async(std::launch::async, [&] { return idle_pool.allocate("tensor::second", 950, -1); });
  CHECK(second.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  space::closing = false;
  space::closing.notify_all();
  first.get();
  CHECK(second.get()->bytes() == 950);
}

TEST_CASE("an allocation waits for idle memory that another thread frees", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  for (const bool by_trim : {false, true}) {
    ferry::set_memory_budget<space>(2000);
    allocate_beside_a_trim(idle_pool, by_trim);
    ferry::set_memory_budget<space>(0);
    ferry::trim<space>();
    space::limit = 2000;
    allocate_beside_a_trim(idle_pool, by_trim);
    space::limit = ~std::size_t{0};
    ferry::trim<space>();
  }
}

TEST_CASE("the end of a tensor does not wait for its work", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  std::vector<tensor_stand_in> tensors;
  std::vector<std::shared_ptr<manual_event>> work;
  for (std::size_t i = 0; i < pool::max_blocks + 3; ++i) {
    tensors.emplace_back(idle_pool, 64);
    work.push_back(std::make_shared<manual_event>());
    tensors.back().uses->add_write(work.back(), i);
  }
  for (auto& tensor : tensors) tensor.end();
  CHECK(std::all_of(work.begin(), work.end(), [](const auto& event) { return event->waits == 0; }));
  CHECK(ferry::memory_statistics<space>().count == pool::max_blocks + 3);
  for (const auto& event : work) event->end();
  tensor_stand_in last(idle_pool, 128);
  last.end();
  CHECK(ferry::memory_statistics<space>().count == pool::max_blocks);
}

TEST_CASE("host memory near several devices has one limit", "[tensor_pool]") {
  using near_pool = ferry::detail::tensor_pool<near_space>;
  near_pool idle_pool;
  std::vector<std::shared_ptr<ferry::detail::allocation<near_space>>> tensors;
  std::set<void*> near_two;
  for (int device = 0; device < 4; ++device)
    for (int i = 0; i < 3; ++i) {
      tensors.push_back(idle_pool.allocate("tensor::batch", 20000, device));
      if (device == 2) near_two.insert(tensors.back()->data());
    }
  tracker unused;
  for (auto& tensor : tensors) near_pool::end(std::move(tensor), unused);
  CHECK(ferry::memory_statistics<near_space>().reserved == 100000);
  // The last two of device 2 are among the five that returned last.
  for (int i = 0; i < 2; ++i) {
    tensors[static_cast<std::size_t>(i)] = idle_pool.allocate("tensor::batch", 20000, 2);
    CHECK(near_two.count(tensors[static_cast<std::size_t>(i)]->data()) == 1);
  }
  CHECK(ferry::memory_statistics<near_space>().reserved == 60000);
  CHECK(idle_pool.allocate("tensor::batch", 20000, 1) != nullptr);
  CHECK(ferry::memory_statistics<near_space>().reserved == 60000);
}

TEST_CASE("memory with other owners or unknown users does not come back", "[tensor_pool]") {
  pool idle_pool;
  make_room_in(idle_pool);
  tensor_stand_in shared(idle_pool);
  {
    const memory owner = shared.block;
    shared.end();
    CHECK(ferry::memory_statistics<space>().reserved == 0);
    CHECK(ferry::memory_statistics<space>().current == size);
  }
  CHECK(ferry::memory_statistics<space>().current == 0);
  tensor_stand_in lent(idle_pool);
  lent.uses->record_untracked_use();
  lent.end();
  CHECK(ferry::memory_statistics<space>().current == 0);
  tensor_stand_in exported(idle_pool);
  exported.block->keep_with([](void*, auto&) noexcept { return false; }, nullptr);
  exported.end();
  CHECK(ferry::memory_statistics<space>().current == 0);
}

TEST_CASE("tensors and pools end in any order", "[tensor_pool]") {
  auto idle_pool = std::make_unique<pool>();
  make_room_in(*idle_pool);
  tensor_stand_in early(*idle_pool), late(*idle_pool);
  const auto work = std::make_shared<manual_event>();
  early.uses->add_write(work, 2);
  early.end();
  auto end = std::async(std::launch::async, [&] { idle_pool.reset(); });
  while (work->waits == 0) std::this_thread::yield();
  CHECK(end.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  work->end();
  end.get();
  CHECK(ferry::memory_statistics<space>().current == size);
  late.end();
  CHECK(ferry::memory_statistics<space>().current == 0);
  CHECK(space::usage == 0);
}

TEST_CASE("threads never share memory that is in use", "[tensor_pool][threads]") {
  struct entry {
    std::shared_ptr<manual_event> work;
    std::uint64_t* words;
    std::uint64_t stamp;
  };
  {
    pool idle_pool;
    make_room_in(idle_pool, 64 * 1024);
    std::atomic<bool> goes_on{true};
    std::mutex guard;
    std::vector<entry> in_flight;
    std::atomic<int> wrong{0}, stamps{0};
    // The device: ends work in any order, and finds the stamp of its tensor until then.
    std::thread device([&] {
      auto random = generator(1);
      for (;;) {
        entry next;
        {
          const std::lock_guard lock(guard);
          if (in_flight.empty()) {
            if (!goes_on) return;
            continue;
          }
          const std::size_t chosen = random() % in_flight.size();
          next = std::exchange(in_flight[chosen], in_flight.back());
          in_flight.pop_back();
        }
        if (*next.words != next.stamp) ++wrong;
        next.work->end();
      }
    });
    std::vector<std::thread> hosts;
    for (std::uint64_t t = 0; t < 4; ++t)
      hosts.emplace_back([&, t] {
        auto random = generator(2 + t);
        for (int i = 0; i < 3000; ++i) {
          tensor_stand_in tensor(idle_pool, 512 * (1 + random() % 3));
          const auto stamp = static_cast<std::uint64_t>(++stamps);
          auto* const words = static_cast<std::uint64_t*>(tensor.data());
          *words = stamp;
          if (random() % 3 != 0) {
            const auto work = std::make_shared<manual_event>();
            random() % 2 == 0 ? tensor.uses->add_write(work, t) : tensor.uses->add_read(work, t);
            const std::lock_guard lock(guard);
            in_flight.push_back({work, words, stamp});
          }
          if (random() % 64 == 0) ferry::trim<space>();
          if (*words != stamp) ++wrong;
          tensor.end();
        }
      });
    for (auto& host : hosts) host.join();
    goes_on = false;
    device.join();
    CHECK(wrong == 0);
  }
  CHECK(ferry::memory_statistics<space>().current == 0);
  CHECK(space::usage == 0);
}

TEST_CASE("tensors of a loop use the same memory, with the bits of new ones", "[tensor_pool]") {
  using pinned = ferry::pinned_space;
  const exec_space exec;
  const std::size_t usual = ferry::detail::pooled_memory<pinned>::limit(-1, std::size_t{1} << 24);
  ferry::trim<pinned>();
  auto random = generator(9);
  ferry::tensor<float, ferry::mapped_space> table("table", 300, 16);
  ferry::init::uniform(exec, table, -1.0, 1.0, random());
  const auto rows = take(table);
  std::set<const float*> blocks;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::int64_t> indices(100);
    for (auto& index : indices) index = static_cast<std::int64_t>(random() % 300);
    const auto batch = ferry::gather<pinned>(exec, table, indices).get();
    blocks.insert(batch.data());
    std::size_t wrong = 0;
    for (std::size_t p = 0; p < indices.size(); ++p)
      for (std::size_t c = 0; c < 16; ++c)
        wrong += batch(p, c) != rows[static_cast<std::size_t>(indices[p]) * 16 + c];
    CHECK(wrong == 0);
    const auto copied = batch.clone(exec).get();
    CHECK(std::memcmp(copied.data(), batch.data(), batch.size() * sizeof(float)) == 0);
  }
  CHECK(blocks.size() <= 2);  // the batch and its copy take turns
  // A moved-to tensor gives its memory back, too.
  ferry::tensor<float, pinned> first_part("one", 77), two("two", 77);
  const float* const block = first_part.data();
  first_part = std::move(two);
  ferry::tensor<float, pinned> three("three", 77);
  CHECK(three.data() == block);
  CHECK(three.describe().find("'three'") != std::string::npos);
  ferry::detail::pooled_memory<pinned>::limit(-1, usual);
}

}  // namespace ferry_test::tensor_pool_test
