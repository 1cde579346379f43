// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/rows/detail/global_rows.hpp>

#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ferry::detail {

/// The kernel part of a transform, which gets the rows of the whole table.
template <class Inner, class Compute>
struct global_transform_kernel : Inner {
  kernels::global_rows rows;

  KOKKOS_FORCEINLINE_FUNCTION bool takes(std::int64_t row) const { return Inner::takes(rows(row)); }
  KOKKOS_FORCEINLINE_FUNCTION Compute changed(const Compute& before, const Compute& after,
                                              std::int64_t row) const {
    return Inner::changed(before, after, rows(row));
  }
};

/// A transform for the step of a shard: its arrays have one number for each row of the whole table.
template <class Transform>
class plain_global_transform {
 public:
  static constexpr std::string_view name = Transform::name;

  plain_global_transform(const Transform& transform, const kernels::global_rows& rows,
                         std::int64_t local_rows)
      : transform_(transform), rows_(rows), local_rows_(local_rows) {}

  template <class Compute>
  [[nodiscard]] auto device_part() const {
    using inner = decltype(transform_.template device_part<Compute>());
    return global_transform_kernel<inner, Compute>{transform_.template device_part<Compute>(), rows_};
  }
  /// The checks of a step compare an array with the shard; those of the whole table come before.
  template <class Check>
  void for_each_array(const Check& check) const {
    transform_.for_each_array([&](auto array) {
      if constexpr (requires { array.extents[0]; }) array.extents[0] = local_rows_;
      check(array);
    });
  }
  void check() const { transform_.check(); }

 private:
  Transform transform_;
  kernels::global_rows rows_;
  std::int64_t local_rows_;
};

template <class Transform>
class global_transform : public plain_global_transform<Transform> {
 public:
  using plain_global_transform<Transform>::plain_global_transform;
};
template <class Transform>
  requires requires { typename Transform::memory_space; }
class global_transform<Transform> : public plain_global_transform<Transform> {
 public:
  using memory_space = typename Transform::memory_space;
  using plain_global_transform<Transform>::plain_global_transform;
};

/// The rule of a step on a shard. `rule` is that of the step on the whole table.
template <class Rule>
const Rule& rule_for_shard(const Rule& rule, const kernels::global_rows&, std::int64_t) {
  return rule;
}
template <class Rule, class... Transforms>
auto rule_for_shard(const optim::chain<Rule, Transforms...>& rule, const kernels::global_rows& rows,
                    std::int64_t local_rows) {
  return std::apply(
      [&](const auto&... transform) {
        return optim::chain<Rule, global_transform<Transforms>...>(
            rule.rule, global_transform<Transforms>(transform, rows, local_rows)...);
      },
      rule.transforms);
}

/// The rule for the shard of a rank.
template <class Rule, class Table, class State>
auto rule_of_shard(const Rule& rule, const Table& table, const State& state, int rank) {
  return rule_for_shard(rule, state.shard(rank).clock()->rows, table.rows_of(rank));
}

/// Refuses what the steps on the shards would, so that no shard is written before.
template <class StepCount, class Compute, class Rule, class Table, class State>
void require_sharded_step(const char* verb, const collective& call, const Rule& optimizer, const Table& table,
                          const State& state) {
  const auto whole = whole_ref(table);
  const auto& rule = optim::detail::transforms_of<Rule>::rule_in(optimizer);
  require_optimizer(verb, optimizer, whole);
  require_options_in<Compute>(optimizer);
  state.require_made_for(verb, table);
  for (int r = call.first(); r < call.last(); ++r) {
    require_fields(verb, optim::detail::active_fields(rule), state.shard(r), rule.name, whole.label);
    state.shard(r).clock()->require_policy(verb, StepCount::name, whole.label);
    if constexpr (StepCount::counts_rows)
      state.shard(r).clock()->require_countable(verb, StepCount::name, whole.label);
  }
}

}  // namespace ferry::detail
