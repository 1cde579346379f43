// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/distributed/sharded/detail/batch_findings.hpp>
#include <ferry/distributed/sharded/detail/kernel_route.hpp>
#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/sharded_call.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/array_checks.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The policies and types of a gather from a sharded table: `Asked` are the policies of the call, Wired the
/// elements that travel, Reader reads the rows of a shard.
template <class Asked, class Wired, class Reader>
struct read_choice {
  using asked = Asked;
  using chosen = local_policies<Asked>;
  using bounds_policy = typename chosen::template get<bounds_category, bounds::check>;
  using wired = Wired;
  using reader = Reader;
};

/// The rows of the batch, as they come from their owners. sharded_kind says what `arrived` is.
template <class Verb, class Reader, class T, class Home>
void fetch_rows(Verb& verb, const Reader& reader, tensor<T, Home>& arrived) {
  arrived = verb.template fetch<Home, T>(reader, verb.width());
}

/// A gather from a sharded table into `out`. The owners read the rows that the ranks ask for; with `once`
/// each different row of an owner comes once.
template <class Choice, class Exec, class Table, class Named, class Out>
struct sharded_read : sharded_call<Exec, Table, Named> {
  using base = sharded_call<Exec, Table, Named>;
  using base::call, base::exec, base::named, base::unique, base::routes, base::table;
  using home = payload_space<Exec, typename Table::memory_space, typename Out::memory_space>;
  using execution = Exec;
  using table_type = Table;
  using choice = Choice;
  using out_space = typename Out::memory_space;

  const Out& out;
  typename Choice::reader reader;
  typename sharded_kind<Table>::template arrived<typename Choice::wired, home> arrived{};

  sharded_read(const char* name, const Exec& instance, Table& rows, const Named& indices, const Out& sink,
               const call_note& note, typename Choice::reader shard_reader = {})
      : base(name, instance, rows, indices, false, note), out(sink), reader(shard_reader) {}

  void check() {
    require_sharded_batch<Exec, typename Choice::chosen>(this->verb, call, table, named, out);
    require_array_device(this->verb, exec, out);
  }
  void route() {
    unique = should_fetch_once<typename Choice::asked>(table, named);  // may wait for a plan
    if constexpr (!base::is_planned) {
      routes.batch = route_batch<typename Choice::bounds_policy>(this->verb, exec, table, named);
      if (unique) routes.batch = route_once(routes.batch);
    }
  }
  void agree() {
    if constexpr (!base::is_planned)
      if (!call.is_whole() && !routes.batch.everywhere)
        routes = complete_routing(call, table.label(), std::move(routes.batch));
  }
  /// Other ranks do not learn of bad indices of this one.
  [[nodiscard]] bool refuse() const { return false; }
  void move() {
    fetch_rows(*this, reader, arrived);
    call.close();
  }
  void apply() {
    place_by_route(exec, this->current_routes().batch, arrived, out);
    this->result = own_error();
  }

 protected:
  /// A ticket with the error of bad indices in this thread's batch.
  [[nodiscard]] ticket own_error() const {
    const route_groups& route = this->current_routes().batch;
    // After the last phase an allocation may fail on this rank alone.
    if (route.report.out_of_range == 0) return {};
    batch_findings batch;
    batch.out_of_range = route.report.out_of_range;
    batch.first_position = route.report.first_position;
    batch.first_index = route.report.first_index;
    batch.positions = route.positions;
    batch.signed_indices = route.signed_indices ? 1 : 0;
    return ticket_of_error(all_findings(this->verb, whole_ref(table).note(), {batch}, true).error());
  }
};

}  // namespace ferry::detail
