// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/reach_shards.hpp>
#include <ferry/distributed/sharded/detail/sharded_verb.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

/// path::peer: kernels that read the shards of all ranks.
namespace ferry::detail {

/// The shards as launch_gather reads them.
/// @{
template <class T, class Spread>
bool in_units_of(std::size_t bytes, const reached_shards<T, Spread>& shards) {
  return shards.in_units_of(bytes);
}
template <class T, class Spread, class Source>
auto read_in_units(std::size_t bytes, const reached_shards<T, Spread>& shards, const Source& source) {
  const auto placed = shards.source_in(bytes, source);
  return rows_for_reading<T, std::remove_const_t<decltype(placed)>>{shards.lowest, 1, placed};
}
/// @}

/// Rows of a sharded table, which kernels read from the shards of all ranks. A kind of sharded table
/// specialises it.
template <class Table>
class peer_rows;

template <class T, class Space, class Spread>
class peer_rows<sharded_table<T, Space, Spread>> : public rows_of_kernels<T, Space> {
 public:
  explicit peer_rows(const sharded_table<T, Space, Spread>& shards)
      : shards_(shards), whole_(whole_ref(shards)) {}

  [[nodiscard]] const array_ref<T, Space>& table() const { return whole_; }
  [[nodiscard]] std::int64_t row_bytes() const { return bytes_of_rows(whole_, 1); }

  template <class Exec>
  reached_shards<T, kernel_sharding<Spread>> rows(launch_context<Exec>& call) const {
    return reach_shards(call, shards_);
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

 private:
  const sharded_table<T, Space, Spread>& shards_;
  array_ref<T, Space> whole_;
};
template <class T, class Space, class Spread>
peer_rows(const sharded_table<T, Space, Spread>&) -> peer_rows<sharded_table<T, Space, Spread>>;

/// Such rows, if each different row of a plan is to cross once.
template <class Table>
class peer_rows_once : public peer_rows<Table> {
 public:
  template <class OutSpace>
  static constexpr bool gathers_once = true;
  using peer_rows<Table>::peer_rows;
};

/// The verb. `named` comes from rows_named_by; the arguments have been checked.
template <class Bounds, class Exec, class Table, class Named, class Out, class OutSpace>
ticket gather_from_peers(const Exec& exec, const Table& table, const Named& named,
                         const array_ref<Out, OutSpace>& out, bool shares_rows = true) {
  if (out.size() != 0) require_array_device("gather", exec, out);
  if constexpr (is_plan<Named>)
    if (shares_rows) return run_gather<path::peer, Bounds>(exec, peer_rows_once<Table>(table), named, out);
  return run_gather<path::peer, Bounds>(exec, peer_rows<Table>(table), named, out);
}

/// Checks the arguments of a gather by path::peer and gathers.
template <class Chosen, class Exec, class Table, class Indices, class Out>
ticket checked_peer_gather(const Exec& exec, const Table& table, const Indices& indices, Out& out) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using checked = chosen_policies<path::direct, bounds_policy>;
  require_policies<Chosen, true, false>();
  static_assert(!is_sharded_plan<Indices>,
                "ferry: path::peer takes indices or a row_plan; a sharded_plan has routes for exchanges.");
  static_assert(
      requires { requires Table::sharding_type::in_kernels; },
      "ferry: path::peer finds the owners of rows in kernels; make owner and local_row of the sharding KOKKOS_FUNCTIONs and declare in_kernels = true.");
  require_sharded_verb<Exec, Table, Indices, Out, checked, false>();
  const auto sink = make_ref(out);
  sharded_kind<Table>::template require_output<std::remove_const_t<decltype(sink)>>();
  const auto& named = rows_named_by(indices);
  using given =
      std::conditional_t<Chosen::template names<bounds_category>, checked, chosen_policies<path::direct>>;
  require_batch<Exec, given>("gather", whole_ref(table), named, sink);
  return gather_from_peers<bounds_policy>(exec, table, named, sink);
}

}  // namespace ferry::detail
