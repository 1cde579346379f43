// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ferry::detail {

enum class call_kind : std::uint32_t { all_gather, exchange, failure, abort, late };

/// The words of a rank at the beginning of every call, which are equal on all ranks if all is well.
struct call_brief {
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t call = 0;    ///< number of the call
  std::uint64_t digest = 0;  ///< of the note
  std::uint64_t bytes = 0;   ///< of each rank in an all_gather
  /// The bytes of an all_gather, if they fit: most of those of verbs do.
  static constexpr std::size_t room = 1024;
  std::array<std::byte, room> data{};
};

/// The full words of a rank, which ranks exchange if their brief ones differ, and with which a rank leaves.
struct call_header {
  call_note note;
  call_kind kind = call_kind::all_gather;
  std::int32_t rank = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
  failure_text said;
};

}  // namespace ferry::detail
