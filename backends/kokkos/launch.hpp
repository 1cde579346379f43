// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "several_devices.hpp"

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::kokkos {

/// An item of launch_each. The device knows how many there are, if the functor asks it.
template <class Functor>
struct each_item {
  Functor functor;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (requires { functor.work_items(); })
      if (i >= static_cast<std::int64_t>(functor.work_items())) return;
    functor(i);
  }
};

/// A team of Kokkos as kernels for blocks of threads take it. A warp is one thread: Kokkos does not tell the
/// width of the device's.
template <class Member>
class block_team {
 public:
  KOKKOS_FUNCTION explicit block_team(const Member& member) : member_(member) {}

  [[nodiscard]] KOKKOS_FUNCTION int league_rank() const { return member_.league_rank(); }
  [[nodiscard]] KOKKOS_FUNCTION int team_rank() const { return member_.team_rank(); }
  [[nodiscard]] KOKKOS_FUNCTION int team_size() const { return member_.team_size(); }
  static constexpr int lanes = 1;
  [[nodiscard]] KOKKOS_FUNCTION std::uint32_t vote(bool bit) const { return bit ? 1u : 0u; }
  KOKKOS_FUNCTION void warp_barrier() const {}
  KOKKOS_FUNCTION void team_barrier() const { member_.team_barrier(); }
  template <class T>
  KOKKOS_FUNCTION void team_broadcast(T& value, int rank) const {
    member_.team_broadcast(value, rank);
  }
  /// A kernel calls one of the two once.
  template <class T>
  [[nodiscard]] KOKKOS_FUNCTION T& shared() const {
    return *static_cast<T*>(member_.team_scratch(0).get_shmem_aligned(sizeof(T), alignof(T)));
  }
  template <class T>
  [[nodiscard]] KOKKOS_FUNCTION T& dynamic_shared() const {
    return shared<T>();
  }

 private:
  const Member& member_;
};

/// Bytes of a functor's T of shared(): it states T as `shared_memory`.
template <class Functor>
inline constexpr std::size_t shared_bytes_of = 0;
template <class Functor>
  requires(sizeof(typename Functor::shared_memory) != 0)
inline constexpr std::size_t shared_bytes_of<Functor> = sizeof(typename Functor::shared_memory);

template <class Member, class Functor>
struct run_blocks {
  Functor functor;

  KOKKOS_FUNCTION void operator()(const Member& member) const { functor(block_team<Member>(member)); }
};

struct launch_functions {
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(const void*) {}

  /// The policy with the hint by which Kokkos passes functors of up to 4 KB as a kernel argument.
  template <class Policy>
  using by_argument = decltype(Kokkos::Experimental::require(
      std::declval<Policy>(), Kokkos::Experimental::WorkItemProperty::HintLightWeight));

  /// How Kokkos passes a functor is its own choice.
  template <class Functor, class Policy>
  static consteval bool launches_by_argument() {
    return true;
  }

  /// Enqueues functor(i) for each i in [0, count).
  template <ExecutionSpace Exec, class Functor, class... Bounds>
  static void launch_range(const Exec& exec, const std::string& label, std::int64_t count,
                           const Functor& functor) {
    using range = by_argument<Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>, Bounds...>>;
    const auto lock = detail::lock_shortly(launch_guard());
    Kokkos::parallel_for(label, range(exec, 0, count), functor);
  }
  template <ExecutionSpace Exec, class Functor>
  static void launch_each(const Exec& exec, const std::string& label, std::int64_t count,
                          const Functor& functor) {
    launch_range<Exec, each_item<Functor>,
                 Kokkos::LaunchBounds<Functor::most_threads, Functor::blocks_at_once>>(
        exec, label, count, each_item<Functor>{functor});
  }

  static constexpr int largest_block = 512;

  /// Enqueues functor(team) for each of `teams` teams of `size` threads, at most largest_block.
  template <ExecutionSpace Exec, class Functor>
  static void launch_blocks(const Exec& exec, std::string_view label, int teams, int size,
                            const Functor& functor, std::size_t shared_bytes = 0) {
    using policy =
        by_argument<Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<static_cast<unsigned>(largest_block), 1>>>;
    using member = typename policy::member_type;
    constexpr std::size_t alignment = 64;
    const std::size_t scratch = std::max(shared_bytes, shared_bytes_of<Functor>);
    const auto lock = detail::lock_shortly(launch_guard());
    policy blocks(exec, teams, std::min(size, largest_block));
    if (scratch != 0) blocks.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(scratch + alignment)));
    Kokkos::parallel_for(std::string(label), blocks, run_blocks<member, Functor>{functor});
  }
};

}  // namespace ferry::kokkos
