// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"
#include "support/process_space.hpp"

#include <ferry/distributed/communicator/detail/message_transport.hpp>
#include <ferry/distributed/shared/detail/rank_windows.hpp>

#include <sys/resource.h>

#include <exception>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string_view>

/// Windows of ranks, and transports that fail in a meeting.
namespace ferry_test::rank_windows_test {

namespace {

namespace detail = ferry::detail;

/// Windows in heap memory that is limited.
struct heap_windows {
  static inline std::size_t room = 0, last_bytes = 0;
  static detail::window_memory make(std::size_t bytes, int) {
    if (bytes > room) throw ferry::bad_alloc("no room");
    last_bytes = bytes;
    return {{new std::byte[bytes], std::default_delete<std::byte[]>()}, bytes, {}};
  }
  static std::shared_ptr<std::byte> open(const ferry::shared_handle&, int) {
    return {new std::byte[1], std::default_delete<std::byte[]>()};
  }
  static constexpr detail::window_functions functions() { return {&make, &open}; }
};

struct speechless final : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return ""; }
};

/// Two ranks, of which this one meets no other.
class failing_meetings final : public detail::message_transport {
 public:
  failing_meetings() : message_transport(std::chrono::seconds(1)) { become(0, 2); }
  [[nodiscard]] std::string_view name() const override { return "failing"; }
  int meetings = 0;

 private:
  outcome gather(const std::byte*, std::byte*, std::size_t, clock::time_point,
                 detail::call_header&) override {
    ++meetings;
    throw std::bad_alloc();
  }
  outcome move_parts(std::span<const detail::outgoing_part>, std::span<const detail::incoming_part>,
                     clock::time_point, detail::call_header&) override {
    return outcome::late;
  }
  void send_last(const detail::call_header&) override {}
  bool take_last(detail::call_header&, clock::time_point) override { return false; }
};

/// Numbers for each rank in two lists, the second with the same part for all.
struct number_lists {
  std::vector<std::vector<std::uint32_t>> lists{2};
  std::vector<detail::outgoing_part> outgoing;
  std::vector<detail::incoming_part> incoming;
  std::vector<std::uint32_t> arrived;

  static std::size_t count(int sender, int receiver, int list, int round) {
    return list == 1 ? static_cast<std::size_t>(sender + round)
                     : static_cast<std::size_t>((sender * 7 + receiver * 3 + round) % 5) << (2 * round);
  }
  static std::uint32_t value(int sender, int receiver, int list, int round) {
    return static_cast<std::uint32_t>(1000 * round + 100 * list + 10 * sender + (list == 1 ? 0 : receiver));
  }
  number_lists(int rank, int ranks, int round) {
    std::size_t total = 0;
    for (int list = 0; list < 2; ++list)
      for (int r = 0; r < ranks; ++r) {
        auto& numbers = lists[static_cast<std::size_t>(list)];
        if (list == 0 || r == 0)
          numbers.insert(numbers.end(), count(rank, r, list, round), value(rank, r, list, round));
        total += count(r, rank, list, round);
      }
    arrived.assign(total, 7);
    std::size_t first = 0;
    std::uint32_t* next = arrived.data();
    for (int list = 0; list < 2; ++list)
      for (int r = 0; r < ranks; ++r) {
        const std::size_t leaves = count(rank, r, list, round), arrives = count(r, rank, list, round);
        const auto* const data = lists[static_cast<std::size_t>(list)].data() + (list == 0 ? first : 0);
        outgoing.push_back({reinterpret_cast<const std::byte*>(data), leaves * sizeof(std::uint32_t)});
        first += leaves;
        incoming.push_back({reinterpret_cast<std::byte*>(next), arrives * sizeof(std::uint32_t)});
        next += arrives;
      }
  }
  [[nodiscard]] bool have_come(int rank, int ranks, int round) const {
    auto next = arrived.begin();
    for (int list = 0; list < 2; ++list)
      for (int r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < count(r, rank, list, round); ++i)
          if (*next++ != value(r, rank, list, round)) return false;
    return next == arrived.end();
  }
};

}  // namespace

TEST_CASE("parts pass through windows that grow", "[distributed]") {
  const watchdog guard("windows");
  using host_exec = Kokkos::DefaultHostExecutionSpace;
  for (const int ranks : {2, 3, 5}) {
    const auto comm = threads_of(ranks);
    comm.run([&](int rank) {
      const host_exec exec;
      detail::rank_windows windows(ranks);
      for (int round = 0; round < 9; ++round) {
        number_lists numbers(rank, ranks, round);
        detail::collective call(comm, detail::call_note("windows"));
        expect(detail::exchange_by_windows<process_space>(call, windows, exec, exec, numbers.outgoing,
                                                          numbers.incoming),
               "windows");
        for (auto& list : numbers.lists) std::fill(list.begin(), list.end(), 9u);
        expect(numbers.have_come(rank, ranks, round), "what ranks sent in round " + std::to_string(round));
      }
      expect(windows.serve(), "windows serve");
    });
  }
}

