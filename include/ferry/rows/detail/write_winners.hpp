// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/claim_slots.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/joint_writes.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// Scatter under duplicates::last and first without sorting. A slot per row tells which position wins it,
/// then the winners are written: the rows of a sort's result, in the order of the batch.
namespace ferry::detail {

/// True if the winners of these operands may be found without sorting: a device's, for rows in its own memory
/// that are moved as they are. In host memory the order of the rows decides the rate.
template <class Path, class Duplicates, class Exec, class Job, class Value>
consteval bool may_write_winners() {
  if constexpr (is_host_exec<Exec> || !in_batch_order<Path>)
    return false;
  else
    return std::is_same_v<typename decltype(Job::table)::memory_space, device_space> &&
           (std::is_same_v<Duplicates, duplicates::last> ||
            std::is_same_v<Duplicates,
                           duplicates::first>)&&Job::template replaces_by<std::remove_const_t<Value>>;
}

/// True if a hash table of winners can serve this job, and is faster than a plan for `positions` positions.
template <class Exec, class Job>
bool winners_beat_a_plan(const Exec& exec, const Job& job, std::int64_t positions) {
  const auto& tuning = execution_backend<Exec>::tuning(exec);
  return positions >= tuning.fewest_claims && positions <= tuning.most_claims && job.table.width() != 0 &&
         kernels::winner_table::fits(positions, job.table.rows());
}

/// A table of winners for `items` items that name rows of `rows`, and the number of its slots, which the
/// caller clears.
template <class Exec>
std::pair<kernels::winner_table, std::int64_t> winners_for(launch_context<Exec>& call, std::int64_t items,
                                                           std::int64_t rows) {
  const int slot_bits = kernels::winner_table::slot_bits_for(items);
  const bool by_row = rows <= std::int64_t{1} << slot_bits;
  const std::int64_t slots = by_row ? rows : std::int64_t{1} << slot_bits;
  return {{call.template scratch<kernels::winner_table::slot>(slots), slot_bits,
           static_cast<int>(std::bit_width(static_cast<std::uint64_t>(items) - 1)), by_row},
          slots};
}

template <class Path, class Bounds, class Duplicates, class Exec, class Job, class Index, class IndexSpace,
          class Value, class Space>
ticket update_by_winners(const Exec& exec, const char* verb, const Job& job,
                         const array_ref<Index, IndexSpace>& indices, const array_ref<Value, Space>& values,
                         const rollback& ends) {
  using plain = std::remove_const_t<Index>;
  constexpr bool last = std::is_same_v<Duplicates, duplicates::last>;
  const std::int64_t n = indices.rows();
  launch_context<Exec> call(exec, verb);
  // As for a small batch, which is sorted.
  call.refuse_capture(
      "but small batches are sorted, which a graph can't repeat; make the plan before the capture, or use duplicates::assume_unique");
  const std::string& label = call.label(Path::name);
  call.roll_back_by(ends);
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, values, job.table, bytes_of_rows(values, n));
  require_direct_reach(verb, exec, values);
  call.reads_from(values);
  call.touches(job.table);
  const plain* const list = indices_for_kernels(call, indices);
  const report_writer report = Bounds::reports ? call.report() : report_writer{};
  const auto [table, slots] = winners_for(call, n, job.table.rows());
  auto* const slot_of = call.template scratch<std::uint32_t>(n);
  launch(exec, call.label(Path::name, "clear"), slots, kernels::clear_slots{table.slots});
  launch(exec, call.label(Path::name, "claim"), n,
         kernels::claim_slots<execution_backend<Exec>, plain, Bounds, last>{
             {list, job.table.rows(), report}, table, slot_of});
  before_writing();
  launch_gather(exec, label, values, job.table,
                kernels::winning_positions{table, slot_of, Bounds::reports ? report.findings : nullptr}, n);
  return call.finish(job.table, n, std::is_signed_v<plain>);
}

}  // namespace ferry::detail
