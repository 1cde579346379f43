// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/loader/detail/lane.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry::detail {

/// A list of rows by position, -1 for positions without a row.
template <class Exec>
using rows_by_position = array_ref<const std::int64_t, batch_space_of<Exec>>;

/// A gather whose element type and table space only the callee knows.
template <class Exec>
using listed_gather = ticket (*)(const Exec& exec, const array_shape& table, const void* data,
                                 const rows_by_position<Exec>& rows, const array_shape& out, void* memory);

/// Gathers the rows of a list.
template <class Exec, class T, class TableSpace>
ticket gather_listed(const Exec& exec, const array_shape& table, const void* data,
                     const rows_by_position<Exec>& rows, const array_shape& out, void* memory) {
  using path_policy = std::conditional_t<!is_host_exec<Exec> && std::is_same_v<TableSpace, pinned_space>,
                                         path::ordered, path::direct>;
  const array_ref<const T, TableSpace> source{table, static_cast<const T*>(data)};
  const array_ref<T, batch_space_of<Exec>> batch{out, static_cast<T*>(memory)};
  return gather(exec, source, rows, batch, bounds::skip{}, path_policy{});
}

/// The table of a row_prefetcher and the type of its indices, for compiled functions.
template <class Exec>
struct row_request {
  array_shape table;
  const void* data;
  std::size_t element_bytes;
  listed_gather<Exec> gather;
  std::size_t index_bytes;
  bool signed_indices;
};

}  // namespace ferry::detail
