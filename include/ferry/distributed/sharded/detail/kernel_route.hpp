// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/host_values.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/route_kernels.hpp>
#include <ferry/distributed/sharded/detail/row_route.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/shard_places.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

/// Routes that kernels make: the host learns the number of positions for each owner and the bad indices.
namespace ferry::detail {

/// True if batches of Exec are routed by kernels: all but those of a host's instance in a program with
/// devices, whose lists would lie in memory that it does not reach.
template <class Exec>
inline constexpr bool routes_by_kernels = !is_host_exec<Exec> || device_is_host<Exec>;

/// True if kernels find the owners of the rows of a table.
template <class Table>
inline constexpr bool finds_owners_in_kernels = requires {
  requires Table::sharding_type::in_kernels;
  requires !Table::sharding_type::replicates;
};

/// The positions of a batch and their rows in the shards of their owners, in the order of the route, where
/// kernels of the device reach them. Empty if the host made the route.
struct routed_lists {
  std::shared_ptr<void> memory;
  const std::int64_t* place = nullptr;
  const std::int64_t* rows = nullptr;
};

/// True if kernels of the instance can read the indices or the plan.
template <class Exec, class Named>
bool kernels_read(const Exec& exec, const Named& named) {
  if constexpr (!is_plan<Named>)
    return !lies_elsewhere(exec, named);
  else if constexpr (is_host_exec<Exec>)
    return true;
  else
    return !named.storage()->on_host && named.storage()->device == execution_backend<Exec>::device_of(exec);
}

/// Enqueues the kernels. `ends` and the lists are valid after them.
template <class Exec, class Source, class Spread>
void launch_route(launch_context<Exec>& call, kernels::owned_positions<Source, Spread> positions,
                  std::int64_t* place, std::int64_t* rows, std::int64_t* ends) {
  using backend = execution_backend<Exec>;
  // Short chunks for many threads; with many owners longer ones, so that the counts are no more than the
  // positions.
  positions.length = std::max<std::int64_t>(16, positions.ranks);
  positions.is_packed = positions.ranks <= kernels::packed_counts::most_owners &&
                        positions.length <= kernels::packed_counts::most;
  positions.chunks = (positions.positions + positions.length - 1) / positions.length;
  const std::int64_t cells = positions.chunks * positions.ranks;
  auto* const counts = call.template scratch<std::uint32_t>(cells);
  auto* const sums = call.template scratch<std::uint64_t>(cells);
  const std::size_t bytes = backend::template sum_bytes<const std::uint32_t*>(cells);
  auto* const workspace = call.template scratch<std::byte>(static_cast<std::int64_t>(bytes));
  launch(call.exec(), call.label("route", "count"), positions.chunks,
         kernels::count_owned<Source, Spread>{positions, counts});
  backend::inclusive_sum(call.exec(), static_cast<const std::uint32_t*>(counts), sums, cells, workspace,
                         bytes);
  launch(call.exec(), call.label("route", "place"), positions.chunks,
         kernels::place_owned<Source, Spread>{positions, counts, sums, place, rows, ends});
}

/// The route of a batch as route_rows makes it, with its positions and rows in `lists` and not in the route.
/// Waits once for the instance: what it writes to the lists has ended then, as has the work that makes
/// `values`, the rows of the batch, if there are any.
template <class Bounds, class Exec, class Table, class Named, class... Values>
row_route<wire_space<Exec>> route_by_kernels(const char* verb, const Exec& exec, const Table& table,
                                             const Named& named, routed_lists& lists,
                                             const Values&... values) {
  using backend = execution_backend<Exec>;
  using spread = typename Table::sharding_type;
  const int ranks = table.comm().size();
  const auto rows = static_cast<std::int64_t>(table.rows());
  const std::int64_t count = positions_of(named);
  row_route<wire_space<Exec>> route;
  route.positions = count;
  route.begin.assign(static_cast<std::size_t>(ranks) + 1, 0);

  launch_context<Exec> call(exec, verb);
  (call.reads_from(values, true), ...);
  const auto room = static_cast<std::size_t>(count < 1 ? 1 : count);
  lists.memory = engine::get(exec)->device_scratch(2 * room * sizeof(std::int64_t));
  auto* const place = static_cast<std::int64_t*>(lists.memory.get());
  lists.place = place;
  lists.rows = place + room;
  auto* const ends = call.template pinned<std::int64_t>(ranks);
  std::fill_n(ends, ranks, std::int64_t{0});
  const auto route_from = [&](const auto& source) {
    using from = std::remove_cvref_t<decltype(source)>;
    if (count > 0)
      launch_route(
          call,
          kernels::owned_positions<from, spread>{source, table.sharding(), rows, count, 1, count, ranks},
          place, place + room, ends);
  };
  static const std::string label = "ferry::distributed::routed";
  if constexpr (is_plan<Named>) {
    call.use(named.storage());
    route_from(kernels::listed_rows{named.storage()->row_of});
    backend::fence(exec, label);
    if (named.storage()->checked) route.report = named.storage()->read_report();
    route.signed_indices = named.storage()->signed_indices;
  } else {
    using index = std::remove_const_t<typename Named::value_type>;
    const report_writer report = Bounds::reports ? call.report() : report_writer{};
    route_from(kernels::index_rows<index, Bounds>{indices_for_kernels(call, named), rows, report});
    backend::fence(exec, label);
    if constexpr (Bounds::reports) route.report = read_report<Exec>(report);
    route.signed_indices = std::is_signed_v<index>;
  }
  std::copy_n(ends, ranks, route.begin.begin() + 1);
  call.finish().drop();
  return route;
}

/// Brings the lists into the route, for exchanges of the host. Blocks.
template <class Exec, class Wire>
void bring_to_host(const Exec& exec, const routed_lists& lists, row_route<Wire>& route) {
  static constexpr const char* label = "ferry::distributed::bring_to_host";
  route.place = tensor<std::int64_t, Wire>("positions", route.routed());
  route.rows = tensor<std::int64_t, Wire>("rows", route.routed());
  const std::size_t bytes = route.place.size() * sizeof(std::int64_t);
  if (bytes == 0) return;
  const fence_at_exit<Exec> waits(exec);
  execution_backend<Exec>::copy_async(exec, label, route.place.data(), lists.place, bytes);
  execution_backend<Exec>::copy_async(exec, label, route.rows.data(), lists.rows, bytes);
  waits.fence();
}

/// The route of a batch in host memory, for exchanges of the host. Kernels of a device group the positions;
/// route_rows does if they don't reach the plan or the indices, or don't know the owners of rows. Blocks.
template <class Bounds, class Exec, class Table, class Named>
row_route<wire_space<Exec>> route_batch([[maybe_unused]] const char* verb, const Exec& exec,
                                        const Table& table, const Named& named) {
  if constexpr (routes_by_kernels<Exec> && finds_owners_in_kernels<Table>)
    if (kernels_read(exec, named)) {
      routed_lists lists;
      auto route = route_by_kernels<Bounds>(verb, exec, table, named, lists);
      bring_to_host(exec, lists, route);
      return route;
    }
  return route_rows<Bounds>(exec, table, named);
}

}  // namespace ferry::detail
