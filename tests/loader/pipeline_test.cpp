// SPDX-License-Identifier: Apache-2.0
#include <ferry/loader/detail/pipeline.hpp>

#include "fake_stream.hpp"
#include "support/captured_stderr.hpp"
#include "support/test.hpp"
#include "support/watchdog.hpp"

/// The ring of a prefetcher and its threads on a device whose queues are late by random times.
namespace ferry_test::pipeline_test {

using ferry::prefetch_options;
using ferry::detail::batch_order;
using ferry::detail::pipeline;
using ferry::detail::slot;
using ferry::detail::slot_layout;
using std::chrono::microseconds;

constexpr std::size_t width = 5;

std::int64_t value_of(std::int64_t epoch, std::int64_t sample, std::size_t column) {
  return (epoch + 1) * 1'000'003 + sample * 31 + static_cast<std::int64_t>(column);
}

/// Writes value_of, after a random time.
class numbers {
 public:
  explicit numbers(std::uint64_t seed, int longest = 0) : seed_(seed), longest_(longest) {}
  void operator()(const ferry::batch_request& request, std::byte* const* data) const {
    if (longest_ > 0) {
      std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(request.number));
      if (random() % 4 == 0)
        std::this_thread::sleep_for(microseconds(random() % static_cast<std::uint64_t>(longest_)));
    }
    if (fails_at == request.number) throw std::runtime_error("no batch " + std::to_string(request.number));
    auto* next = reinterpret_cast<std::int64_t*>(data[0]);
    for (const std::int64_t sample : request.samples)
      for (std::size_t j = 0; j < width; ++j) *next++ = value_of(request.epoch, sample, j);
  }
  std::int64_t fails_at = -1;

 private:
  std::uint64_t seed_;
  int longest_;
};

struct rig {
  std::shared_ptr<fake_device> device;
  std::unique_ptr<pipeline> ring;

  rig(std::int64_t samples, const prefetch_options& options, microseconds longest, std::int64_t fails_at = -1)
      : device(std::make_shared<fake_device>(generator()(), longest)) {
    slot_layout layout;
    layout.add({"numbers", {width}}, sizeof(std::int64_t), options.batch);
    numbers maker(generator(1)(), static_cast<int>(longest.count()));
    maker.fails_at = fails_at;
    const auto depth = static_cast<std::size_t>(options.depth == 0 ? options.workers + 2 : options.depth);
    ring = pipeline::make(std::make_unique<fake_stream>(device, layout.bytes, depth), maker, layout,
                          batch_order(samples, options), options, depth);
  }
};

/// Number of wrong values that the device finds in its copy of a batch.
std::int64_t count_wrong(const std::byte* memory, const std::vector<std::int64_t>& samples,
                         std::int64_t epoch) {
  const auto* numbers = reinterpret_cast<const std::int64_t*>(memory);
  std::int64_t wrong = 0;
  for (const std::int64_t sample : samples)
    for (std::size_t j = 0; j < width; ++j) wrong += *numbers++ != value_of(epoch, sample, j) ? 1 : 0;
  return wrong;
}

TEST_CASE("batches arrive in order and stay unchanged while late work reads them", "[pipeline]") {
  const watchdog dog("pipeline");
  auto random = generator();
  for (const int workers : {1, 3}) {
    for (const int depth : {2, 5}) {
      const prefetch_options options{
          .batch = 7, .depth = depth, .workers = workers, .shuffle = random(), .epochs = 3};
      rig parts(2345, options, microseconds(300));
      std::atomic<std::int64_t> wrong{0};
      std::atomic<std::int64_t> batch_count{0};
      const batch_order order(2345, options);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        std::int64_t number = epoch * order.batches();
        while (slot* got = parts.ring->next()) {
          std::vector<std::int64_t> expected;
          order.list(number, expected);
          REQUIRE(got->number == number++);
          REQUIRE(got->samples == expected);
          parts.device->compute.put([&wrong, &batch_count, memory = got->device, expected, epoch] {
            wrong += count_wrong(memory, expected, epoch);
            batch_count += static_cast<std::int64_t>(expected.size());
          });
        }
        REQUIRE(number == (epoch + 1) * order.batches());
      }
      CHECK(parts.ring->next() == nullptr);
      CHECK(parts.ring->next() == nullptr);
      parts.ring = nullptr;
      CHECK(wrong == 0);
      CHECK(batch_count == 3 * 2345);
      CHECK(parts.device->closed == 1);
    }
  }
}

