// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/tools.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/copy_slots.hpp>
#include <ferry/rows/detail/gather_staged.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

/// The staged implementations of the writing verbs. See launch_update.hpp for jobs.
namespace ferry::detail {

/// Values where the device's kernels reach them: those in host memory are uploaded through slots, as one
/// dense batch. Those of bags are made on the device.
/// @{
template <class Exec, class Value>
const auto& values_on_device(launch_context<Exec>&, const std::string&,
                             const array_ref<Value, device_space>& values) {
  return values;
}
template <class Exec, class Value, class Space>
auto values_on_device(launch_context<Exec>& call, const std::string& label,
                      const array_ref<Value, Space>& values) {
  using plain = std::remove_const_t<Value>;
  const auto wide = values.width();
  const auto row_bytes = wide * static_cast<std::int64_t>(sizeof(plain));
  if (row_bytes == 0) return dense_rows<const plain, device_space>(nullptr, values.rows(), 0, "values");
  plain* data = call.template scratch<plain>(values.size());
  if (std::is_same_v<Space, pinned_space> && values.row_stride() == wide) {
    call.reads_from(values);  // may still run when the verb has returned
    transfer(call.exec(), label.c_str(), data, device_space::name, values.data, Space::name,
             values.rows() * row_bytes);
    return dense_rows<const plain, device_space>(data, values.rows(), wide, "values");
  }
  const auto batch = dense_rows<plain, device_space>(data, values.rows(), wide, "values");
  copy_slots<Exec> slots(call, {label, values.rows(), row_bytes}, slot_tuning::of_rows(call.exec()),
                         call.exec());
  const tool_kernel report(call.exec(), label);
  slots.to_device(
      [&](std::byte* slot, std::int64_t first, std::int64_t count) {
        launch_gather(caller_thread{}, label, rows_from(values, first, count),
                      rows_in_slot<plain>(slot, count, wide), kernels::identity{}, count);
      },
      [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
        gather_by_slot(call.exec(), label, rows_in_slot<const plain>(slot, count, wide),
                       rows_from(batch, first, count), kernels::identity{}, count);
      });
  return read_only(batch);
}
/// @}

/// The rows of a source from item `first` on.
/// @{
inline kernels::listed_rows rows_from(const kernels::listed_rows& rows, std::int64_t first) {
  return {rows.rows + first};
}
inline kernels::consecutive_rows rows_from(const kernels::consecutive_rows& rows, std::int64_t first) {
  return {rows.first + first};
}
/// @}

/// Applies items (row, value row), whose values are in device memory, by the host's threads. `rows`:
/// listed_rows or consecutive_rows.
template <class Exec, class Job, class Rows, class Value>
void drain_rows(launch_context<Exec>& call, const std::string& label, const Job& job, const Rows& rows,
                const array_ref<Value, device_space>& values) {
  const std::int64_t items = values.rows(), width = values.width();
  const auto row_bytes = width * static_cast<std::int64_t>(sizeof(Value));
  const auto labels = update_labels::of<Job>(call, label);
  if (row_bytes == 0) {  // nothing travels, but rows are counted
    const auto host = host_side(call.exec());
    const auto none = dense_rows<Value, pinned_space>(nullptr, items, 0, "values");
    launch_update<duplicates::assume_unique>(host, labels, job, update_items{rows, items, none});
    host.fence(label);
    return;
  }
  copy_slots<Exec> slots(call, {label, items, row_bytes}, slot_tuning::of_rows(call.exec()), call.exec());
  before_writing();
  const tool_kernel report(call.exec(), label);
  slots.from_device(
      [&](std::byte* slot, std::int64_t first, std::int64_t count) {
        gather_by_slot(call.exec(), label, rows_from(values, first, count),
                       rows_in_slot<std::remove_const_t<Value>>(slot, count, width), kernels::identity{},
                       count);
      },
      [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
        launch_update<duplicates::assume_unique>(
            caller_thread{}, labels, job,
            update_items{rows_from(rows, first), count, rows_in_slot<const Value>(slot, count, width)});
      });
}

/// Table in host memory, values on the device, plan made on the device: combined on the device, applied by
/// the host.
template <class Duplicates, class Exec, class Job, class Value, class Space>
void drain_plan(launch_context<Exec>& call, const std::string& label, const Job& job, const row_plan& plan,
                const array_ref<Value, Space>& values) {
  const auto combined = combine_on_device<Duplicates>(call, label, job, plan, values);
  if (combined.rows() == 0) return;
  const std::int64_t* rows =
      plan_array_for_host(call, plan.storage()->unique_rows, combined.rows());  // waits for the kernels above
  drain_rows(call, label, job, kernels::listed_rows{rows}, combined);
}

/// A copy of the plan whose arrays kernels of the host can read.
template <class Exec>
row_plan plan_for_host(launch_context<Exec>& call, const row_plan& plan) {
  if constexpr (is_host_exec<Exec>) {
    return plan;
  } else {
    auto copy = std::make_shared<plan_storage>(*plan.storage());
    const std::int64_t n = copy->positions;
    const auto count = plan.unique_count();
    auto* unique = call.template pinned<std::int64_t>(1);
    auto* report = call.template pinned<index_report>(1);
    *unique = count;
    *report = copy->read_report();
    copy->unique_count = unique;
    const auto bring = [&](auto*& array, std::int64_t elements) {
      if (array != nullptr)
        array =
            const_cast<std::remove_reference_t<decltype(array)>>(plan_array_for_host(call, array, elements));
    };
    bring(copy->unique_rows, count);
    bring(copy->segment_begin, count + 1);
    bring(copy->order, n);
    shared_values& shared = copy->values;
    bring(shared.rows, n);
    bring(shared.factors, n);
    bring(shared.chosen, shared.chosen_count);
    copy->report = std::make_shared<report_writer>(report_writer{report, nullptr});
    return row_plan(std::move(copy));
  }
}

/// The whole verb on the host's threads: table and values are both in host memory.
template <class Duplicates, class Exec, class Job, class Value, class Space>
void write_plan_on_host(launch_context<Exec>& call, const std::string& label, const Job& job,
                        const row_plan& plan, const array_ref<Value, Space>& values) {
  const auto labels = update_labels::of<Job>(call, label);
  const auto host = host_side(call.exec());
  const row_plan host_plan = plan_for_host(call, plan);
  const plan_storage& storage = *host_plan.storage();
  if (storage.checked && storage.report->findings->out_of_range != 0) return;
  if constexpr (Duplicates::forbids) {
    const report_writer report = call.host_report();
    launch(
        host, call.label_part(label, "find_duplicates"), host_plan.positions(),
        kernels::find_duplicates{storage.unique_rows, storage.segment_begin, storage.unique_count, report});
    host.fence(label);
    if (call.host_found()) return;
  }
  launch_update<Duplicates>(
      host, labels, job,
      update_items{source_of_plan<Duplicates>(storage, values.width()), host_plan.positions(), values});
  host.fence(label);
}

/// Chooses one of the three staged implementations by the spaces of table and values.
template <class Duplicates, class Exec, class Job, class Value, class Space>
void write_staged(launch_context<Exec>& call, const std::string& label, const Job& job, const row_plan& plan,
                  const array_ref<Value, Space>& values) {
  if constexpr (!decltype(job.table)::memory_space::is_host_accessible) {
    const auto& batch = values_on_device(call, label, values);
    const auto labels = update_labels::of<Job>(call, label);
    const auto source = plan_source<Duplicates, sum_of<Job, Exec, Value>>(call, label, plan, batch);
    launch_update<Duplicates>(call.exec(), labels, job, update_items{source, plan.positions(), batch});
  } else if constexpr (Space::is_host_accessible) {
    write_plan_on_host<Duplicates>(call, label, job, plan, values);
  } else {
    drain_plan<Duplicates>(call, label, job, plan, values);
  }
}

/// Writes to a table in host memory by values and a plan on the device. The device's teams write from the
/// front of the sorted rows. Other kernels bring rows from the back to slots, and the host's workers write
/// them.
template <class Duplicates, class Exec, class Job, class Value>
void write_cooperative(launch_context<Exec>& call, const std::string& label, const Job& job,
                       const row_plan& plan, const array_ref<Value, device_space>& values) {
  using unique = duplicates::assume_unique;
  const auto labels = update_labels::of<Job>(call, label);
  const auto batch = combine_on_device<Duplicates>(call, label, job, plan, values);
  const std::int64_t items = batch.rows(), width = batch.width();
  if (items == 0) return;
  using wire = typename decltype(batch)::value_type;
  const std::int64_t* const unique_rows = plan.storage()->unique_rows;
  const std::int64_t by_teams = share_rows(
      call, label, std::pair(unique_rows, items), bytes_of_rows(batch, 1),
      [&](const auto& order) {
        launch_update<unique>(call.exec(), labels, job,
                              update_items{kernels::listed_rows{unique_rows}, items, batch}, order);
      },
      [&](auto& slots, auto& queue, const Exec& side, const std::int64_t* rows) {
        slots.from_device(
            queue,
            [&](std::byte* slot, std::int64_t first, std::int64_t count) {
              gather_by_slot(side, label, rows_from(batch, first, count),
                             rows_in_slot<std::remove_const_t<wire>>(slot, count, width), kernels::identity{},
                             count);
            },
            [&](const std::byte* slot, std::int64_t first, std::int64_t count) {
              launch_update<unique>(caller_thread{}, labels, job,
                                    update_items{kernels::listed_rows{rows + first}, count,
                                                 rows_in_slot<const wire>(slot, count, width)});
            });
      });
  moved_by_kernels<path::cooperative>(values, job.table, bytes_of_rows(values, by_teams));
}

}  // namespace ferry::detail
