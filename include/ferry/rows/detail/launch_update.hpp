// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/combine.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The kernels of scatter, scatter_add and step: they combine the values meant for a row, then apply an
/// operation to the row. A *job* defines the operation:
///
///   table                            array_ref of the table
///   min_fields, max_fields, fields   state arrays: the least and the greatest number, and the actual number
///   packs<Duplicates>(values)        whether alignment lets a device's kernels work in packets
///   packed_tile<Value>               the tile of these kernels
///   takes_wide_tiles<Value>, packs_wide(values)
///                                    whether its kernels can have wide packed tiles, and these rows too
///   kernel<Exec, Duplicates, Tile, Fields>(source, items, values)
///                                    the kernel, see apply_kernel; `per_item()` work items per item
///   takes_masks<Duplicates, Source>
///                                    whether its kernels take masked tiles
///   counts_rows                      whether rows count their steps, even rows of width 0
///   counting_kernel<Exec, Value>(source)
///                                    the kernel that counts, launched after the other
///   prepare<Staged>(call, label, values)
///                                    returns a copy with the other inputs of its kernels bound; Staged: on a
///                                    path that occupies the calling thread
///   is_refused()                     after prepare<true>: whether nothing may be written
///   wire_type<Value, Duplicates>     the element type of combined values on the link
///   sum_type<Exec, Value>            the type in which kernels of Exec combine values
///   emit<Value, Duplicates>(buffer, items, width)
///                                    the job that writes combined values into such a buffer
///   replaces_by<Value>               whether a row becomes a copy of its value, bit by bit
///   for_each_array(check)            calls check(array) for every array that the job touches
///   writes_scratch                   whether it writes to scratch memory alone
namespace ferry::detail {

/// The operands of a verb that writes rows: `job` says what happens to a row, `access` where it lies. `batch`
/// comes from rows_named_by, or is every_row.
template <class Exec, class Access, class Job, class Batch, class Values, class Occupancy = occupancy::full>
struct row_update {
  using exec_type = Exec;
  using occupancy_type = Occupancy;
  using access_type = Access;
  using job_type = Job;
  using batch_type = Batch;
  using values_type = Values;

  const Exec& exec;
  const Access& access;
  const Job& job;
  const Batch& batch;
  const Values& values;
  rollback undo{};
  const char* verb = nullptr;  ///< what messages and labels call it; null: the name of the verb

  /// The update on no more blocks than another occupancy allows.
  template <class Other>
  [[nodiscard]] decltype(auto) within() const {
    if constexpr (std::is_same_v<Other, Occupancy>)
      return (*this);
    else
      return row_update<Exec, Access, Job, Batch, Values, Other>{exec,   access, job, batch,
                                                                 values, undo,   verb};
  }
  /// The order of its items on those blocks.
  template <class Order>
  [[nodiscard]] auto limited(const Order& order) const {
    return schedule::limited<Occupancy>(exec, order);
  }
};
template <class Exec, class Access, class Job, class Batch, class Values, class... Others>
row_update(const Exec&, const Access&, const Job&, const Batch&, const Values&, const Others&...)
    -> row_update<Exec, Access, Job, Batch, Values>;

/// Checks that a path reaches the arrays of a verb, and orders the call after other work on them. Returns the
/// job with its other inputs bound.
template <class Path, class Exec, class Update>
decltype(auto) prepare_job(launch_context<Exec>& call, const std::string& label, const Update& update) {
  if constexpr (by_host_alone<Path>) {
    wait_for_host_access(call, label, update.job.table, update.values);
    update.job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
  } else {
    require_direct_reach(update.verb, update.exec, update.values);
    call.reads_from(update.values);
    update.access.template touches<Path>(call, update.job);
  }
  return update.job.template prepare<by_host_alone<Path>>(call, label, update.values);
}

/// The labels of a job's kernels, made before any of them is launched.
struct update_labels {
  const std::string& apply;
  const std::string& count;

