// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/communicator.hpp>
#include <ferry/distributed/sharded/detail/row_spread.hpp>
#include <ferry/io/detail/checkpoint_array.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/rows/scatter.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/tensor/tensor.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The shard of a rank as a file sees it. Rows at any places of a shard on a device move by kernels.
struct shard_part {
  checkpoint_array array;
  /// Rows in host memory, one after the other = those at `places`, and the other way round. Block. Null if
  /// the host reaches the shard.
  void (*gather)(const communicator&, int rank, const checkpoint_array& array,
                 const std::vector<std::int64_t>& places, std::byte* out) = nullptr;
  void (*scatter)(const communicator&, int rank, const checkpoint_array& array,
                  const std::vector<std::int64_t>& places, const std::byte* rows) = nullptr;
};

template <class Space, class Byte>
tensor_view<Byte, Space> bytes_of_shard(const checkpoint_array& array) {
  return tensor_view<Byte, Space>(array.data, array.schema.extents[0], array.row_bytes);
}
/// Places and rows in memory that kernels of a device reach.
struct rows_on_wire {
  tensor<std::int64_t, pinned_space> places;
  tensor<std::byte, pinned_space> rows;

  rows_on_wire(const std::vector<std::int64_t>& numbers, std::uint64_t row_bytes);
};

template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void gather_places(const communicator& comm, int rank, const checkpoint_array& array,
                   const std::vector<std::int64_t>& places, std::byte* out) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard guard(exec);
  rows_on_wire wire(places, array.row_bytes);
  gather(exec, bytes_of_shard<Space, const std::byte>(array), wire.places, wire.rows, bounds::unchecked{})
      .join();
  std::memcpy(out, wire.rows.data(), wire.rows.size());
}
template <class Space, class Exec = Kokkos::DefaultExecutionSpace>
void scatter_places(const communicator& comm, int rank, const checkpoint_array& array,
                    const std::vector<std::int64_t>& places, const std::byte* rows) {
  const Exec exec = comm.template exec<Exec>(rank);
  const typename execution_backend<Exec>::device_guard guard(exec);
  rows_on_wire wire(places, array.row_bytes);
  std::memcpy(wire.rows.data(), rows, wire.rows.size());
  auto shard = bytes_of_shard<Space, std::byte>(array);
  scatter(exec, shard, wire.places, wire.rows, duplicates::assume_unique{}, bounds::unchecked{}).join();
}

template <class Space>
shard_part part_of_shard(checkpoint_array&& array) {
  shard_part part;
  part.array = std::move(array);
  if constexpr (!Space::is_host_accessible && !device_is_host<Space>) {
    part.gather = &gather_places<Space>;
    part.scatter = &scatter_places<Space>;
  }
  return part;
}

/// The whole array, of which the parts are rows: those of ranks first, first + 1 and so on; one, or all.
[[nodiscard]] checkpoint_array array_of_shards(const communicator& comm,
                                               std::shared_ptr<const row_spread> spread, int first,
                                               std::vector<shard_part>&& parts);

}  // namespace ferry::detail
