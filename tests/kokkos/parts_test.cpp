// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "../../backends/kokkos/event.hpp"
#include "../../backends/kokkos/interop.hpp"
#include "../../backends/kokkos/launch.hpp"

/// The parts of the backend of Kokkos alone that verbs of a device use, on whatever Kokkos has.
namespace ferry_test::parts_test {

namespace parts = ferry::kokkos;

constexpr bool on_host = ferry::HostExecutionSpace<exec_space>;

struct set_numbers {
  std::int64_t* numbers;
  std::int64_t factor;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { numbers[i] = factor * i; }
};

struct set_first_numbers {
  static constexpr unsigned int most_threads = 128, blocks_at_once = 1;
  std::int64_t* numbers;
  const std::int64_t* live;
  KOKKOS_FUNCTION std::int64_t work_items() const { return *live; }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { numbers[i] = i + 1; }
};

/// Sums a team's numbers in its shared memory.
struct sum_of_team {
  struct room {
    std::int64_t sum;
    std::int64_t first;
  };
  using shared_memory = room;

  const std::int64_t* numbers;
  std::int64_t* sums;
  std::int64_t per_team;

  template <class Team>
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto& shared = team.template shared<room>();
    if (team.team_rank() == 0) shared = {0, numbers[0]};
    team.team_barrier();
    for (std::int64_t k = team.team_rank(); k < per_team; k += team.team_size())
      Kokkos::atomic_add(&shared.sum, numbers[team.league_rank() * per_team + k]);
    team.team_barrier();
    std::int64_t sum = team.team_rank() == 0 ? shared.sum : -1;
    team.team_broadcast(sum, 0);
    if (team.team_rank() == team.team_size() - 1) sums[team.league_rank()] = sum;
  }
};

TEST_CASE("an event is ready when the work before it has ended, and may be recorded again", "[kokkos]") {
  const exec_space exec;
  ferry::detail::event_pool<parts::instance_event> events;
  ferry::tensor<std::int64_t, ferry::device_space> numbers("numbers", 1000);
  auto point = parts::event_functions::take_event(exec, events);
  CHECK(point->ready());
  for (std::int64_t turn = 1; turn <= 5; ++turn) {
    parts::launch_functions::launch_range(exec, "set", 1000, set_numbers{numbers.data(), turn});
    point->renew();
    parts::event_functions::record_at(exec, *point);
    parts::event_functions::wait_for(exec, *point);  // of the same instance: nothing to wait for
    point->wait();
    CHECK(point->ready());
    CHECK_FALSE(point->is_of(exec));  // it keeps no instance that has ended its work
    CHECK(take(numbers)[999] == 999 * turn);
  }
  const auto second = parts::event_functions::record(exec, events);
  second->wait();
  CHECK(second->ready());
}

TEST_CASE("events of many leases have words of their own", "[kokkos]") {
  const exec_space exec;
  ferry::detail::event_pool<parts::instance_event> events;
  std::vector<ferry::detail::event_handle> points;
  for (int i = 0; i < 1500; ++i) points.push_back(parts::event_functions::record(exec, events));
  points.back()->wait();
  for (const auto& point : points) CHECK(point->ready());
  points.clear();
  for (int i = 0; i < 1500; ++i) points.push_back(parts::event_functions::record(exec, events));
  points.back()->wait();
  for (const auto& point : points) CHECK(point->ready());
}

TEST_CASE("launch_each leaves out the items that the device does not have", "[kokkos]") {
  const exec_space exec;
  ferry::tensor<std::int64_t, ferry::device_space> numbers("numbers", 500), live("live", 1);
  put(numbers, std::vector<std::int64_t>(500, -1));
  put(live, std::vector<std::int64_t>{300});
  parts::launch_functions::launch_each(exec, "each", 500, set_first_numbers{numbers.data(), live.data()});
  exec.fence();
  const auto result = take(numbers);
  CHECK(result[0] == 1);
  CHECK(result[299] == 300);
  CHECK(result[300] == -1);
}

TEST_CASE("teams of launch_blocks have shared memory and barriers", "[kokkos]") {
  const exec_space exec;
  constexpr std::int64_t teams = 20, per_team = 300;
  ferry::tensor<std::int64_t, ferry::device_space> numbers("numbers", teams * per_team), sums("sums", teams);
  std::vector<std::int64_t> input(teams * per_team);
  std::iota(input.begin(), input.end(), 1);
  put(numbers, input);
  put(sums, std::vector<std::int64_t>(teams, -7));
  parts::launch_functions::launch_blocks(exec, "sum", static_cast<int>(teams), on_host ? 1 : 256,
                                         sum_of_team{numbers.data(), sums.data(), per_team});
  exec.fence();
  const auto result = take(sums);
  for (std::int64_t t = 0; t < teams; ++t)
    CHECK(result[static_cast<std::size_t>(t)] == per_team * (2 * t * per_team + per_team + 1) / 2);
}

TEST_CASE("the address book knows the blocks of the backend", "[kokkos]") {
  auto& book = parts::address_book::get();
  const auto address_of = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  book.add(address_of(0x1000), 0x100, ferry::memory_kind::device);
  book.add(address_of(0x1100), 0x10, ferry::memory_kind::host);
  CHECK(book.find(address_of(0x1000)) == ferry::memory_kind::device);
  CHECK(book.find(address_of(0x10ff)) == ferry::memory_kind::device);
  CHECK(book.find(address_of(0x1100)) == ferry::memory_kind::host);
  CHECK_FALSE(book.find(address_of(0x1110)).has_value());
  CHECK_FALSE(book.find(address_of(0xfff)).has_value());
  book.remove(address_of(0x1000));
  CHECK_FALSE(book.find(address_of(0x1080)).has_value());
  book.remove(address_of(0x1100));
}

TEST_CASE("what the backend of Kokkos alone lacks is refused by a sentence", "[kokkos]") {
  CHECK_THROWS_WITH(parts::refuse("ferry::adopt", parts::facility::page_locking),
                    "ferry::adopt: the backend of Kokkos alone can't page-lock memory that exists; copy it "
                    "into a ferry::tensor in pinned_space, or adopt it as pageable_space (docs/backends.md "
                    "lists what it lacks)");
  CHECK_THROWS_WITH(parts::refuse("ferry", parts::facility::queue),
                    Catch::Matchers::ContainsSubstring("does not know the device's queue of an instance"));
  std::vector<float> numbers(64);
  const auto adopt = [&] { return ferry::adopt<ferry::pinned_space>(std::span<float>(numbers), 8, 8); };
  if constexpr (on_host)
    CHECK(adopt().rows() == 8);
  else
    CHECK_THROWS_AS(adopt(), ferry::device_error);
  CHECK_THROWS_AS((ferry::tensor<float, ferry::device_space>("far", ferry::device{1}, 8)),
                  ferry::invalid_argument);
}

TEST_CASE("memory of Kokkos' spaces begins at whole cache lines", "[kokkos]") {
  const auto check = [](auto space) {
    for (const std::size_t bytes : {1u, 100u, 4096u, 1000000u}) {
      const ferry::tensor<std::byte, decltype(space)> memory("memory", bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 256 == 0);
      CHECK(memory.describe().find("memory of Kokkos' space") != std::string::npos);
    }
  };
  check(ferry::device_space{});
  check(ferry::pinned_space{});
  check(ferry::mapped_space{});
  check(ferry::pageable_space{});
  CHECK_THROWS_AS((ferry::tensor<std::byte, ferry::pageable_space>("large", std::size_t{1} << 60)),
                  ferry::bad_alloc);
}

}  // namespace ferry_test::parts_test
