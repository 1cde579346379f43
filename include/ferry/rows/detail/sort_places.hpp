// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// Sorts positions by the table's pages, for a gather that only needs locality: one or two sort passes and
/// none of a plan's other arrays. Enqueued; the launch context owns the arrays.
template <class Bounds, class Exec, class Index, class Space>
kernels::sorted_places sort_by_page(launch_context<Exec>& call, const array_ref<Index, Space>& indices,
                                    std::int64_t rows, std::int64_t row_bytes) {
  using backend = execution_backend<Exec>;
  using plain = std::remove_const_t<Index>;
  const std::int64_t page = backend::tuning(call.exec()).locality_bytes;
  const std::int64_t n = indices.rows();
  auto* order = call.template scratch<std::int64_t>(2 * n);
  std::int64_t* spare = order + n;
  auto* keys = call.template scratch<std::uint64_t>(2 * n);
  std::uint64_t* key_room = keys + n;
  const kernels::index_rows<plain, Bounds> loader{indices_for_kernels(call, indices), rows,
                                                  Bounds::reports ? call.report() : report_writer{}};
  const std::string& label = call.label("sort");
  launch(call.exec(), label, n, kernels::resolve_indices<plain, Bounds>{loader, nullptr, keys, order});
  const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
  const auto rows_of_page = static_cast<std::uint64_t>(page / std::max<std::int64_t>(1, row_bytes));
  const int first_bit = std::min(bits - 1, std::max(0, static_cast<int>(std::bit_width(rows_of_page)) - 1));
  const std::size_t bytes = backend::sort_bytes(n, first_bit, bits);
  auto* room = call.template scratch<std::byte>(static_cast<std::int64_t>(bytes));
  backend::sort_pairs(call.exec(), keys, key_room, order, spare, n, first_bit, bits, room, bytes);
  return {keys, order, static_cast<std::uint64_t>(rows)};
}

}  // namespace ferry::detail
