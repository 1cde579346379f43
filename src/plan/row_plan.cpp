// SPDX-License-Identifier: Apache-2.0
#include <ferry/plan/row_plan.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/runtime/detail/findings.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string_view>

namespace ferry {

namespace {

/// Keeps the arrays of a plan, and records the making of the plan for their readers.
struct plan_reads {
  detail::access_tracker accesses;
  std::shared_ptr<detail::plan_storage> plan;
};

}  // namespace

void row_plan::require_space(const char* name, std::string_view space, bool reached_by_host) const {
  const bool fits = storage_->on_host ? reached_by_host
                                      : space == storage_->space || (space == device_space::name &&
                                                                     storage_->space != pageable_space::name);
  if (!fits)
    throw invalid_argument(detail::joined("ferry::row_plan::", name, ": the arrays of a plan by the ",
                                          storage_->backend, " backend lie in ", storage_->space, ", not in ",
                                          space, "; name the space: plan.", name, "<ferry::", storage_->space,
                                          ">()"));
}

std::shared_ptr<detail::access_tracker> row_plan::accesses() const {
  if (storage_->accesses != nullptr) return storage_->accesses;
  const auto reads = std::make_shared<plan_reads>();
  reads->plan = storage_;
  reads->accesses.add_write(storage_->completion, storage_->made_by);
  return {reads, &reads->accesses};
}

}  // namespace ferry