  template <class Job, class Exec>
  static update_labels of(launch_context<Exec>& owner, const std::string& label) {
    if constexpr (Job::counts_rows)
      return {label, owner.label_part(label, "count")};
    else
      return {label, label};
  }
};

/// The tile of a device's kernels for rows without packets.
template <class Job, class Duplicates, class Source>
using loose_tile_of = std::conditional_t<Job::template takes_masks<Duplicates, Source>, kernels::masked_tile,
                                         kernels::single_tile>;

/// The order in which a kernel of a device is launched. Kokkos would launch blocks for all positions of a
/// plan, and its loop would take registers from missed steps.
template <class Kernel, class Order>
auto order_on_device(const Kernel&, const Order& order) {
  if constexpr (std::is_same_v<Order, schedule::flat> && requires { requires Kernel::block_rounds != 0; })
    return schedule::each{};
  else
    return order;
}

/// The items of a launch: at most `count` items of the source, with these values.
template <class Source, class Values>
struct update_items {
  const Source& source;
  std::int64_t count;
  const Values& values;
};
template <class Source, class Values>
update_items(const Source&, std::int64_t, const Values&) -> update_items<Source, Values>;

/// Launches the job's kernels on items. Rows without elements are only counted.
template <class Duplicates, int Fields = -1, class Exec, class Job, class Items, class Order = schedule::flat>
void launch_update(const Exec& exec, const update_labels& labels, const Job& job, const Items& batch,
                   const Order& order = {}) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields) return launch_update<Duplicates, fields + 1>(exec, labels, job, batch, order);
  const auto& source = batch.source;
  const auto& values = batch.values;
  const std::int64_t items = batch.count;
  using source_type = std::remove_cvref_t<decltype(source)>;
  using value_type = std::remove_const_t<typename std::remove_cvref_t<decltype(values)>::value_type>;
  if constexpr (!Job::writes_scratch) before_writing();
  // It launches nothing itself: a backtrace has one call less.
  const auto kernel_of = [&]<class Tile>(Tile) {
    return job.template kernel<Exec, Duplicates, Tile, fields>(source, items, values);
  };
  if (values.width() == 0) {
  } else if constexpr (is_host_exec<Exec>) {
    const auto kernel = kernel_of(kernels::host_tile{});
    launch(exec, labels.apply, order, items, kernel.per_item(), kernel);
  } else if (job.template packs<Duplicates>(values)) {
    bool wide = false;
    if constexpr (Job::template takes_wide_tiles<value_type>)
      if (wide = job.packs_wide(values); wide) {
        const auto kernel = kernel_of(kernels::wide_packed_tile{});
        launch(exec, labels.apply, order_on_device(kernel, order), items, kernel.per_item(), kernel);
      }
    if (!wide) {
      const auto kernel = kernel_of(typename Job::template packed_tile<value_type>{});
      launch(exec, labels.apply, order_on_device(kernel, order), items, kernel.per_item(), kernel);
    }
  } else {
    const auto kernel = kernel_of(loose_tile_of<Job, Duplicates, source_type>{});
    launch(exec, labels.apply, order_on_device(kernel, order), items, kernel.per_item(), kernel);
  }
  if constexpr (Job::counts_rows)
    launch(exec, labels.count, schedule::each{}, items, 1,
           job.template counting_kernel<Exec, value_type>(source));
}

/// Reports rows that a plan names more than once.
template <class Exec>
report_writer report_repeats(launch_context<Exec>& call, const std::string& label, const row_plan& plan) {
  const plan_storage& store = *plan.storage();
  const report_writer report = call.report();
  launch(call.exec(), call.label_part(label, "find_duplicates"), plan.positions(),
         kernels::find_duplicates{store.unique_rows, store.segment_begin, store.unique_count, report});
  return report;
}

