// SPDX-License-Identifier: Apache-2.0
// The sort of a plan for each execution space that Kokkos has, each type of index and each bounds policy.
#include <ferry/plan/make_plan.hpp>

#include "../../backends/sorting.hpp"
#include "plan_layout.hpp"
#include "sort_kernels.hpp"

#include <ferry/memory/detail/tools.hpp>

#include <memory>
#include <utility>

namespace ferry::detail {

namespace {

/// Scratch memory of the sort of a plan.
struct sort_room {
  std::uint64_t* keys;
  std::uint64_t* other_keys;
  unsigned int* arrived;  ///< 0 between kernels
  const plan_layout& layout;
  std::byte* scratch;

  [[nodiscard]] int last_bit() const { return layout.position_bits + layout.key_bits; }
};

/// Makes the arrays of a plan in one launch, if the backend of a device has one for that many positions.
template <class Exec>
bool place_in_one_launch([[maybe_unused]] launch_context<Exec>& call,
                         [[maybe_unused]] const kernels::any_row_keys& key_of,
                         [[maybe_unused]] const kernels::place_segments& segments,
                         [[maybe_unused]] const sort_room& room) {
  if constexpr (is_host_exec<Exec>) {
    return false;
  } else {
    const Exec& exec = call.exec();
    if (!execution_backend<Exec>::sorts_in_one_launch(exec, segments.places.count)) return false;
    const std::string& label = call.label("sort");
    const tool_kernel reported(exec, label);
    return execution_backend<Exec>::sort_and_place(
        exec, key_of, segments, room.keys, room.other_keys, room.arrived, segments.places.count,
        room.layout.position_bits, room.last_bit(), room.scratch, room.layout.sort_bytes);
  }
}

template <class Index, class Bounds, class Exec>
void key_indices_by(launch_context<Exec>& call, const kernels::any_row_keys& keys, const sort_room& room,
                    std::int64_t count) {
  const kernels::row_keys<Index, Bounds> key_of{
      {static_cast<const Index*>(keys.indices), keys.rows, keys.report},
      keys.row_of,
      keys.position_bits,
      keys.long_found};
  launch(call.exec(), call.label("resolve"), count, kernels::key_indices<Index, Bounds>{key_of, room.keys});
}

template <class Index, class Exec>
void key_indices_of(launch_context<Exec>& call, const kernels::any_row_keys& keys, const sort_room& room,
                    std::int64_t count) {
  if (!keys.checks)
    key_indices_by<Index, bounds::unchecked>(call, keys, room, count);
  else if (keys.clamps)
    key_indices_by<Index, bounds::clamp>(call, keys, room, count);
  else if (keys.reports)
    key_indices_by<Index, bounds::check>(call, keys, room, count);
  else
    key_indices_by<Index, bounds::skip>(call, keys, room, count);
}

/// Makes the sorted keys and their running sums, for the kernel `segments`. Returns memory for the runs.
template <class Exec>
std::int64_t* sort_into(launch_context<Exec>& call, const kernels::any_row_keys& key_of,
                        kernels::place_segments& segments, const sort_room& room) {
  using backend = execution_backend<Exec>;
  const Exec& exec = call.exec();
  const std::int64_t n = segments.places.count;
  if (key_of.index_bytes == 8)
    key_of.is_signed ? key_indices_of<std::int64_t>(call, key_of, room, n)
                     : key_indices_of<std::uint64_t>(call, key_of, room, n);
  else
    key_of.is_signed ? key_indices_of<std::int32_t>(call, key_of, room, n)
                     : key_indices_of<std::uint32_t>(call, key_of, room, n);
  std::uint64_t* sorted = room.keys;
  backend::sort_keys(exec, sorted, room.other_keys, n, room.layout.position_bits, room.last_bit(),
                     room.scratch, room.layout.sort_bytes);
  // The sort returns the buffer with the result; the other one is free now.
  segments.places.keys = sorted;
  segments.run_begin = reinterpret_cast<std::int64_t*>(sorted == room.keys ? room.other_keys : room.keys);
  backend::inclusive_sum(exec, segments.places, segments.sorted_rows, n, room.scratch,
                         room.layout.sort_bytes);
  return segments.run_begin;
}

}  // namespace

void require_plan_shapes(const untyped_array& indices, std::int64_t rows, bool clamps) {
  if (rows < 0)
    throw invalid_argument("ferry::make_plan: the number of rows is " + std::to_string(rows) +
                           ", must be >= 0");
  require_rank_one("make_plan", indices, "indices");
  if (clamps && rows == 0 && indices.shape.rows() > 0)
    refuse_to_clamp("make_plan", indices.shape.rows(), "the table");
}

template <ExecutionSpace Exec>
row_plan sort_indices(const Exec& exec, const plan_request<Exec>& request, const plan_room& room) {
  using backend = execution_backend<Exec>;
  const std::int64_t n = request.positions;
  const std::int64_t rows = request.rows;
  const auto home = engine::get(exec);
  launch_context<Exec> call(exec, "make_plan");
  call.refuse_capture(
      "but sorting indices can't be repeated by a graph; make the plan before the capture, or write distinct rows with duplicates::assume_unique on path::direct");

  auto plan = std::allocate_shared<plan_storage>(node_allocator<plan_storage>(home->nodes()));
  plan->positions = n;
  plan->rows = rows;
  plan->checked = request.reports;
  plan->signed_indices = request.signed_indices;
  plan->bounds = request.bounds_name;
  plan->backend = backend::name;
  plan->space = room.data != nullptr ? room.space : std::string_view(backend::scratch_space::name);
  plan->on_host = is_host_exec<Exec>;
  plan->device = backend::device_of(exec);

  const plan_layout layout = layout_of_plan<backend>(n, rows);
  std::byte* workspace = room.data;
  if (workspace != nullptr) {
    plan->accesses = room.accesses;
  } else {
    plan->memory = call.block(layout.bytes);
    workspace = static_cast<std::byte*>(plan->memory.get());
  }
  const auto array = [workspace](std::size_t offset) {
    return reinterpret_cast<std::int64_t*>(workspace + offset);
  };
  plan->row_of = array(layout.row_of);
  plan->inverse = array(layout.inverse);
  plan->unique_rows = array(layout.unique_rows);
  plan->unique_count = array(layout.counts);
  plan->run_count = array(layout.counts) + 1;
  auto* const long_found = is_host_exec<Exec> ? nullptr : array(layout.counts) + 2;
  plan->long_found = long_found;
  plan->order = array(layout.order);
  plan->segment_begin = array(layout.segment_begin);
  auto* sorted_rows = reinterpret_cast<std::uint64_t*>(workspace + layout.sorted_rows);
  plan->sorted_rows = sorted_rows;
  auto* const keys = reinterpret_cast<std::uint64_t*>(workspace + layout.keys[0]);
  auto* const other_keys = reinterpret_cast<std::uint64_t*>(workspace + layout.keys[1]);

  plan->report = home->report();
  call.hold(plan->report);
  plan->report_of = &read_report<Exec>;

  // Indices that are copied to the device use the memory of segment_begin, which is written later.
  const void* const indices = request.enter(call, plan->segment_begin);
  kernels::any_row_keys key_of{indices,
                               static_cast<int>(request.index_bytes),
                               request.signed_indices,
                               request.bounds == bounds_kind::check,
                               request.bounds == bounds_kind::clamp,
                               request.bounds != bounds_kind::unchecked,
                               rows,
                               *plan->report,
                               plan->row_of,
                               layout.position_bits,
                               long_found};
  if (request.bounds == bounds_kind::of_user && n != 0) {
    // The rows are indices that bounds::skip reads.
    request.resolve(call, indices, *plan->report, plan->row_of);
    key_of.indices = plan->row_of;
    key_of.index_bytes = sizeof(std::int64_t);
    key_of.is_signed = true;
  }
  plan->run_begin = array(layout.keys[1]);
  kernels::place_segments segments{{keys, n, static_cast<std::uint64_t>(rows), layout.position_bits},
                                   sorted_rows,
                                   plan->order,
                                   plan->unique_rows,
                                   plan->segment_begin,
                                   plan->run_begin,
                                   plan->inverse,
                                   plan->unique_count,
                                   plan->run_count,
                                   long_found};
  const sort_room scratch{keys, other_keys, &plan->report->findings->arrived, layout,
                          workspace + layout.sort};
  if (n == 0 || !place_in_one_launch(call, key_of, segments, scratch)) {
    if (n != 0) plan->run_begin = sort_into(call, key_of, segments, scratch);
    launch(exec, call.label("segments"), n == 0 ? 1 : n, segments);
  }

  ticket ended = call.finish();
  plan->completion = call.completion();
  plan->made_by = call.id();
  plan->unique_count_of = [](const plan_storage& storage) {
    if (storage.completion != nullptr) storage.completion->wait();
    std::int64_t count = 0;
    backend::read(&count, storage.unique_count, sizeof count);
    return count;
  };
  ended.drop();
  return row_plan(std::move(plan));
}

#define FERRY_PLANS_OF(EXEC) \
  template row_plan sort_indices(const EXEC&, const plan_request<EXEC>&, const plan_room&);
FERRY_FOR_EXECUTION_SPACES(FERRY_PLANS_OF)
#undef FERRY_PLANS_OF

}  // namespace ferry::detail
