// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/runtime/detail/backend.hpp>

#include <Kokkos_Core.hpp>

#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

/// Kernels by rows of teams as a device's lanes run them, by a thread for each lane.
namespace ferry_test {

/// An execution space whose lanes are threads of the test.
struct lanes_of_threads {};

struct shared_lanes {
  int count;
  std::barrier<> meeting;
  std::array<std::uint64_t, 64> values{};
  std::mutex mutex{};
  std::map<std::pair<int, int>, std::barrier<>> meetings{};  ///< of neighbours: their number, and the first

  explicit shared_lanes(int lanes) : count(lanes), meeting(lanes) {}

  std::barrier<>& meeting_of(int lane, int neighbours) {
    const std::lock_guard lock(mutex);
    return meetings.try_emplace({neighbours, lane / neighbours}, neighbours).first->second;
  }
};
inline thread_local shared_lanes* current_lanes = nullptr;
inline thread_local int current_lane = 0;

}  // namespace ferry_test

template <>
struct ferry::execution_backend<ferry_test::lanes_of_threads> {
  class lane_group {
   public:
    KOKKOS_FUNCTION explicit lane_group(int) {}
    KOKKOS_FUNCTION static int lanes() {
      int count = 1;
      KOKKOS_IF_ON_HOST((count = ferry_test::current_lanes->count;))
      return count;
    }
    KOKKOS_FUNCTION static int lane() {
      int number = 0;
      KOKKOS_IF_ON_HOST((number = ferry_test::current_lane;))
      return number;
    }
    template <class Value, class Join>
    KOKKOS_FUNCTION Value joined(Value value, const Join& join) const {
      return joined_among(lanes(), value, join);
    }
    template <class Value, class Join>
    KOKKOS_FUNCTION static Value joined_among([[maybe_unused]] int count, Value value,
                                              [[maybe_unused]] const Join& join) {
      KOKKOS_IF_ON_HOST((
          auto& lanes = *ferry_test::current_lanes; auto& meeting = lanes.meeting_of(lane(), count);
          for (int distance = count / 2; distance > 0; distance /= 2) {
            Value partner;
            std::memcpy(&lanes.values[static_cast<std::size_t>(lane())], &value, sizeof value);
            meeting.arrive_and_wait();
            std::memcpy(&partner, &lanes.values[static_cast<std::size_t>(lane() ^ distance)], sizeof partner);
            value = join(value, partner);
            meeting.arrive_and_wait();
          }))
      return value;
    }
    KOKKOS_FUNCTION void meet() const {
      KOKKOS_IF_ON_HOST((ferry_test::current_lanes->meeting.arrive_and_wait();))
    }
  };
};

namespace ferry_test {

struct one_team {
  using execution_space = lanes_of_threads;
  KOKKOS_FUNCTION static std::int64_t league_size() { return 1; }
  KOKKOS_FUNCTION static std::int64_t league_rank() { return 0; }
  KOKKOS_FUNCTION static std::int64_t team_size() { return 1; }
  KOKKOS_FUNCTION static std::int64_t team_rank() { return 0; }
};

/// Runs the kernel by at least as many lanes as it asks for.
template <class Kernel>
void run_by_lanes(const Kernel& kernel, int least) {
  shared_lanes lanes(kernel.lanes() < least ? least : kernel.lanes());
  std::vector<std::thread> threads;
  for (int lane = 0; lane < lanes.count; ++lane)
    threads.emplace_back([&, lane] {
      current_lanes = &lanes;
      current_lane = lane;
      kernel(one_team{});
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ferry_test
