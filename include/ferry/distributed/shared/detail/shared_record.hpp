// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/memory_space.hpp>
#include <ferry/distributed/shared/detail/memory_lease.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/tensor/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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

/// Processes that know each other by their numbers.
struct process_home {
  std::array<char, 40> boot{};
  std::uint64_t numbers = 0;

  static process_home here();
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

  shared_record() = default;
  /// Of a tensor with elements of a type; without its memory.
  shared_record(const std::type_info& elements, std::size_t bytes, std::string_view in_space,
                std::string_view of_label, std::span<const std::size_t> sizes);

  /// "'w' [10 x 4] of float in device_space, of process 1234"
  [[nodiscard]] std::string describe() const;

  /// The same for a type in all programs.
  static std::uint64_t digest_of(const std::type_info& type);
  static std::string name_of_type(std::string_view mangled);
};

/// Throws invalid_argument: "<call>: <record>: <why>"
[[noreturn]] void refuse_record(const char* call, const shared_record& of, const std::string& why);
/// The same for device_space of a host backend.
[[noreturn]] void refuse_host_memory(const char* call, const shared_record& of);
/// Throws invalid_argument unless this process may open the tensor with elements of a type in a space; of
/// `rank` extents, -1 for any number.
void require_opens(const shared_record& of, const std::type_info& elements, std::size_t bytes,
                   std::string_view space, int rank);

}  // namespace ferry::detail
