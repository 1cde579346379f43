// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/transport.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

/// The message of a rank to each other rank at the beginning of every call.
struct call_header {
  enum class kind : std::uint32_t { all_gather, exchange, failure, abort, late };

  /// The first bytes of a message: of a header, or of the data of a call.
  static constexpr std::uint64_t header_mark = 0x7265646165682e66ull, data_mark = 0x617461642e66ull;

  std::uint64_t mark = header_mark;
  call_note note;
  kind call_kind = kind::all_gather;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
  failure_text said;
  /// The bytes of an all_gather, if they fit: most of those of verbs do, for 64 ranks.
  static constexpr std::size_t room = 1024;
  std::array<std::byte, room> data{};
};

}  // namespace ferry::detail
