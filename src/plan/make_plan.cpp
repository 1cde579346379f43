// SPDX-License-Identifier: Apache-2.0
// The sort of a plan for each execution space that Kokkos has.
#include <ferry/plan/make_plan.hpp>

#include "../../backends/enabled.hpp"
#include "../../backends/sorting.hpp"
#include "sort_kernels.hpp"

#include <ferry/memory/detail/tools.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace ferry::detail {

/// Offsets of a plan's arrays in its block, in bytes. They are multiples of 128, so in an aligned block
/// kernels read the arrays in whole cache lines.
struct plan_layout {
  std::size_t row_of = 0, inverse = 0, unique_rows = 0, counts = 0, order = 0, segment_begin = 0,
              sorted_rows = 0;
  // The two buffers of the sort. After it, the one without the result holds the runs.
  std::size_t keys[2] = {};
  std::size_t sort = 0, sort_bytes = 0;  ///< scratch of the sort, then of the prefix sums
  std::size_t bytes = 0;
  // A key is (row, position), with row = `rows` for no row.
  int position_bits = 0;
  int key_bits = 1;
  [[nodiscard]] int last_bit() const { return position_bits + key_bits; }

  /// The arrays, without the scratch memory of the sort. Throws invalid_argument for too many positions.
  plan_layout(std::int64_t positions, std::int64_t rows) {
    const auto n = static_cast<std::size_t>(positions);
    constexpr std::size_t number = sizeof(std::int64_t);
    row_of = take(n * number);
    inverse = take(n * number);
    unique_rows = take(n * number);
    counts = take(3 * number);
    order = take(n * number);
    segment_begin = take((n + 1) * number);
    sorted_rows = take(n * number);
    for (auto& buffer : keys) buffer = take((n + 1) * number);
    position_bits = n == 0 ? 0 : static_cast<int>(std::bit_width(n - 1));
    key_bits = std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows))));
    // Segments and runs are counted in one half each of 64 bits.
    if (position_bits > 31 || position_bits + key_bits > 64)
      throw invalid_argument(joined(
          "ferry::make_plan: ", positions, " indices into ", rows,
          " rows are too many for one plan: at most 2147483648, and with their rows' numbers 64 bits"));
  }
  /// Adds an array. Returns its offset.
  std::size_t take(std::size_t size) {
    const std::size_t offset = bytes;
    bytes += (size + 127) / 128 * 128;
    return offset;
  }
};

/// For the current device. The sort has no scratch memory if the backend compares all keys.
template <class Backend>
plan_layout layout_of_plan(std::int64_t positions, std::int64_t rows) {
  plan_layout layout(positions, rows);
  bool needs_scratch = positions > 0;
  if constexpr (requires { Backend::sorts_without_scratch(positions); })
    needs_scratch = needs_scratch && !Backend::sorts_without_scratch(positions);
  if (needs_scratch)
    layout.sort_bytes = std::max(Backend::sort_keys_bytes(positions, layout.position_bits, layout.last_bit()),
                                 Backend::template sum_bytes<kernels::sorted_keys>(positions));
  layout.sort = layout.take(layout.sort_bytes);
  return layout;
}

template <ExecutionSpace Exec>
std::size_t bytes_of_plan(const Exec& exec, std::int64_t positions, std::int64_t rows) {
  const typename execution_backend<Exec>::device_guard guard(exec);
  return layout_of_plan<execution_backend<Exec>>(positions, rows).bytes;
}

void refuse_plan_size(const std::string& positions, const std::string& rows) {
  throw invalid_argument(joined("ferry::plan_workspace_bytes: ", positions, " positions and ", rows,
                                " rows were given, neither may be negative"));
}

void require_workspace(const array_note& room, const void* data, bool contiguous, std::size_t needed) {
  const auto complain = [&](const std::string& flaw) {
    throw invalid_argument(joined("ferry::make_plan: the workspace ", room.describe(), " ", flaw, "; ",
                                  needed, " bytes are needed, ", room.rank == 0 ? 0 : room.extents[0],
                                  " given"));
  };
  if (room.rank != 1 || !contiguous) complain("must be contiguous and of rank 1");
  if (std::cmp_less(room.extents[0], needed)) complain("is too small");
  const auto past = reinterpret_cast<std::uintptr_t>(data) % plan_workspace_alignment;
  if (past != 0) complain(joined("begins ", past, " bytes after a multiple of ", plan_workspace_alignment));
}

