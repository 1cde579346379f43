// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/apply_rows.hpp>
#include <ferry/rows/detail/row_walk.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/rows/detail/shared_values.hpp>
#include <ferry/rows/detail/sum_long_segments.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

/// The kernels of scatter, scatter_add and step: they combine the values meant for a row, then apply an
/// operation to the row. A *job* defines the operation:
///
///   table                            array_ref of the table
///   min_fields, max_fields, fields   state arrays: the fewest and the most possible, and the actual number
///   packs<Duplicates>(values)        whether alignment lets a device's kernels work in packets
///   packed_tile<Value>               the tile of these kernels
///   takes_wide_tiles<Value>, packs_wide(values)
///                                    whether its kernels can have wide packed tiles, and these rows too; may
///                                    be absent
///   kernel<Exec, Duplicates, Tile, Fields>(source, items, values)
///                                    the kernel, see row_kernels.hpp; `per_item()` work items per item
///   takes_masks<Duplicates, Source>
///                                    whether its kernels take masked tiles
///   counts_rows                      whether rows count their steps, even rows of width 0
///   counting_kernel<Exec, Value>(source)
///                                    the kernel that counts, launched after the other
///   prepare<Staged>(call, label, values)
///                                    returns a copy with the other inputs of its kernels bound; Staged: on a
///                                    path that occupies the calling thread
///   is_refused()                     after prepare<true>: whether nothing may be written
///   wire_type<Value, Duplicates>     the element type of combined values in the ring
///   sum_type<Exec, Value>            the type in which kernels of Exec combine values
///   emit<Value, Duplicates>(buffer, items, width)
///                                    the job that writes combined values into such a buffer
///   replaces_by<Value>               whether a row becomes a copy of its value, bit by bit
///   for_each_array(check)            calls check(array) for every array that the job touches
///   writes_scratch                   of a job that writes to scratch memory alone; else absent
namespace ferry::detail {

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

/// True if a job's kernels can have wide packed tiles.
template <class Job, class Value>
inline constexpr bool takes_wide_tiles = false;
template <class Job, class Value>
  requires(Job::template takes_wide_tiles<Value>)
inline constexpr bool takes_wide_tiles<Job, Value> = true;

/// Launches the job's kernels on the items of a source. Rows without elements are only counted.
template <class Duplicates, int Fields = -1, class Exec, class Job, class Source, class Value, class Space,
          class Order = schedule::flat>
void launch_update(const Exec& exec, const update_labels& labels, const Job& job, const Source& source,
                   std::int64_t items, const array_ref<Value, Space>& values, const Order& order = {}) {
  constexpr int fields = Fields < 0 ? Job::min_fields : Fields;
  if constexpr (fields < Job::max_fields)
    if (job.fields != fields)
      return launch_update<Duplicates, fields + 1>(exec, labels, job, source, items, values, order);
  if constexpr (!requires { Job::writes_scratch; }) before_writing();
  // It launches nothing itself: a backtrace has one call less.
  const auto kernel_of = [&]<class Tile>(Tile) {
    return job.template kernel<Exec, Duplicates, Tile, fields>(source, items, values);
  };
  bool counted = false;
  if (values.width() == 0) {
  } else if constexpr (is_host_exec<Exec>) {
    const auto kernel = kernel_of(kernels::host_tile{});
    launch(exec, labels.apply, order, items, kernel.per_item(), kernel);
  } else if (job.template packs<Duplicates>(values)) {
    bool wide = false;
    if constexpr (takes_wide_tiles<Job, std::remove_const_t<Value>>)
      if (wide = job.packs_wide(values); wide) {
        const auto kernel = kernel_of(kernels::wide_packed_tile{});
        launch(exec, labels.apply, order, items, kernel.per_item(), kernel);
      }
    if (!wide) {
      auto kernel = kernel_of(typename Job::template packed_tile<Value>{});
      // Kokkos' loop over the work items would take registers from the missed steps.
      if constexpr (kernels::catches_up<Job> && std::is_same_v<Order, schedule::flat> &&
                    requires { kernel.blocks_at_once; }) {
        if constexpr (!kernels::sums_pieces<kernels::packed_tile, Duplicates, Source>)
          counted = kernel.operation.counts_by(kernel.per_item());
        launch(exec, labels.apply, schedule::each{}, items, kernel.per_item(), kernel);
      } else {
        launch(exec, labels.apply, order, items, kernel.per_item(), kernel);
      }
    }
  } else {
    const auto kernel = kernel_of(loose_tile_of<Job, Duplicates, Source>{});
    launch(exec, labels.apply, order, items, kernel.per_item(), kernel);
  }
  if constexpr (Job::counts_rows)
    if (!counted)
      launch(exec, labels.count, schedule::each{}, items, 1,
             job.template counting_kernel<Exec, std::remove_const_t<Value>>(source));
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

/// Counters of the sums of pieces, which are 0. Those of the plan are for the instance that made it, whose
/// kernels follow one another. Others, and the launches of graphs, may run next to them and get their own.
template <class Exec>
unsigned int* counters_of_pieces(launch_context<Exec>& call, const std::string& label,
                                 const plan_storage& store) {
  if (store.counters != nullptr && store.counters_of == call.id() && !call.capturing()) return store.counters;
  const std::int64_t count = kernels::piece_counters::count(store.positions);
  auto* const words = call.template scratch<unsigned int>(count);
  launch(call.exec(), call.label_part(label, "clear"), count, kernels::clear_counters{words});
  return words;
}

/// True if the kernels that update rows can sum the pieces of long segments, see piece_sums: as many threads
/// as there are tiles in the batch, and narrow numbers for its places.
template <class Source, class Value, class Space>
bool sums_in_kernel([[maybe_unused]] const plan_storage& store,
                    [[maybe_unused]] const array_ref<Value, Space>& values) {
  if constexpr (kernels::sums_pieces<kernels::packed_tile, duplicates::sum, Source>)
    return store.values.rows == nullptr && values.row_stride() <= std::numeric_limits<std::uint32_t>::max();
  else
    return false;
}

/// Binds the room for the sums of a plan's long segments, rows of `width` elements, to a source on a device.
/// False if it can have no such segment.
template <class Sum, class Exec, class Source>
bool take_long_sums(launch_context<Exec>& call, const std::string& label, const row_plan& plan,
                    std::int64_t width, Source& source) {
  const plan_storage& store = *plan.storage();
  const std::int64_t slots = kernels::long_segments::slots(plan.positions());
  if (!kernels::long_segments::has(0, plan.positions()) || width == 0) return false;
  source.long_sums = call.template scratch<Sum>(slots * width);
  source.long_stride = width;
  source.pieces = {
      store.long_found, store.order, store.inverse, counters_of_pieces(call, label, store), slots, 0};
  return true;
}

/// Binds to a plan's source on a device what sums its long segments, in the type that the job's kernels
/// compute in: these kernels if they can, else one before them.
template <class Sum, class Exec, class Source, class Value, class Space>
void sum_long(launch_context<Exec>& call, const std::string& label, const row_plan& plan,
              const array_ref<Value, Space>& values, Source& source) {
  const std::int64_t width = values.width();
  if (!take_long_sums<Sum>(call, label, plan, width, source)) return;
  const std::int64_t slots = source.pieces.slots;
  if (!sums_in_kernel<Source>(*plan.storage(), values)) {
    // One kernel serves both sources of plans.
    using rows_type =
        std::conditional_t<std::is_same_v<Source, kernels::summed_plan_rows>, kernels::plan_rows, Source>;
    const auto sum_by = [&]<class Tile>(Tile) {
      const std::int64_t tiles = kernels::tiles_of<Tile>(width);
      kernels::sum_segments<Sum, Tile, std::remove_const_t<Value>, rows_type> kernel{
          source, values.data, values.row_stride(), width, fast_divisor(tiles)};
      kernel.source.pieces.items = slots * tiles * Tile::elements;
      launch(call.exec(), call.label_part(label, "sum_long"), schedule::each{}, kernel.source.pieces.items, 1,
             kernel);
    };
    source.pieces.slots = 0;
    if (width % kernels::packed_tile::elements == 0)
      sum_by(kernels::packed_tile{});
    else
      sum_by(kernels::single_tile{});
  }
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

/// A plan's rows as the source of writing kernels. Reports repeated rows if they are forbidden, and sums
/// the long segments on a device that the job's kernels do not, see sum_long.
template <class Duplicates, class Sum, bool InKernel = false, class Exec, class Job, class Value, class Space>
auto plan_source(launch_context<Exec>& call, const std::string& label, [[maybe_unused]] const Job& job,
                 const row_plan& plan, [[maybe_unused]] const array_ref<Value, Space>& values) {
  const plan_storage& store = *plan.storage();
  kernels::plan_rows source = rows_of_plan(store);
  if constexpr (Duplicates::forbids) source.repeats = report_repeats(call, label, plan).findings;
  if constexpr (adjusts_values<Duplicates>) {
    auto adjusted = Duplicates::source(source, store, values.width());
    if constexpr (!is_host_exec<Exec>)
      sum_long<combining_number<Exec, Duplicates, Sum>>(call, label, plan, values, adjusted);
    return adjusted;
  } else if constexpr (InKernel && Duplicates::combines && !is_host_exec<Exec>) {
    kernels::summed_plan_rows summed{source};
    sum_long<Sum>(call, label, plan, values, summed);
    return summed;
  } else {
    if constexpr (Duplicates::combines && !is_host_exec<Exec>)
      sum_long<Sum>(call, label, plan, values, source);
    return source;
  }
}
template <class Job, class Exec, class Value>
using sum_of = typename Job::template sum_type<Exec, std::remove_const_t<Value>>;

/// Combines the values of each of the plan's rows on the device, in the order of the rows. Null if nothing
/// may be written because the batch was found faulty; blocks until that is known.
template <class Duplicates, class Exec, class Job, class Value, class Space>
auto* combine_on_device(launch_context<Exec>& call, const std::string& label, const Job& job,
                        const row_plan& plan, std::int64_t items, const array_ref<Value, Space>& values) {
  using plain = std::remove_const_t<Value>;
  using wire = typename Job::template wire_type<plain, Duplicates>;
  wire* combined = call.template scratch<wire>(items * values.width());
  const auto emit = job.template emit<plain, Duplicates>(combined, items, values.width());
  using emit_job = std::remove_const_t<decltype(emit)>;
  const auto labels = update_labels::of<emit_job>(call, label);
  const auto source = plan_source<Duplicates, sum_of<emit_job, Exec, Value>>(call, label, emit, plan, values);
  launch_update<Duplicates>(call.exec(), labels, emit, source, items, values);
  if constexpr (Duplicates::forbids) {
    execution_backend<Exec>::fence(call.exec(), label);
    if (read_report<Exec>(call.report()).duplicates != 0) return static_cast<wire*>(nullptr);
  }
  return combined;
}

}  // namespace ferry::detail
