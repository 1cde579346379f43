// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/sharded/detail/rows_once.hpp>
#include <ferry/distributed/sharded/detail/sharded_read.hpp>
#include <ferry/distributed/sharded/detail/with_routes.hpp>
#include <ferry/distributed/sharded/make_plan.hpp>
#include <ferry/distributed/sharded/sharded_rowwise_int8.hpp>
#include <ferry/quantized/gather.hpp>
#include <ferry/rows/gather.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Fetches records, and converts them here.
template <class Choice, class Exec, class Table, class Named, class Out>
struct sharded_code_gather : sharded_read<Choice, Exec, Table, Named, Out> {
  using base = sharded_read<Choice, Exec, Table, Named, Out>;
  using base::base;

  std::size_t values_in_row = 0;

  void check() {
    auto whole = whole_ref(this->table);
    whole.extents[1] = static_cast<std::int64_t>(values_in_row);
    whole.make_dense();
    if constexpr (base::is_planned) {
      require_sharded_plan<typename Choice::chosen>("gather", this->named, this->table);
      require_shapes("gather", whole, this->named.positions(), this->out);
    } else {
      require_batch<Exec, typename Choice::chosen>("gather", whole, this->named, this->out);
    }
    require_apart("gather", this->call, this->table, this->out);
  }
  void apply() {
    const auto slots = slots_of(this->current_routes().batch);
    rowwise_int8_tensor<typename base::home> codes(this->table.label(), 0, values_in_row);
    codes.records() = std::move(this->arrived);
    gather(this->exec, codes, slots, this->out, bounds::skip{}).join();
    this->result = this->own_error();
  }
};

}  // namespace detail

/// out[p] = the values of row indices[p] of a sharded 8-bit table, as gather from a rowwise_int8_tensor has
/// them. Indices may also be a sharded_plan of table.records(), or a row_plan for tables of as many rows.
/// Policies, errors and collective meaning are those of gather from a sharded_table.
template <class Exec, class Space, class Spread, class Indices, class Out, class... Policies>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket gather(
    const Exec& exec, const sharded_rowwise_int8<Space, Spread>& table, const Indices& indices, Out&& out,
    Policies...) {
  using asked = detail::chosen_policies<Policies...>;
  using records = typename sharded_rowwise_int8<Space, Spread>::records_type;
  detail::require_sharded_verb<Exec, records, Indices, Out, detail::local_policies<asked>, false>();
  detail::require_output<Out>();
  const auto sink = make_ref(out);
  const auto& codes = table.records();
  const auto& named = detail::sharded_rows_named_by(indices);
  using reader = detail::shard_reader<detail::shard_read_path_t<detail::local_policies<asked>, Exec, Space>>;
  detail::sharded_code_gather<detail::read_choice<asked, std::byte, reader>, Exec, const records,
                              std::remove_cvref_t<decltype(named)>, std::remove_const_t<decltype(sink)>>
      verb("gather", exec, codes, named, sink,
           detail::add_plan(detail::note_of<>("gather", codes), indices, detail::fetches_once<asked>));
  verb.values_in_row = table.width();
  return verb.call.run(verb);
}

}  // namespace ferry