namespace {

/// Scratch memory of the sort of a plan.
struct sort_room {
  std::uint64_t* keys;
  std::uint64_t* other_keys;
  unsigned int* arrived;  ///< 0 between kernels
  const plan_layout& layout;
  std::byte* scratch;
};

/// Makes the arrays of a plan, in one launch if the backend of a device has one for that many positions.
/// Returns the memory of the runs.
template <class Exec>
std::int64_t* enqueue_sort(launch_context<Exec>& call, const kernels::any_row_keys& key_of,
                           kernels::write_segments segments, const sort_room& room) {
  using backend = execution_backend<Exec>;
  const Exec& exec = call.exec();
  const std::int64_t n = segments.sorted.count;
  const plan_layout& layout = room.layout;
  if constexpr (!is_host_exec<Exec>)
    if (n != 0 && backend::sorts_in_one_launch(exec, n)) {
      const std::string& label = call.label("sort");
      const tool_kernel reported(exec, label);
      if (backend::sort_and_place(exec, key_of, segments, room.keys, room.other_keys, room.arrived, n,
                                  layout.position_bits, layout.last_bit(), room.scratch, layout.sort_bytes))
        return segments.run_begin;
    }
  if (n != 0) {
    launch(exec, call.label("resolve"), n, kernels::key_indices{key_of, room.keys});
    std::uint64_t* sorted = room.keys;
    backend::sort_keys(exec, sorted, room.other_keys, n, layout.position_bits, layout.last_bit(),
                       room.scratch, layout.sort_bytes);
    // The sort returns the buffer with the result; the other one is free now.
    segments.sorted.keys = sorted;
    segments.run_begin = reinterpret_cast<std::int64_t*>(sorted == room.keys ? room.other_keys : room.keys);
    backend::inclusive_sum(exec, segments.sorted, segments.sorted_rows, n, room.scratch, layout.sort_bytes);
  }
  launch(exec, call.label("segments"), n == 0 ? 1 : n, segments);
  return segments.run_begin;
}

}  // namespace

void require_plan_shapes(const untyped_array& indices, std::int64_t rows, bool clamps) {
  if (rows < 0)
    throw invalid_argument(joined("ferry::make_plan: the number of rows is ", rows, ", must be >= 0"));
  require_rank_one("make_plan", indices, "indices");
  if (clamps && rows == 0 && indices.shape.rows() > 0)
    refuse_to_clamp("make_plan", indices.shape.rows(), "the table");
}

template <ExecutionSpace Exec>
row_plan sort_indices(const Exec& exec, const plan_request<Exec>& request, const plan_room& room) {
  using backend = execution_backend<Exec>;
  const std::int64_t n = request.positions;
  const std::int64_t rows = request.rows;
  const auto engine_of_exec = engine::get(exec);
  launch_context<Exec> call(exec, "make_plan");
  call.refuse_capture(
      "but sorting indices can't be repeated by a graph; make the plan before the capture, or write distinct rows with duplicates::assume_unique on path::direct");

  auto plan = std::allocate_shared<plan_storage>(node_allocator<plan_storage>());
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
  const auto words = [workspace](std::size_t offset) {
    return reinterpret_cast<std::uint64_t*>(workspace + offset);
  };
  plan->sorted_rows = words(layout.sorted_rows);

  plan->report = engine_of_exec->report();
  call.hold(plan->report);
  plan->report_of = &read_report<Exec>;

  // Indices that are copied to the device use the memory of segment_begin, which is written later.
  const void* const indices = request.enter(call, plan->segment_begin);
  kernels::any_row_keys key_of{.indices = indices,
                               .index_bytes = static_cast<int>(request.index_bytes),
                               .is_signed = request.signed_indices,
                               .reports = request.bounds == bounds_kind::check,
                               .clamps = request.bounds == bounds_kind::clamp,
                               .checks = request.bounds != bounds_kind::unchecked,
                               .rows = rows,
                               .report = *plan->report,
                               .row_of = plan->row_of,
                               .position_bits = layout.position_bits,
                               .long_found = long_found};
  if (request.bounds == bounds_kind::of_user && n != 0) {
    // The rows are indices that bounds::skip reads.
    request.resolve(call, indices, *plan->report, plan->row_of);
    key_of.indices = plan->row_of;
    key_of.index_bytes = sizeof(std::int64_t);
    key_of.is_signed = true;
  }
  const kernels::write_segments segments{
      .sorted = {words(layout.keys[0]), n, static_cast<std::uint64_t>(rows), layout.position_bits},
      .sorted_rows = words(layout.sorted_rows),
      .order = plan->order,
      .unique_rows = plan->unique_rows,
      .segment_begin = plan->segment_begin,
      .run_begin = array(layout.keys[1]),
      .inverse = plan->inverse,
      .unique_count = plan->unique_count,
      .run_count = plan->run_count,
      .long_found = long_found};
  plan->run_begin = enqueue_sort(call, key_of, segments,
                                 {words(layout.keys[0]), words(layout.keys[1]),
                                  &plan->report->findings->arrived, layout, workspace + layout.sort});

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

#define FERRY_PLANS_OF(EXEC)                                                   \
  template std::size_t bytes_of_plan(const EXEC&, std::int64_t, std::int64_t); \
  template row_plan sort_indices(const EXEC&, const plan_request<EXEC>&, const plan_room&);
FERRY_FOR_EXECUTION_SPACES(FERRY_PLANS_OF)
#undef FERRY_PLANS_OF

}  // namespace ferry::detail
