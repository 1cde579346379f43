#pragma once

#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

/// The one procedure behind scatter, scatter_add and step: combine the values meant for a row, then apply an
/// operation to the row. A *job* says which operation:
///
///   table
///     array_ref of the table
///   visit<Exec, Duplicates>(values, run)
///     calls run<Compute>(operation, values, stride, width, tile) with the operation on the widest tile that
///     the arrays' alignment allows
///   wire_type<Value, Duplicates>
///     the element type of combined values on their way through the ring
///   needs_whole_rows, visit_whole_rows
///     for optimizer steps alone: instead of visit, where a row must be seen as a whole
///   prepare<Staged>(of, label, values), is_refused()
///     for optimizer steps alone: see update_job
///   visit_counting<Exec, Value>(source, run)
///     for optimizer steps alone: run(kernel) with a kernel that comes behind the others, where there is one
///   sum_type<Exec, Value>
///     the type in which values are combined by kernels of Exec
///   emit<Value, Duplicates>(buffer, items, width)
///     the job that writes combined values into such a buffer
///   replaces_by<Value>
///     whether a row becomes a copy of its value, bit by bit
///   reach(check)
///     calls check(array) for every array that it writes
namespace ferry::detail {

/// Rows that one thread each, or the vector lanes of one, work on as a whole.
template <class Exec, class Kernel, class Order>
void launch_whole_rows(const Exec& exec, const std::string& label, std::int64_t items, const Kernel& kernel,
                       [[maybe_unused]] const Order& order) {
  if (items <= 0) return;
  if constexpr (is_host_exec<Exec>) {
    launch(exec, label, items, kernel);
  } else {
    const int lanes = kernels::lanes_for(kernel.width);
    if constexpr (std::is_same_v<Order, schedule::flat>) {
      constexpr int threads = 256;
      const std::int64_t at_once = threads / lanes;
      launch_teams<threads>(exec, label, std::min<std::int64_t>((items + at_once - 1) / at_once, 1 << 20),
                            lanes, kernel);
    } else {
      constexpr auto tuning = execution_backend<Exec>::tuning();
      launch_teams<tuning.ordered_team_size>(exec, label, tuning.ordered_teams, lanes, kernel);
    }
  }
}

/// The labels of a job's kernels, made before any of them is launched.
struct apply_labels {
  const std::string& apply;
  const std::string& count;