/// Launches the kernel that sums on a device the pieces of a plan's long segments, and binds their buffer to
/// its source. A row has those `columns` of the values; `widest` is the greatest number of them, and `packed`
/// says whether all begin and end at packets.
template <class Sum, class Exec, class Source, class Value, class Space, class Columns>
void sum_long(launch_context<Exec>& call, const std::string& label, const plan_storage& store,
              const array_ref<Value, Space>& values, const Columns& columns, std::int64_t widest, bool packed,
              Source& source) {
  if (!kernels::long_sums::has(store.positions) || widest == 0) return;
  const std::int64_t rows = kernels::long_sums::row_of(store.positions);
  constexpr std::int64_t packet = kernels::packed_tile::elements;
  const std::int64_t room = (widest + packet - 1) / packet * packet;
  source.sums = {call.template scratch<Sum>(rows * room), static_cast<std::uint32_t>(room)};
  const auto sum_by = [&]<class Tile>(Tile) {
    const std::int64_t tiles = kernels::tiles_of<Tile>(widest);
    launch(call.exec(), call.label_part(label, "sum_long"), schedule::each{}, rows, tiles,
           kernels::sum_pieces_of_segments<Sum, Tile, Source, std::remove_const_t<Value>, Columns>{
               source, store.long_found, store.order, store.inverse, values.data, values.row_stride(),
               columns, fast_divisor(tiles), rows});
  };
  if (packed && in_packets<packet>(values))
    sum_by(kernels::packed_tile{});
  else
    sum_by(kernels::single_tile{});
}

/// A plan's rows as they are in its arrays.
inline kernels::plan_rows rows_of_plan(const plan_storage& store) {
  return {store.unique_rows,
          store.segment_begin,
          store.value_rows(),
          store.unique_count,
          store.checked ? store.report->findings : nullptr,
          nullptr};
}
/// As rows_of_plan, for a duplicates policy that may adjust their values.
template <class Duplicates>
auto source_of_plan(const plan_storage& store, std::int64_t width) {
  if constexpr (adjusts_values<Duplicates>)
    return Duplicates::source(rows_of_plan(store), store, width);
  else
    return rows_of_plan(store);
}

/// A plan's rows as the source of writing kernels. Reports repeated rows if they are forbidden, and sums
/// the pieces of long segments on a device.
template <class Duplicates, class Sum, class Exec, class Value, class Space>
auto plan_source(launch_context<Exec>& call, const std::string& label, const row_plan& plan,
                 const array_ref<Value, Space>& values) {
  const plan_storage& store = *plan.storage();
  auto source = source_of_plan<Duplicates>(store, values.width());
  if constexpr (Duplicates::forbids) source.repeats = report_repeats(call, label, plan).findings;
  if constexpr (Duplicates::combines && !is_host_exec<Exec>)
    sum_long<combining_number<Exec, Duplicates, Sum>>(
        call, label, store, values, kernels::column_range{0, values.width()}, values.width(), true, source);
  return source;
}
template <class Job, class Exec, class Value>
using sum_of = typename Job::template sum_type<Exec, std::remove_const_t<Value>>;

/// Combines the values of each of the plan's rows on the device, in the order of the rows. No rows if nothing
/// is to be written, because there are none or the batch was found faulty; blocks until that is known.
template <class Duplicates, class Exec, class Job, class Value, class Space>
auto combine_on_device(launch_context<Exec>& call, const std::string& label, const Job& job,
                       const row_plan& plan, const array_ref<Value, Space>& values) {
  using plain = std::remove_const_t<Value>;
  using wire = typename Job::template wire_type<plain, Duplicates>;
  using rows = array_ref<const wire, device_space>;
  const std::int64_t items = plan.unique_count();
  if (items == 0 || (plan.storage()->checked && plan.storage()->read_report().out_of_range != 0))
    return rows();
  wire* combined = call.template scratch<wire>(items * values.width());
  const auto emit = job.template emit<plain, Duplicates>(combined, items, values.width());
  using emit_job = std::remove_const_t<decltype(emit)>;
  const auto labels = update_labels::of<emit_job>(call, label);
  const auto source = plan_source<Duplicates, sum_of<emit_job, Exec, Value>>(call, label, plan, values);
  launch_update<Duplicates>(call.exec(), labels, emit, update_items{source, items, values});
  if constexpr (Duplicates::forbids) {
    execution_backend<Exec>::fence(call.exec(), label);
    if (read_report<Exec>(call.report()).duplicates != 0) return rows();
  }
  return dense_rows<const wire, device_space>(combined, items, values.width(), "combined");
}

}  // namespace ferry::detail