namespace ferry::detail {

bool overlap(const untyped_array& a, const untyped_array& b) {
  if (a.shape.size() == 0 || b.shape.size() == 0) return false;
  struct range {
    std::uintptr_t begin, end, step, row;
  };
  const auto range_of = [](const untyped_array& array) {
    const auto begin = reinterpret_cast<std::uintptr_t>(array.data);
    const auto step = static_cast<std::uintptr_t>(array.shape.row_stride()) * array.element_bytes;
    auto row = static_cast<std::uintptr_t>(array.shape.width()) * array.element_bytes;
    // Codes of fewer than 8 bits count as elements of a byte, but a row ends where the next one begins.
    if (array.shape.rows() > 1 && step != 0) row = std::min(row, step);
    return range{begin, begin + static_cast<std::uintptr_t>(array.shape.rows() - 1) * step + row, step, row};
  };
  const range first = range_of(a), second = range_of(b);
  if (first.end <= second.begin || second.end <= first.begin) return false;
  if (first.step != second.step || first.step == 0) return true;
  const std::uintptr_t shift = second.begin >= first.begin
                                   ? (second.begin - first.begin) % first.step
                                   : first.step - (first.begin - second.begin) % first.step;
  return shift < first.row || shift + second.row > first.step;
}

void refuse_overlap(const char* verb, const untyped_array& table, const untyped_array& batch) {
  throw invalid_argument(joined("ferry::", verb, ": ", batch.note().describe(), " and ",
                                table.note().describe(), " overlap in memory"));
}

void require_sizes(const char* verb, const untyped_array& table, std::int64_t positions,
                   const untyped_array& batch) {
  if (batch.shape.rows() != positions)
    throw invalid_argument(joined("ferry::", verb, ": ", counted(positions, "index was", "indices were"),
                                  " given for the ", counted(batch.shape.rows(), "row", "rows"), " of ",
                                  batch.note().describe()));
  if (batch.shape.width() != table.shape.width())
    throw invalid_argument(joined("ferry::", verb, ": rows of ", table.note().describe(), " have ",
                                  table.shape.width(), " elements, rows of ", batch.note().describe(),
                                  " have ", batch.shape.width()));
}

void require_shapes(const char* verb, const untyped_array& table, std::int64_t positions,
                    const untyped_array& batch) {
  require_dense_rows(verb, table);
  require_dense_rows(verb, batch);
  require_sizes(verb, table, positions, batch);
  if (overlap(table, batch)) refuse_overlap(verb, table, batch);
}

void require_every_row(const char* verb, const untyped_array& table, const untyped_array& batch) {
  require_dense_rows(verb, table);
  require_dense_rows(verb, batch);
  if (batch.shape.rows() != table.shape.rows())
    throw invalid_argument(joined("ferry::", verb, ": without indices ", batch.note().describe(),
                                  " must have a row for each of ", table.note().describe()));
  require_sizes(verb, table, table.shape.rows(), batch);
  if (overlap(table, batch)) refuse_overlap(verb, table, batch);
}

void require_rank_one(const char* verb, const untyped_array& array, const char* role) {
  // Contiguous indices of rank 2 come as those of rank 1, see index_ref.
  const bool takes_rows = std::string_view(role) == "indices";
  if (array.shape.rank != 1 && !(takes_rows && array.shape.rank == 2))
    throw invalid_argument(joined("ferry::", verb, ": the ", role, " ", array.note().describe(),
                                  " have rank ", array.shape.rank,
                                  takes_rows ? ", must be 1 or 2" : ", must be 1"));
  if (array.shape.rank != 1 || !array.shape.is_contiguous())
    throw invalid_argument(joined("ferry::", verb, ": the ", role, " ", array.note().describe(),
                                  " are strided, must be contiguous"));
}

void require_batch(const char* verb, const untyped_array& table, const untyped_array& indices,
                   const untyped_array& batch, bool clamps) {
  require_rank_one(verb, indices);
  const std::int64_t positions = indices.shape.rows();
  require_shapes(verb, table, positions, batch);
  if (clamps && table.shape.rows() == 0 && positions > 0)
    refuse_to_clamp(verb, positions, table.note().describe());
}

void refuse_to_clamp(const char* verb, std::int64_t positions, const std::string& table) {
  throw invalid_argument(joined("ferry::", verb, ": bounds::clamp has no row to send ",
                                counted(positions, "index", "indices"), " to, ", table, " has none"));
}

void require_plan(const char* verb, const row_plan& plan, std::string_view backend, std::int64_t rows,
                  function_ref<std::string()> describe_table, std::string_view bounds) {
  const auto& storage = plan.storage();
  if (storage == nullptr) throw invalid_argument(joined("ferry::", verb, ": the plan is empty"));
  if (storage->backend != backend)
    throw invalid_argument(joined("ferry::", verb, ": the plan was made by the ", storage->backend,
                                  " backend, but the verb runs on the ", backend, " backend"));
  if (plan.rows() != rows)
    throw invalid_argument(joined("ferry::", verb, ": the plan was made for tables of ",
                                  counted(plan.rows(), "row", "rows"), ", but ", describe_table(), " has ",
                                  rows));
  if (!bounds.empty() && storage->bounds != bounds)
    throw invalid_argument(joined("ferry::", verb, ": the plan was made with ", storage->bounds,
                                  ", the verb can't change that to ", bounds));
}

void refuse_direct_reach(const char* verb, const array_note& array) {
  throw invalid_argument(
      joined("ferry::", verb, ": path::direct can't reach ", array.describe(),
             ", this device has no access to pageable memory; use path::staged or mapped_space"));
}

void require_indices_inside(const char* verb, const row_plan& plan) {
  const plan_storage& storage = *plan.storage();
  if (!storage.checked) return;
  const index_report findings = storage.read_report();
  if (findings.out_of_range == 0) return;
  array_note table;
  table.rank = 1;
  table.extents = {storage.rows};
  std::rethrow_exception(found_error(findings, verb, table, {}, 1, plan.positions(), storage.signed_indices));
}

template <ExecutionSpace Exec>
void count_positions(const Exec& exec, const row_plan& plan,
                     const array_ref<std::int64_t, space_of_plans<Exec>>& counts) {
  launch_context<Exec> call(exec, "unique");
  call.use(plan.storage());
  call.writes_to(counts);
  launch(exec, call.label("counts"), counts.rows(),
         kernels::count_positions{plan.storage()->segment_begin, counts.data});
  call.finish().join();
}

#define FERRY_COUNTS_OF(EXEC)                                 \
  template void count_positions(const EXEC&, const row_plan&, \
                                const array_ref<std::int64_t, space_of_plans<EXEC>>&);
FERRY_FOR_EXECUTION_SPACES(FERRY_COUNTS_OF)
#undef FERRY_COUNTS_OF

}  // namespace ferry::detail
