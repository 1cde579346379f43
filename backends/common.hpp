// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

/// Parts that hosts and the backend of Kokkos alone have in common: those of a backend whose device has
/// nothing beyond Kokkos there.
namespace ferry::common {

/// The device that Kokkos uses is the only one, and Kokkos makes it current by itself.
class device_guard {
 public:
  template <class Exec>
  explicit device_guard(const Exec&) {}
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  ~device_guard() = default;
};

struct device_functions {
  using device_guard = common::device_guard;

  template <class Exec>
  static constexpr int device_of(const Exec&) {
    return 0;
  }
};

/// Kokkos does not tell whether an instance is being captured into a graph: none is.
struct capture_functions {
  struct capture_pause {
    explicit capture_pause(bool) {}
  };

  template <ExecutionSpace Exec>
  static constexpr bool capturing(const Exec&) {
    return false;
  }
  template <ExecutionSpace Exec>
  static void retain(const Exec&, const std::shared_ptr<void>&) {}
};

/// Memory of a process is its own; what ranks share is allocated for that, see ferry::shared_tensor.
struct interprocess_functions {
  static constexpr bool shares_memory = false;
};

struct timeline_functions {
  /// For kernels: nanoseconds, by a clock that all of them share; 0 on a device, where Kokkos has none.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint64_t clock_in_kernel() {
    std::uint64_t now = 0;
    KOKKOS_IF_ON_HOST(
        (now = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::steady_clock::now().time_since_epoch())
                                              .count());))
    return now;
  }
};

/// A thread of a team has one lane, whatever the width of the device's warps: Kokkos' loops over vector lanes
/// take no part of a thread's registers to its neighbours.
class lane_group {
 public:
  static constexpr int most_lanes = 1;

  KOKKOS_FORCEINLINE_FUNCTION explicit lane_group(int) {}
  KOKKOS_FORCEINLINE_FUNCTION static int lanes() { return 1; }
  KOKKOS_FORCEINLINE_FUNCTION static int lane() { return 0; }
  template <class Value, class Join>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION Value joined(Value value, const Join&) const {
    return value;
  }
  template <class Value, class Join>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION static Value joined_among(int, Value value, const Join&) {
    return value;
  }
  KOKKOS_FORCEINLINE_FUNCTION void meet() const {}
};

struct lane_functions {
  using lane_group = common::lane_group;
};

/// No atomics beyond those of Kokkos. A host's kernels add without: each row belongs to one thread.
struct atomic_functions {
  KOKKOS_FORCEINLINE_FUNCTION static unsigned long long atomic_read(const unsigned long long* word) {
    return Kokkos::atomic_load(word);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void atomic_raise(unsigned long long* target, unsigned long long value) {
    Kokkos::atomic_max(target, value);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void atomic_lower(unsigned long long* target, unsigned long long value) {
    Kokkos::atomic_min(target, value);
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool add_packet(float*, const float (&)[4]) { return false; }
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool add_packet(std::uint16_t*, const std::uint16_t (&)[4]) {
    return false;
  }
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool add_one(std::uint16_t*, std::uint16_t) {
    return false;
  }
};

/// Kokkos has no such instructions.
struct encoding_functions {
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool encode_byte(float, std::uint8_t&) {
    return false;
  }
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool encode_four_bytes(const float (&)[4], std::uint32_t&) {
    return false;
  }
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_byte(std::uint32_t, float&) {
    return false;
  }
  template <bool Five>
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_four_bytes(std::uint32_t, float (&)[4]) {
    return false;
  }
  KOKKOS_FORCEINLINE_FUNCTION static bool decode_eight_nibbles(std::uint32_t, float (&)[8]) { return false; }
  KOKKOS_FORCEINLINE_FUNCTION static bool widen_four_bytes(std::uint32_t, float (&)[4]) { return false; }
  KOKKOS_FORCEINLINE_FUNCTION static bool widen_two(std::uint32_t, float&, float&) { return false; }
  template <bool Brain>
  KOKKOS_FORCEINLINE_FUNCTION static bool narrow_two(float, float, std::uint32_t&) {
    return false;
  }
};

}  // namespace ferry::common