TEST_CASE("a window is as large as memory lets it be", "[distributed]") {
  constexpr std::size_t bytes = std::size_t{3} << 20;
  const std::vector<detail::outgoing_part> parts{{}, {nullptr, bytes}};
  for (const std::size_t room : {2 * bytes - 1, 2 * bytes, 2 * bytes + 1, 4 * bytes}) {
    CAPTURE(room);
    heap_windows::room = room;
    detail::rank_windows windows(2);
    const bool fits = windows.reserve(0, parts, -1, heap_windows::functions());
    CHECK(fits == (room >= 2 * bytes));
    if (fits)
      CHECK(
          (room == 4 * bytes ? heap_windows::last_bytes > 2 * bytes : heap_windows::last_bytes == 2 * bytes));
    CHECK(windows.serve());
  }
}

TEST_CASE("a window of a device is not that of another one", "[distributed]") {
  heap_windows::room = std::size_t{1} << 30;
  const std::vector<detail::outgoing_part> parts{{}, {nullptr, 1000}};
  detail::rank_windows windows(2);
  CHECK(windows.reserve(0, parts, 1, heap_windows::functions()));
  CHECK_FALSE(windows.reserve(0, parts, 0, heap_windows::functions()));
  CHECK(windows.reserve(0, parts, 1, heap_windows::functions()));
}

TEST_CASE("a shared tensor in a file that a process may not have", "[distributed]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{65536, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string text = said<ferry::bad_alloc>(
      [] { ferry::shared_tensor<float>("features", ferry::communicator::threads(1), 100000, 3); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(has(text, "'features'"));
  CHECK(has(text, "65536 bytes (ulimit -f)"));
}

TEST_CASE("a rank without a window, and one that can't open it, send packed on all ranks", "[distributed]") {
  const watchdog guard("windows");
  heap_windows::room = std::size_t{1} << 30;
  enum class lack { none, memory, make, open };
  for (const lack lacks : {lack::none, lack::memory, lack::make, lack::open}) {
    CAPTURE(static_cast<int>(lacks));
    const auto comm = group_of(3);
    std::vector<int> serves(3), meets(3), repeats(3);
    std::vector<std::string> why(3);
    comm.run([&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      detail::rank_windows windows(3);
      detail::collective call(comm, detail::call_note("windows"));
      detail::window_functions functions = heap_windows::functions();
      if (rank == 1 && lacks == lack::memory)
        functions.make = [](std::size_t, int) -> detail::window_memory { throw std::bad_alloc(); };
      if (rank == 1 && lacks == lack::make)
        functions.make = [](std::size_t, int) -> detail::window_memory { throw ferry::device_error("none"); };
      if (rank == 1 && lacks == lack::open)
        functions.open = [](const ferry::shared_handle&, int) -> std::shared_ptr<std::byte> {
          throw speechless();
        };
      const std::vector<detail::outgoing_part> parts(3, {nullptr, 1000});
      const bool has_room = windows.reserve(rank, parts, -1, functions);
      expect(has_room == (rank != 1 || lacks == lack::none || lacks == lack::open), "room");
      meets[r] = windows.exchange_notes(call, functions) ? 1 : 0;
      serves[r] = windows.serve() ? 1 : 0;
      why[r] = windows.why_not();
      if (!windows.serve()) return;
      static_cast<void>(windows.reserve(rank, parts, -1, heap_windows::functions()));
      repeats[r] = windows.exchange_notes(call, heap_windows::functions()) ? 1 : 0;
    });
    const bool serve = lacks == lack::none || lacks == lack::memory;
    CHECK(meets == std::vector<int>(3, lacks == lack::none ? 1 : 0));
    CHECK(serves == std::vector<int>(3, serve ? 1 : 0));
    CHECK(repeats == std::vector<int>(3, serve ? 1 : 0));
    for (const auto& words : why) {
      CHECK(has(words, "rank 1: it can't read the memory of the others") == (lacks == lack::open));
      CHECK(has(words, "rank 1: it can't share memory: none") == (lacks == lack::make));
    }
  }
}

TEST_CASE("a rank that fails while it meets the others breaks its group", "[distributed]") {
  const auto group = std::make_shared<failing_meetings>();
  const ferry::communicator comm(group);
  CHECK_THROWS_AS(comm.barrier(), std::bad_alloc);
  CHECK(has(said<ferry::communication_error>([&] { comm.barrier(); }), "this rank failed"));
  CHECK(group->meetings == 1);
}

}  // namespace ferry_test::rank_windows_test