TEST_CASE("a slot is not used again before the work on it has ended", "[pipeline]") {
  const watchdog dog("pipeline");
  rig with(100, {.batch = 1, .depth = 3, .workers = 2}, microseconds(0));
  manual_event gate;
  slot* const first = with.ring->next();
  REQUIRE(first != nullptr);
  std::vector<std::byte> before(first->host, first->host + width * sizeof(std::int64_t));
  with.device->compute.put([&gate] { gate.wait(); });
  REQUIRE(with.ring->next() != nullptr);  // given back, but the device has not come to its end
  REQUIRE(with.ring->next() != nullptr);
  std::atomic<bool> got{false};
  std::thread waits([&] {
    CHECK(with.ring->next() != nullptr);  // the fourth: needs the first slot
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(got);
  CHECK(std::equal(before.begin(), before.end(), first->host));
  gate.end();
  waits.join();
  CHECK(got);
}

TEST_CASE("a slot is not used again while a verb of another instance reads it", "[pipeline]") {
  const watchdog dog("pipeline");
  rig with(100, {.batch = 1, .depth = 2}, microseconds(0));
  slot* const first = with.ring->next();
  const auto verb = std::make_shared<manual_event>();
  first->device_accesses->add_read(verb, 99);
  REQUIRE(with.ring->next() != nullptr);
  std::atomic<bool> got{false};
  std::thread waits([&] {
    CHECK(with.ring->next() != nullptr);
    got = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(got);
  verb->end();
  waits.join();
}

TEST_CASE("an error of a source comes after the batches before it, and stays", "[pipeline]") {
  const watchdog dog("pipeline");
  for (const int workers : {1, 4}) {
    rig with(100, {.batch = 1, .workers = workers}, microseconds(200), 17);
    for (int k = 0; k < 17; ++k) REQUIRE(with.ring->next() != nullptr);
    for (int repeat = 0; repeat < 3; ++repeat)
      CHECK_THROWS_MATCHES(with.ring->next(), std::runtime_error, Catch::Matchers::Message("no batch 17"));
  }
}

TEST_CASE("an error of a transfer comes in order, too", "[pipeline]") {
  const watchdog dog("pipeline");
  rig with(100, {.batch = 1, .depth = 2}, microseconds(0));
  REQUIRE(with.ring->next() != nullptr);
  with.device->fails = true;
  const auto run = [&] {
    while (with.ring->next() != nullptr) {
    }
  };
  CHECK_THROWS_AS(run(), ferry::device_error);
}

TEST_CASE("a prefetcher stops at any point", "[pipeline]") {
  const watchdog dog("pipeline");
  auto random = generator();
  for (int round = 0; round < 60; ++round) {
    rig with(1000, {.batch = 3, .depth = 2 + round % 4, .workers = 1 + round % 3}, microseconds(100));
    const auto some = random() % 8;
    for (std::uint64_t k = 0; k < some; ++k) REQUIRE(with.ring->next() != nullptr);
    if (random() % 2 == 0) std::this_thread::sleep_for(microseconds(random() % 300));
    with.ring = nullptr;
    CHECK(with.device->closed == 1);
  }
}

TEST_CASE("a stop wakes a thread that waits for a batch, and tells the source", "[pipeline]") {
  const watchdog dog("pipeline");
  const auto stuck = [](const ferry::batch_request& request, std::byte* const*) {
    while (!request.stopping()) std::this_thread::yield();
  };
  const auto device = std::make_shared<fake_device>(1, microseconds(0));
  slot_layout layout;
  layout.add({"numbers", {width}}, sizeof(std::int64_t), 1);
  const prefetch_options options{.timeout = std::chrono::milliseconds(30)};
  const auto ring = pipeline::make(std::make_unique<fake_stream>(device, layout.bytes, 3), stuck, layout,
                                   batch_order(10, options), options, 3);
  CHECK_THROWS_AS(ring->next(), ferry::error);  // the timeout
  CHECK_THROWS_AS(ring->next(), ferry::error);
  ring->close();
  CHECK_THROWS_AS(ring->next(), ferry::invalid_argument);
  ring->close();
}

TEST_CASE("the longest timeout is none", "[pipeline]") {
  const watchdog dog("pipeline");
  const auto slow = [](const ferry::batch_request&, std::byte* const*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const auto device = std::make_shared<fake_device>(1, microseconds(0));
  slot_layout layout;
  layout.add({"numbers", {width}}, sizeof(std::int64_t), 1);
  const prefetch_options options{.timeout = std::chrono::milliseconds::max()};
  const auto ring = pipeline::make(std::make_unique<fake_stream>(device, layout.bytes, 3), slow, layout,
                                   batch_order(10, options), options, 3);
  CHECK(ring->next() != nullptr);
}

TEST_CASE("two threads in next() at once are refused", "[pipeline]") {
  const watchdog dog("pipeline");
  manual_event gate;
  const auto gated = [&gate](const ferry::batch_request&, std::byte* const*) { gate.wait(); };
  const auto device = std::make_shared<fake_device>(1, microseconds(0));
  slot_layout layout;
  layout.add({"numbers", {width}}, sizeof(std::int64_t), 1);
  const auto ring = pipeline::make(std::make_unique<fake_stream>(device, layout.bytes, 3), gated, layout,
                                   batch_order(10, {}), {}, 3);
  std::atomic<int> refused{0};
  std::atomic<int> got{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      try {
        if (ring->next() != nullptr) ++got;
      } catch (const ferry::invalid_argument&) {
        ++refused;
        gate.end();
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(refused == 1);
  CHECK(got == 1);
}

TEST_CASE("the times of the stages name the slowest one", "[pipeline]") {
  const watchdog dog("pipeline");
  rig with(400, {.batch = 1, .workers = 2}, microseconds(0));
  for (int k = 0; with.ring->next() != nullptr; ++k)
    with.device->compute.put([] { std::this_thread::sleep_for(microseconds(300)); });
  with.device->compute.finish();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto times = with.ring->times();
  REQUIRE(times.size() == 1);
  CHECK(times[0].batches == 400);
  CHECK(times[0].samples == 400);
  CHECK(times[0].bytes > 0);
  CHECK(times[0].step >= 399 * 300e-6 * 0.9);
  CHECK(times[0].wall > 0);
  CHECK(times[0].bottleneck() == "step");
}

TEST_CASE("an epoch without batches ends at once", "[pipeline]") {
  rig none(0, {.epochs = 3}, microseconds(0));
  CHECK(none.ring->next() == nullptr);
  rig dropped(5, {.batch = 6, .last = ferry::last_batch::drop, .epochs = 0}, microseconds(0));
  CHECK(dropped.ring->next() == nullptr);
  CHECK(dropped.ring->next() == nullptr);
  CHECK(dropped.ring->times().empty());
}

TEST_CASE("a prefetcher that ends after an epoch says how many are left", "[pipeline]") {
  const auto said_after = [](std::int64_t epochs, std::int64_t loops, bool breaks_off) {
    captured_stderr output;
    {
      const rig test(20, {.batch = 6, .epochs = epochs}, microseconds(0));
      for (std::int64_t loop = 0; loop < loops; ++loop)
        while (test.ring->next() != nullptr) {
        }
      if (breaks_off) static_cast<void>(test.ring->next());
    }
    return output.text();
  };
  const std::string one_loop = said_after(3, 1, false);
  CHECK(count_of(one_loop, "it ends with 2 of 3 epochs left. next() is empty at the end of every epoch") ==
        1);
  CHECK(said_after(3, 3, false).empty());
  CHECK(said_after(1, 1, false).empty());
  CHECK(said_after(3, 0, false).empty());
  CHECK(said_after(3, 1, true).empty());  // within an epoch the caller meant to stop
  CHECK(said_after(0, 1, false).empty());
}

}  // namespace ferry_test::pipeline_test
