// SPDX-License-Identifier: Apache-2.0
#include "distributed/forwarding_transport.hpp"
#include "distributed/kit.hpp"

#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

/// Exchanges of device memory between threads, with streams that are threads: what is copied too early, or
/// used after its owner has left the call, is a wrong value, and a race for ThreadSanitizer.
namespace ferry_test::lanes_test {

namespace {

using ferry::detail::incoming_part;
using ferry::detail::outgoing_part;

class fake_event final : public ferry::detail::event {
 public:
  void set() {
    const std::lock_guard lock(guard_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() override {
    std::unique_lock lock(guard_);
    changed_.wait(lock, [&] { return set_; });
  }
  bool ready() override {
    const std::lock_guard lock(guard_);
    return set_;
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// Runs what is enqueued in a thread of its own.
class fake_stream {
 public:
  fake_stream() : thread_([this] { run(); }) {}
  fake_stream(const fake_stream&) = delete;
  fake_stream& operator=(const fake_stream&) = delete;
  ~fake_stream() {
    enqueue({});
    thread_.join();
  }
  void enqueue(std::function<void()> work) {
    const std::lock_guard lock(guard_);
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  std::shared_ptr<fake_event> record() {
    auto event = std::make_shared<fake_event>();
    enqueue([event] { event->set(); });
    return event;
  }
  void fence() { record()->wait(); }

 private:
  void run() {
    for (;;) {
      std::function<void()> next;
      {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return !work_.empty(); });
        next = std::move(work_.front());
        work_.pop_front();
      }
      if (!next) return;
      next();
    }
  }

  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::thread thread_;
};

/// Throws in the copy with this number.
class fake_lane final : public ferry::detail::device_lane {
 public:
  explicit fake_lane(fake_stream& stream, int fails_at = -1) : stream_(stream), fails_at_(fails_at) {}
  void publish() override { published_ = stream_.record(); }
  [[nodiscard]] const ferry::detail::event_handle& published() const override { return published_; }
  [[nodiscard]] int device() const override { return 0; }
  void take(const device_lane* sender, std::byte* target, const std::byte* source,
            std::size_t bytes) override {
    if (fails_at_-- == 0) throw ferry::device_error("the copy failed as planned");
    stream_.enqueue([target, source, bytes, before = sender == nullptr ? nullptr : sender->published()] {
      if (before != nullptr) before->wait();
      std::this_thread::yield();
      std::memcpy(target, source, bytes);
    });
  }
  void read(std::byte* target, const std::byte* source, std::size_t bytes) const override {
    published_->wait();
    std::memcpy(target, source, bytes);
  }
  void finish() override { stream_.fence(); }
  void abandon() noexcept override {
    stream_.fence();
    abandoned = true;
  }

  bool abandoned = false;

 private:
  fake_stream& stream_;
  int fails_at_;
  ferry::detail::event_handle published_;
};

/// Of each rank for each: `count` numbers.
struct buffers {
  std::size_t ranks, count;
  std::vector<std::uint32_t> departures, arrivals;

  buffers(int rank_count, std::size_t size)
      : ranks(static_cast<std::size_t>(rank_count)),
        count(size),
        departures(ranks * count),
        arrivals(ranks * count, 7u) {}
  static std::uint32_t value(int sender, std::size_t receiver, int round) {
    return static_cast<std::uint32_t>(sender * 1000 + static_cast<int>(receiver) * 100 + round);
  }
  void fill(int rank, int round) {
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t i = 0; i < count; ++i) departures[r * count + i] = value(rank, r, round);
  }
  [[nodiscard]] bool has_come(int rank, std::size_t sender, int round) const {
    for (std::size_t i = 0; i < count; ++i)
      if (arrivals[sender * count + i] !=
          value(static_cast<int>(sender), static_cast<std::size_t>(rank), round))
        return false;
    return true;
  }
  [[nodiscard]] std::vector<outgoing_part> to() const {
    std::vector<outgoing_part> parts;
    for (std::size_t r = 0; r < ranks; ++r)
      parts.push_back(
          {reinterpret_cast<const std::byte*>(departures.data() + r * count), count * sizeof(departures[0])});
    return parts;
  }
  [[nodiscard]] std::vector<incoming_part> from() {
    std::vector<incoming_part> parts;
    for (std::size_t r = 0; r < ranks; ++r)
      parts.push_back(
          {reinterpret_cast<std::byte*>(arrivals.data() + r * count), count * sizeof(arrivals[0])});
    return parts;
  }
};

}  // namespace

TEST_CASE("ranks take memory after the work that makes it, and keep it until all have taken it",
          "[distributed]") {
  const watchdog guard("lanes");
  auto random = generator(81);
  for (const int ranks : {1, 2, 3, 5}) {
    const auto comm = threads_of(ranks);
    const auto group = comm.group();
    REQUIRE(group->shares_addresses());
    const unsigned on_host = static_cast<unsigned>(random());  // by rank and round: host memory
    comm.run([&](int rank) {
      fake_stream stream;
      for (int round = 0; round < 40; ++round) {
        buffers mine(ranks, 1 + static_cast<std::size_t>(round) * 97);
        const ferry::detail::call_note note("exchange");
        if (round % 3 == 0 && ((on_host >> (rank + round) % 32) & 1u) != 0) {
          mine.fill(rank, round);
          group->exchange(rank, note, mine.to(), mine.from());
        } else {
          stream.enqueue([&mine, rank, round] {
            std::this_thread::yield();
            mine.fill(rank, round);
          });
          fake_lane lane(stream);
          lane.publish();
          group->exchange(rank, note, mine.to(), mine.from(), &lane);
        }
        mine.fill(9, 9);  // free for other use, as is the memory at the end of the scope
        for (int r = 0; r < ranks; ++r)
          expect(mine.has_come(rank, static_cast<std::size_t>(r), round), "what a rank sent");
      }
    });
  }
}

TEST_CASE("a rank whose copies fail ends them before it leaves, and breaks the group", "[distributed]") {
  const watchdog guard("failing lanes");
  const int ranks = 4;
  const auto comm = threads_of(ranks);
  const auto group = comm.group();
  std::vector<std::string> messages(static_cast<std::size_t>(ranks));
  for (int fails_at = 0; fails_at < ranks; ++fails_at) {
    INFO("copy " << fails_at);
    const auto text = said<ferry::device_error>([&] {
      comm.run([&](int rank) {
        buffers mine(ranks, 1000);
        fake_stream stream;  // ends before the memory of its work
        stream.enqueue([&mine, rank] { mine.fill(rank, 1); });
        fake_lane lane(stream, rank == 2 ? fails_at : -1);
        lane.publish();
        const ferry::detail::call_note note("exchange");
        try {
          group->exchange(rank, note, mine.to(), mine.from(), &lane);
        } catch (const ferry::device_error&) {
          expect(rank == 2 && lane.abandoned, "the rank that failed");
          for (int r = 0; r < fails_at; ++r)
            expect(mine.has_come(rank, static_cast<std::size_t>(r), 1), "copies that had begun");
          throw;
        } catch (const ferry::peer_error& failure) {
          messages[static_cast<std::size_t>(rank)] = failure.what();
        }
        expect(rank != 2, "the failure");
        for (int r = 0; r < ranks; ++r)
          expect(mine.has_come(rank, static_cast<std::size_t>(r), 1), "the copies of the others");
        expect(said<ferry::peer_error>([&] { comm.barrier(); }) == messages[static_cast<std::size_t>(rank)],
               "later calls");
      });
    });
    CHECK(text == "the copy failed as planned");
    for (const std::size_t r : {0u, 1u, 3u}) {
      CHECK(messages[r].find("rank 2 failed") != std::string::npos);
      CHECK(messages[r].find("the copy failed as planned") != std::string::npos);
    }
    comm.run([&] { comm.barrier(); });  // the group can be used again
  }
}

TEST_CASE("nothing is copied where a rank fails before the exchange, or does not come", "[distributed]") {
  const watchdog guard("lanes without a rank");
  const int ranks = 3;
  for (const bool comes : {true, false}) {
    const auto comm = threads_of(ranks, std::chrono::milliseconds(comes ? 30000 : 30));
    const auto group = comm.group();
    std::atomic<int> left{0};
    comm.run([&](int rank) {
      const ferry::detail::call_note note("exchange");
      buffers mine(ranks, 100);
      fake_stream stream;  // ends before the memory of its work
      stream.enqueue([&mine, rank] { mine.fill(rank, 1); });
      fake_lane lane(stream);
      lane.publish();  // and then something happens to rank 1
      if (rank == 1 && comes) return group->fail(rank, note, "as planned");
      if (rank == 1) {
        while (left.load() != ranks - 1) std::this_thread::yield();
        return;
      }
      const auto act = [&] { group->exchange(rank, note, mine.to(), mine.from(), &lane); };
      if (comes)
        expect(said<ferry::peer_error>(act).find("as planned") != std::string::npos, "the failure");
      else
        expect(said<ferry::communication_error>(act).find("waited for") != std::string::npos, "the delay");
      stream.fence();
      expect(mine.arrivals == std::vector<std::uint32_t>(mine.arrivals.size(), 7u), "nothing has come");
      ++left;
    });
  }
}

namespace {

/// Threads that pass device memory by host memory, as processes do.
class without_lanes : public forwarding_transport {
 public:
  explicit without_lanes(int ranks) : forwarding_transport(ranks, std::chrono::seconds(30)) {}
};

std::atomic<int> payload_fences{0};

/// Counts the fences of payloads while it lives.
struct fence_counter {
  fence_counter() {
    payload_fences = 0;
    Kokkos::Tools::Experimental::set_begin_fence_callback(
        [](const char* name, std::uint32_t, std::uint64_t*) {
          if (std::string(name) == "ferry::distributed::payload") ++payload_fences;
        });
  }
  fence_counter(const fence_counter&) = delete;
  fence_counter& operator=(const fence_counter&) = delete;
  ~fence_counter() { Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr); }
};

}  // namespace

TEST_CASE("an instance is waited for where an exception ends a block, and only there", "[distributed]") {
  const exec_space exec;
  const fence_counter counts;
  { const ferry::detail::fence_on_exception<exec_space> waits(exec); }
  CHECK(payload_fences == 0);
  CHECK_THROWS_AS(
      [&] {
        const ferry::detail::fence_on_exception<exec_space> waits(exec);
        throw std::runtime_error("in between");
      }(),
      std::runtime_error);
  CHECK(payload_fences == 1);
}

TEST_CASE("buffers of instances pass by lanes and by host memory", "[distributed]") {
  const watchdog guard("payloads");
  using device = ferry::device_space;
  const int ranks = 3;
  auto random = generator(82);
  const std::vector<std::pair<const char*, ferry::communicator>> groups{
      {" by lanes", threads_of(ranks)},
      {" by host memory", ferry::communicator(std::make_shared<without_lanes>(ranks))}};
  for (const auto& [way, comm] : groups) {
    for (const std::size_t length : {0u, 1u, 3u, 1000u, 7001u}) {
      INFO(length << way);
      const bool same = random() % 2 == 0;  // the same part for all ranks
      comm.run([&](int rank) {
        const exec_space exec;
        const auto count = static_cast<std::size_t>(ranks) * length;
        std::vector<double> host_out(count), host_in(count, -1);
        for (std::size_t i = 0; i < count; ++i) host_out[i] = rank * 1e6 + static_cast<double>(i);
        auto departures = ferry::detail::payload<double, device>(exec, "out", count);
        auto arrivals = ferry::detail::payload<double, device>(exec, "in", count);
        ferry::copy(exec, host_out, departures).wait();
        std::vector<outgoing_part> targets;
        std::vector<incoming_part> sources;
        for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
          targets.push_back({reinterpret_cast<const std::byte*>(departures.data() + (same ? 0 : r) * length),
                             length * sizeof(double)});
          sources.push_back(
              {reinterpret_cast<std::byte*>(arrivals.data() + r * length), length * sizeof(double)});
        }
        ferry::detail::collective call(comm, ferry::detail::call_note("payloads"));
        ferry::detail::exchange_payload<device>(call, exec, exec, targets, sources);
        ferry::copy(exec, arrivals, host_in).wait();
        for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
          for (std::size_t i = 0; i < length; ++i)
            expect(host_in[r * length + i] ==
                       static_cast<double>(r) * 1e6 +
                           static_cast<double>((same ? 0 : static_cast<std::size_t>(rank)) * length + i),
                   "what a rank sent");
      });
    }
  }
}

}  // namespace ferry_test::lanes_test
