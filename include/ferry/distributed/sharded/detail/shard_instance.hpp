// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace ferry::detail {

/// The instance for the shard of a rank: the caller's, or the rank's own if its device is another one. The
/// verbs wait for what they enqueue on it.
template <class Exec>
Exec shard_instance(const communicator& comm, int rank, const Exec& exec) {
  if constexpr (std::is_same_v<Exec, Kokkos::DefaultExecutionSpace> && !is_host_exec<Exec>)
    if (const device shard_device = comm.device(rank);
        shard_device.id >= 0 && shard_device.id != execution_backend<Exec>::device_of(exec))
      return comm.exec(rank);
  return exec;
}

/// The numbers that the rows of the shard of a rank have in the table.
template <class Table>
auto row_numbers(const Table& table, int rank) {
  return table.sharding().global_rows(rank, static_cast<std::int64_t>(table.rows()), table.comm().size());
}

/// True if an array lies on another device than the instance.
template <class Exec, class Array>
bool lies_elsewhere(const Exec& exec, const Array& array) {
  if constexpr (is_host_exec<Exec>)
    return false;
  else
    return array.device() >= 0 && array.device() != execution_backend<Exec>::device_of(exec);
}

/// out = rows of a table; `out` may lie on another device than the instance. Blocks.
template <class Exec, class Table, class Rows, class Out>
void gather_across(const Exec& exec, const Table& table, const Rows& rows, Out& out) {
  const auto sink = make_ref(out);
  if (!lies_elsewhere(exec, sink)) return gather(exec, table, rows, out, bounds::unchecked{}).join();
  using value = typename decltype(sink)::value_type;
  using space = typename decltype(sink)::memory_space;
  auto part = tensor_like<value, space>(sink, memory_home(exec), sink.rows(), "copied rows");
  gather(exec, table, rows, part, bounds::unchecked{}).join();
  copy(exec, part, out).join();
}

/// Rows of a table = values, each row once; the values may lie on another device than the instance.
/// Blocks.
template <class Exec, class Table, class Rows, class Values>
void scatter_across(const Exec& exec, Table& table, const Rows& rows, const Values& values) {
  constexpr auto unique = duplicates::assume_unique{};
  const auto source = make_ref(values);
  if (!lies_elsewhere(exec, source)) return scatter(exec, table, rows, values, unique).join();
  using value = std::remove_const_t<typename decltype(source)::value_type>;
  using space = typename decltype(source)::memory_space;
  auto part = tensor_like<value, space>(source, memory_home(exec), source.rows(), "copied rows");
  copy(exec, values, part).join();
  scatter(exec, table, rows, part, unique).join();
}

}  // namespace ferry::detail