  template <class Job, class Exec>
  static apply_labels of(launch_context<Exec>& owner, const std::string& label) {
    if constexpr (requires { Job::max_fields; })
      return {label, owner.label_part(label, "count")};
    else
      return {label, label};
  }
};

/// Whether rows count the steps that they are given, be they as narrow as they like.
template <class Job>
inline constexpr bool counts_rows_v = false;
template <class Job>
  requires requires { requires Job::counts_rows; }
inline constexpr bool counts_rows_v<Job> = true;

/// The kernel for one source of items. Rows without elements are counted only.
template <class Duplicates, class Job, class Exec, class Source, class Value, class Space,
          class Order = schedule::flat>
void launch_apply(const Exec& exec, const apply_labels& labels, const Job& job, const Source& source,
                  std::int64_t items, const array_ref<Value, Space>& values, const Order& order = {}) {
  if (values.width() == 0) {
  } else if constexpr (requires { requires Job::needs_whole_rows; }) {
    job.template visit_whole_rows<Exec, Duplicates>(source, items, values, [&](const auto& kernel) {
      launch_whole_rows(exec, labels.apply, items, kernel, order);
    });
  } else {
    job.template visit<Exec, Duplicates>(
        values, [&]<class Compute, class Tile>(const auto& operation, const auto* data, std::int64_t stride,
                                               std::int64_t width, Tile) {
          using value = std::remove_cvref_t<decltype(*data)>;
          using kernel = kernels::apply_rows<Compute, Tile, Duplicates, Source, value,
                                             std::remove_cvref_t<decltype(operation)>>;
          const std::int64_t tiles = Tile::host ? 1 : width / Tile::elements;
          order.run(exec, labels.apply, items, tiles,
                    kernel{source, data, stride, width, items, fast_divisor(tiles), operation});
        });
  }
  if constexpr (requires { Job::max_fields; })
    job.template visit_counting<Exec, std::remove_const_t<Value>>(
        source, [&](const auto& kernel) { launch(exec, labels.count, items, kernel); });
}

/// The job as its kernels need it, for a path that occupies the calling thread or not.
template <bool Staged, class Exec, class Job, class Value, class Space>
auto prepared([[maybe_unused]] launch_context<Exec>& of, [[maybe_unused]] const std::string& label,
              const Job& job, [[maybe_unused]] const array_ref<Value, Space>& values) {
  if constexpr (requires { Job::max_fields; })
    return job.template prepare<Staged>(of, label, values);
  else
    return job;
}
template <class Job>
bool is_refused([[maybe_unused]] const Job& job) {
  if constexpr (requires { Job::max_fields; })
    return job.is_refused();
  else
    return false;
}

/// Reports rows that a plan names more than once.
template <class Exec>
report_writer report_repeats(launch_context<Exec>& of, const std::string& label, const row_plan& plan) {
  const plan_storage& from = *plan.storage();
  const report_writer report = of.report();
  launch(of.exec(), of.label_part(label, "find_duplicates"), plan.positions(),
         kernels::find_duplicates{from.unique_rows, from.segment_begin, from.unique_count, report});
  return report;
}

/// A plan as the kernels see it, with a look for repeated rows where they are forbidden.
template <class Duplicates, bool Checked, class Exec>
kernels::plan_rows<Checked> plan_source(launch_context<Exec>& of, const std::string& label,
                                        const row_plan& plan) {
  const plan_storage& from = *plan.storage();
  kernels::plan_rows<Checked> source{from.unique_rows,  from.segment_begin,    from.order,
                                     from.unique_count, from.report->findings, nullptr};
  if constexpr (Duplicates::forbids) source.repeats = report_repeats(of, label, plan).findings;
  return source;
}

/// Gives a plan's source on a device the sums of its long segments, in the type that the job's kernels compute in.
template <class Sum, class Exec, class Source, class Value, class Space>
void sum_long(launch_context<Exec>& of, const std::string& label, const row_plan& plan,
              const array_ref<Value, Space>& values, Source& source) {
  using plain = std::remove_const_t<Value>;
  const plan_storage& from = *plan.storage();
  const std::int64_t slots = kernels::long_segments::slots(plan.positions());
  const std::int64_t width = values.width();
  if (slots == 0 || width == 0) return;
  auto* sums = of.template scratch<Sum>(slots * width);
  const auto with_tile = [&]<class Tile>(Tile) {
    const std::int64_t tiles = width / Tile::elements;
    launch(of.exec(), of.label_part(label, "sum_long"), slots * tiles,
           kernels::sum_long_segments<Sum, Tile, plain>{from.order, from.inverse, from.segment_begin,
                                                        values.data, values.row_stride(), sums, width,
                                                        fast_divisor(tiles)});
  };
  if (in_packets<4>(values))
    with_tile(kernels::packed_tile{});
  else
    with_tile(kernels::single_tile{});
  source.long_sums = sums;
  source.long_stride = width;
}

/// The kernels of a job on a plan's rows.
template <class Duplicates, bool Checked, class Exec, class Job, class Value, class Space, class Order>
void apply_plan(launch_context<Exec>& of, const std::string& label, const Job& job, const row_plan& plan,
                std::int64_t items, const array_ref<Value, Space>& values, const Order& order) {
  const auto labels = apply_labels::of<Job>(of, label);
  auto source = plan_source<Duplicates, Checked>(of, label, plan);
  if constexpr (Duplicates::combines && !is_host_exec<Exec>)
    sum_long<typename Job::template sum_type<Exec, std::remove_const_t<Value>>>(of, label, plan, values,
                                                                                source);
  launch_apply<Duplicates>(of.exec(), labels, job, source, items, values, order);
}

template <class Duplicates, class Exec, class Job, class Value, class Space, class Order = schedule::flat>
void launch_update(launch_context<Exec>& of, const std::string& label, const Job& job, const row_plan& plan,
                   const array_ref<Value, Space>& values, const Order& order = {}) {
  if (plan.storage()->checked)
    apply_plan<Duplicates, true>(of, label, job, plan, plan.positions(), values, order);
  else
    apply_plan<Duplicates, false>(of, label, job, plan, plan.positions(), values, order);
}

/// Combines the values of each of the plan's rows on the device, in the rows' order. Null where nothing must be
/// written, because the batch was found faulty; blocks until that is known.
template <class Duplicates, class Exec, class Job, class Value, class Space>
auto* combine_on_device(launch_context<Exec>& of, const std::string& label, const Job& job,
                        const row_plan& plan, std::int64_t items, const array_ref<Value, Space>& values) {
  using plain = std::remove_const_t<Value>;
  using wire = typename Job::template wire_type<plain, Duplicates>;
  wire* combined = of.template scratch<wire>(items * values.width());
  const auto emit = job.template emit<plain, Duplicates>(combined, items, values.width());
  if (plan.storage()->checked)
    apply_plan<Duplicates, true>(of, label, emit, plan, items, values, schedule::flat{});
  else
    apply_plan<Duplicates, false>(of, label, emit, plan, items, values, schedule::flat{});
  if constexpr (Duplicates::forbids) {
    execution_backend<Exec>::fence(of.exec(), label);
    if (report_pool<execution_backend<Exec>>::read(of.report()).duplicates != 0)
      return static_cast<wire*>(nullptr);
  }
  return combined;
}

/// The order in which a plan's rows, which are sorted already, are written on path::direct and path::ordered: by few
/// threads over host memory, where the device's translations are the limit (a step on mapped rows takes three times as long
/// with every thread that a device has room for); all at once over its own, where few teams could not keep it busy.
template <class Path, class TableSpace>
auto plan_order(const row_plan& plan) {
  if constexpr (std::is_same_v<TableSpace, device_space>) {
    (void)plan;
    return schedule::flat{};
  } else if constexpr ((Path::reaches_table && !Path::sorts)) {
    return schedule::range_chunks{plan.storage()->unique_count};
  } else {
    return schedule::team_chunks{plan.storage()->unique_count, 0, {}};
  }
}

}  // namespace ferry::detail
