// SPDX-License-Identifier: Apache-2.0
#include "distributed/kit.hpp"

#include <ferry/distributed/communicator/detail/message_transport.hpp>
#include <ferry/distributed/shared/detail/rank_lanes.hpp>

#include <sys/resource.h>

#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string_view>

/// The memory of lanes, and transports that fail in a meeting.
namespace ferry_test::rank_lanes_test {

namespace {

namespace detail = ferry::detail;

/// Lanes in heap memory that is limited.
struct heap_lanes {
  static inline std::size_t room = 0, last_bytes = 0;
  static detail::lane_memory make(std::size_t bytes, int device) {
    if (bytes > room) throw ferry::bad_alloc("no room");
    last_bytes = bytes;
    std::shared_ptr<std::byte> data(new std::byte[bytes], std::default_delete<std::byte[]>());
    return {std::move(data), bytes, device, {}};
  }
  static std::shared_ptr<std::byte> open(const detail::lane_handle&, int) {
    return {new std::byte[1], std::default_delete<std::byte[]>()};
  }
  static constexpr detail::lane_functions functions() { return {&make, &open}; }
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

}  // namespace

TEST_CASE("a lane is written again only after the ranks have met", "[distributed]") {
  heap_lanes::room = std::size_t{1} << 30;
  detail::rank_lanes lanes(2);
  const auto reserve = [&](std::size_t bytes) { return lanes.reserve(bytes, -1, heap_lanes::functions()); };
  const std::byte* const first = reserve(1000);
  REQUIRE(first != nullptr);
  CHECK(lanes.number() == 1);
  lanes.end_reads();
  CHECK(reserve(2000) == first);
  CHECK(lanes.number() == 1);
  REQUIRE(reserve(1000) != nullptr);  // an exception has ended the verb
  CHECK(lanes.number() == 2);
  lanes.end_reads();
  REQUIRE(reserve(1000) != nullptr);
  CHECK(lanes.number() == 2);
  heap_lanes::room = 0;
  CHECK(reserve(1000) == nullptr);
  heap_lanes::room = std::size_t{1} << 30;
  REQUIRE(reserve(1000) != nullptr);
  CHECK(lanes.number() == 3);
  CHECK(lanes.serve());
}

TEST_CASE("a lane is as large as memory lets it be", "[distributed]") {
  constexpr std::size_t bytes = std::size_t{3} << 20;
  for (const std::size_t room : {bytes - 1, bytes, bytes + 1, 2 * bytes}) {
    CAPTURE(room);
    heap_lanes::room = room;
    detail::rank_lanes lanes(2);
    const bool fits = lanes.reserve(bytes, -1, heap_lanes::functions()) != nullptr;
    CHECK(fits == (room >= bytes));
    if (fits) CHECK((room == 2 * bytes ? heap_lanes::last_bytes > bytes : heap_lanes::last_bytes == bytes));
  }
}

TEST_CASE("lanes in files that a process may not have are no lanes", "[distributed]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{65536, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string text, text_of_tensor;
  std::byte* fitting = nullptr;
  {
    detail::rank_lanes lanes(2);
    text = said<ferry::bad_alloc>([] { (void)detail::make_host_lane(65536, -1); });
    text_of_tensor = said<ferry::bad_alloc>(
        [] { ferry::shared_tensor<float>("features", ferry::communicator::threads(1), 100000, 3); });
    fitting = lanes.reserve(60000, -1, {&detail::make_host_lane, &detail::open_host_lane});
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(has(text, "65544 bytes"));
  CHECK(has(text, "65536 bytes (ulimit -f)"));
  CHECK(has(text_of_tensor, "'features'"));
  CHECK(has(text_of_tensor, "ulimit -f"));
  CHECK(fitting != nullptr);
}

TEST_CASE("a rank that can't open a lane ends the lanes of all, and their memory", "[distributed]") {
  const watchdog guard("lanes");
  heap_lanes::room = std::size_t{1} << 30;
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    const auto comm = group_of(3);
    std::vector<int> opens(3), serves(3), keeps(3);
    std::vector<std::string> why(3);
    comm.run([&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      detail::rank_lanes lanes(3);
      detail::collective call(comm, detail::call_note("lanes"));
      const detail::lane_functions functions{
          &heap_lanes::make,
          fails && rank == 1
          ? [](const detail::lane_handle&, int) -> std::shared_ptr<std::byte> { throw speechless(); }
          : &heap_lanes::open};
      const bool has_room = lanes.reserve(1000, -1, functions) != nullptr;
      const std::vector<std::uint64_t> numbers(3, 1);
      const std::vector<int> devices(3, -1);
      opens[r] = has_room && lanes.open(call, numbers, devices, functions) ? 1 : 0;
      serves[r] = lanes.serve() ? 1 : 0;
      why[r] = lanes.why_not();
      for (int owner = 0; owner < 3; ++owner) keeps[r] += lanes.data(owner) != nullptr ? 1 : 0;
    });
    const std::vector<int> expected(3, fails ? 0 : 1);
    CHECK(opens == expected);
    CHECK(serves == expected);
    CHECK(keeps == std::vector<int>(3, fails ? 0 : 2));
    for (const auto& words : why) CHECK(has(words, "rank 1 can't read the memory of the others") == fails);
  }
}

TEST_CASE("lanes that end free their memory", "[distributed]") {
  detail::rank_lanes lanes(2);
  static std::weak_ptr<std::byte> lane_data;
  const detail::lane_functions functions{[](std::size_t bytes, int device) {
                                           auto lane = heap_lanes::make(bytes, device);
                                           lane_data = lane.data;
                                           return lane;
                                         },
                                         &heap_lanes::open};
  heap_lanes::room = std::size_t{1} << 30;
  REQUIRE(lanes.reserve(1000, -1, functions) != nullptr);
  CHECK_FALSE(lane_data.expired());
  lanes.close("the test closes them");
  CHECK(lane_data.expired());
  CHECK_FALSE(lanes.serve());
}

TEST_CASE("a rank that fails while it meets the others breaks its group", "[distributed]") {
  const auto group = std::make_shared<failing_meetings>();
  const ferry::communicator comm(group);
  CHECK_THROWS_AS(comm.barrier(), std::bad_alloc);
  CHECK(has(said<ferry::communication_error>([&] { comm.barrier(); }), "this rank failed"));
  CHECK(group->meetings == 1);
}

}  // namespace ferry_test::rank_lanes_test
