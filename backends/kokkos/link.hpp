// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch.hpp"
#include "several_devices.hpp"

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::kokkos {

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

struct link_functions {
  static constexpr int largest_block = 512;

  /// Enqueues functor(team) for each of `teams` teams of `size` threads, at most largest_block.
  template <ExecutionSpace Exec, class Functor>
  static void launch_blocks(const Exec& exec, std::string_view label, int teams, int size,
                            const Functor& functor, std::size_t shared_bytes = 0) {
    using policy = launch_functions::by_argument<
        Kokkos::TeamPolicy<Exec, Kokkos::LaunchBounds<static_cast<unsigned>(largest_block), 1>>>;
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
