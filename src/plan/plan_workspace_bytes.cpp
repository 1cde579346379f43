// SPDX-License-Identifier: Apache-2.0
#include <ferry/plan/plan_workspace_bytes.hpp>

#include "../../backends/enabled.hpp"
#include "plan_layout.hpp"

#include <bit>
#include <string>

namespace ferry::detail {

std::size_t plan_layout::take(std::size_t size) {
  const std::size_t offset = bytes;
  bytes += (size + 127) / 128 * 128;
  return offset;
}

plan_layout plan_layout::of_arrays(std::int64_t positions, std::int64_t rows) {
  plan_layout layout;
  const auto n = static_cast<std::size_t>(positions);
  constexpr std::size_t number = sizeof(std::int64_t);
  layout.row_of = layout.take(n * number);
  layout.inverse = layout.take(n * number);
  layout.unique_rows = layout.take(n * number);
  layout.counts = layout.take(3 * number);
  layout.order = layout.take(n * number);
  layout.segment_begin = layout.take((n + 1) * number);
  layout.sorted_rows = layout.take(n * number);
  for (auto& buffer : layout.keys) buffer = layout.take((n + 1) * number);
  layout.position_bits = n == 0 ? 0 : static_cast<int>(std::bit_width(n - 1));
  layout.key_bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
  // Segments and runs are counted in one half each of 64 bits.
  if (layout.position_bits > 31 || layout.position_bits + layout.key_bits > 64)
    throw invalid_argument(
        "ferry::make_plan: " + std::to_string(positions) + " indices into " + std::to_string(rows) +
        " rows are too many for one plan: at most 2147483648, and with their rows' numbers 64 bits");
  return layout;
}

template <ExecutionSpace Exec>
std::size_t bytes_of_plan(const Exec& exec, std::int64_t positions, std::int64_t rows) {
  const typename execution_backend<Exec>::device_guard guard(exec);
  return layout_of_plan<execution_backend<Exec>>(positions, rows).bytes;
}

void refuse_plan_size(const std::string& positions, const std::string& rows) {
  throw invalid_argument("ferry::plan_workspace_bytes: " + positions + " positions and " + rows +
                         " rows were given, neither may be negative");
}

void require_workspace(const array_note& room, const void* data, bool contiguous, std::size_t needed) {
  const auto complain = [&](const std::string& flaw) {
    throw invalid_argument("ferry::make_plan: the workspace " + room.describe() + " " + flaw + "; " +
                           std::to_string(needed) + " bytes are needed, " +
                           std::to_string(room.rank == 0 ? 0 : room.extents[0]) + " given");
  };
  if (room.rank != 1 || !contiguous) complain("must be contiguous and of rank 1");
  if (std::cmp_less(room.extents[0], needed)) complain("is too small");
  const auto past = reinterpret_cast<std::uintptr_t>(data) % plan_workspace_alignment;
  if (past != 0)
    complain("begins " + std::to_string(past) + " bytes after a multiple of " +
             std::to_string(plan_workspace_alignment));
}

#define FERRY_PLAN_BYTES_OF(EXEC) template std::size_t bytes_of_plan(const EXEC&, std::int64_t, std::int64_t);
FERRY_FOR_EXECUTION_SPACES(FERRY_PLAN_BYTES_OF)
#undef FERRY_PLAN_BYTES_OF

}  // namespace ferry::detail
