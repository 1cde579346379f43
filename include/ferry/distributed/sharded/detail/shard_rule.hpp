// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/transform.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/detail/batch_headers.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/optim/chain.hpp>
#include <ferry/optim/detail/step_inputs.hpp>
#include <ferry/optim/detail/step_rows.hpp>
#include <ferry/optim/detail/transform_pack.hpp>
#include <ferry/optim/field.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/global_rows.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// Shards as verbs write them.
namespace ferry::detail {

/// The shard of a quantized table, with the members of quantized_tensor. The table owns its memory.
template <class Table>
class coded_shard {
 public:
  using quantization = typename Table::quantization;
  using memory_space = typename Table::memory_space;
  using scale_space = typename Table::scale_space;

  coded_shard(Table& table, int rank) : table_(&table), rank_(rank) {}

  [[nodiscard]] std::size_t rows() const { return records().rows(); }
  [[nodiscard]] std::size_t width() const { return table_->width(); }
  [[nodiscard]] std::size_t blocks() const { return table_->blocks(); }
  [[nodiscard]] std::size_t row_bytes() const { return table_->row_bytes(); }
  [[nodiscard]] float scale() const { return table_->scale(); }
  [[nodiscard]] auto& records() const { return table_->stored().shard(rank_); }
  [[nodiscard]] auto& codes() const { return table_->stored().shard(rank_); }
  [[nodiscard]] auto& scales() const { return table_->scales().shard(rank_); }

 private:
  Table* table_;
  int rank_;
};

/// True if a sharded table, of either kind, has quantized rows.
template <class Table>
inline constexpr bool has_coded_rows = requires {
  typename Table::quantization;
};

/// The shard of a rank as verbs on ordinary tables take it.
template <class Table>
decltype(auto) shard_of(Table& table, int rank) {
  if constexpr (has_coded_rows<Table>)
    return coded_shard<Table>(table, rank);
  else
    return (table.shard(rank));
}

/// The addresser of a shard in a step.
template <class Table>
auto step_access_of_shard(Table& table, int rank) {
  auto&& shard = shard_of(table, rank);
  if constexpr (has_coded_rows<Table>)
    return weights_access<coded_shard<Table>>(shard, "step");
  else
    return step_access<decltype(shard)>(shard, "step");
}

/// Checks that kernels of Exec reach the scales; the codes are checked as rows of any table.
template <class Exec, class Table>
consteval void require_scales_of_shards() {
  if constexpr (has_coded_rows<Table>) require_reach<Exec, tensor<std::byte, typename Table::scale_space>>();
}

/// The ranks agree on the factor of a table.
template <class Table>
call_note& add_factor(call_note& note, [[maybe_unused]] const Table& table) {
  if constexpr (has_coded_rows<Table>)
    if constexpr (Table::quantization::has_tensor_scale) note.add_hidden(note_part::values, table.scale());
  return note;
}

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

/// The values of a batch that are infinite or not a number. Blocks.
template <class Exec, class Value, class Space>
batch_findings scan_values(const Exec& exec, const array_ref<Value, Space>& values) {
  batch_findings findings;
  if (values.size() == 0) return findings;
  static const std::string label = "ferry::step::find_nonfinite";
  if (values.accesses != nullptr) values.accesses->wait_for_all();
  if constexpr (is_host_exec<Exec> || Space::is_device_mapped) {
    launch_context<Exec> call(exec, "step");
    require_array_device("step", exec, values);
    const report_writer writer = call.report();
    launch_find_nonfinite(exec, label, values, writer);
    execution_backend<Exec>::fence(exec, label);
    const index_report report = read_report<Exec>(writer);
    findings.nonfinite = report.nonfinite;
    findings.first_value = report.first_value;
    call.finish().drop();
  } else {
    execution_backend<Exec>::fence(exec, label);
    index_report report;
    unsigned int raised = 0;
    const auto host = host_side(exec);
    launch_find_nonfinite(host, label, values, report_writer{&report, &raised});
    host.fence(label);
    findings.nonfinite = report.nonfinite;
    findings.first_value = report.first_value;
  }
  return findings;
}

}  // namespace ferry::detail
