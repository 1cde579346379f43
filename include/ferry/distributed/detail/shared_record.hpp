// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/detail/machine_mark.hpp>
#include <ferry/distributed/detail/memory_lease.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/extents.hpp>

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <typeinfo>

namespace ferry::detail {

/// Whether a space is memory of devices that the backend lets other processes open.
template <class Space>
consteval bool shares_memory() {
  if constexpr (Space::is_host_accessible)
    return false;
  else if constexpr (requires { device_backend<Space>::shares_memory; })
    return device_backend<Space>::shares_memory;
  else
    return false;
}

template <class Space>
consteval void require_shared_space() {
  static_assert(
      !Space::is_host_accessible,
      "ferry: share and open_shared are for memory of devices, in device_space; processes share host memory by ferry::shared_tensor.");
}

/// Why device_space of a host backend is not shared.
inline constexpr const char* no_shared_memory =
    "on this backend that is host memory, which no other process can open; make a ferry::shared_tensor instead";

/// Processes that know each other by their numbers.
struct process_home {
  std::array<char, 40> boot{};
  std::uint64_t numbers = 0;

  static process_home here() { return {machine_mark::here().boot, namespace_of("/proc/self/ns/pid")}; }
};

/// An allocation that other processes may open.
struct memory_loan {
  lease_name lease;
  exported_memory exported;
  device_uuid device{};
  std::uint64_t bytes = 0;
};

/// Text of a fixed size, cut where it is longer.
template <std::size_t Size>
struct short_text {
  std::array<char, Size> text{};

  short_text() = default;
  explicit short_text(std::string_view from) { from.copy(text.data(), Size - 1); }
  [[nodiscard]] std::string_view view() const { return {text.data()}; }
};

/// What a shared_handle holds.
struct shared_record {
  /// Handles of another layout are not understood.
  static constexpr std::uint64_t own_mark = 0x3130'6572'6168'7366;

  std::uint64_t mark = 0;
  std::uint64_t type = 0;  ///< of the elements
  std::uint64_t element_bytes = 0;
  std::uint64_t offset = 0;  ///< bytes from the allocation's first to the tensor's
  std::uint64_t rank = 0;
  std::array<std::uint64_t, max_rank> extents{};
  memory_loan loan;
  process_home home;
  short_text<32> space;
  short_text<64> type_name;
  short_text<96> label;

  /// "'w' [10 x 4] of float in device_space, of process 1234"
  [[nodiscard]] std::string describe() const {
    if (mark != own_mark) return "a handle that names no tensor";
    std::string shape = "[";
    for (std::size_t i = 0; i < std::min<std::size_t>(rank, max_rank); ++i)
      shape += (i == 0 ? "" : " x ") + std::to_string(extents[i]);
    return "'" + std::string(label.view()) + "' " + shape + "] of " + name_of_type(type_name.view()) +
           " in " + std::string(space.view()) +
           (loan.lease.number == 0 ? std::string() : ", of process " + std::to_string(loan.lease.process));
  }

  /// The same for a type in all programs.
  template <class T>
  static std::uint64_t digest_of() {
    std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
    for (const char* at = typeid(T).name(); *at != '\0'; ++at)
      digest = (digest ^ static_cast<unsigned char>(*at)) * 0x100000001b3u;
    return digest;
  }
  static std::string name_of_type(std::string_view mangled) {
    int status = 0;
    const std::string text(mangled);
    char* const readable = abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status);
    if (readable == nullptr) return text;
    std::string made(readable);
    std::free(readable);
    return made;
  }
};

}  // namespace ferry::detail
