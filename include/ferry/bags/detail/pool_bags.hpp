// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// gather_bags from its arguments to pool_rows.
namespace ferry::detail {

/// Checks the arrays of gather_bags. `extra` is no_array, the weights of the positions, or the array for the
/// positions of the maxima.
template <class Bag, class Exec, class Access, class Batch, class Bags, class Extra, class Pooled>
void require_bag_batch(const Access& access, const Batch& batch, const Bags& bags, const Extra& extra,
                       const Pooled& pooled) {
  const char* verb = "gather_bags";
  const auto& table = access.table();
  const std::int64_t positions = positions_of(batch);
  require_bag_indices<Exec, typename Bag::chosen>(verb, batch, table);
  require_bags(verb, bags, positions, pooled);
  require_shapes(verb, table, pooled.rows(), pooled);
  access.require_foreign(verb, batch, bags, extra, pooled);
  require_extra_output<typename Bag::pooling>(verb, extra, positions, pooled);
}

/// True if a bag keeps its contents when one of its positions has no row.
template <class Bounds, class Batch>
bool is_strict(const Batch& batch) {
  if constexpr (is_plan<Batch>)
    return batch.storage()->checked;
  else
    return Bounds::reports;
}

template <bool OnHost = false, class Exec, class Weights>
auto* weights_for_kernels([[maybe_unused]] launch_context<Exec>& call, const Weights& weights) {
  if constexpr (std::is_same_v<Weights, no_array>)
    return static_cast<const void*>(nullptr);
  else if constexpr (OnHost)
    return indices_for_host(call, weights);
  else
    return indices_for_kernels(call, weights);
}

/// The side that pools: kernels of the execution space that write the pooled rows, kernels whose rows then
/// travel through slots, or the host's threads, so that only pooled rows travel.
enum class pool_side : std::uint8_t { kernels, kernels_and_ring, host };

/// The rows that kernels write: `rows`, or with Detour temporary ones of their size.
template <bool Detour, bool OnHost, class Exec, class Array>
auto written_rows([[maybe_unused]] launch_context<Exec>& call, const Array& rows,
                  [[maybe_unused]] const char* label) {
  if constexpr (!Detour) {
    return rows;
  } else {
    using element = typename Array::value_type;
    const std::int64_t count = rows.rows(), width = rows.width();
    if constexpr (OnHost)
      return dense_rows<element, pinned_space>(call.template pinned<element>(count * width), count, width,
                                               label);
    else
      return near_rows<element>(call, count, width, label);
  }
}
/// Moves the temporary rows of the bags that changed. changed[b] is b, or -1 if bag b keeps its contents.
template <class Path, class Exec, class T, class Space, class Out, class OutSpace>
void deliver_rows(launch_context<Exec>& call, const array_ref<T, Space>& rows, const std::int64_t* changed,
                  const array_ref<Out, OutSpace>& out) {
  auto bags = dense_rows<const std::int64_t, Space>(changed, rows.rows(), 1, "bags");
  bags.rank = 1;
  gather(call.exec(), rows, bags, out, Path{}, bounds::skip{}).drop();
}

/// The rows that host threads pool.
template <class Exec, class Access>
const auto& rows_on_host([[maybe_unused]] launch_context<Exec>& call, const Access& access) {
  if constexpr (requires { access.rows_of_host(call); })
    return access.rows_of_host(call);
  else
    return access.table();
}
/// True if path::automatic leaves the rows to the host.
template <class Access>
consteval bool is_left_to_host() {
  if constexpr (requires { Access::is_left_to_host; })
    return Access::is_left_to_host;
  else
    return Access::is_strided && std::is_same_v<typename Access::memory_space, pageable_space>;
}

/// The further array if it has this meaning, else no_array.
template <bool Holds, class Extra>
const auto& extra_if(const Extra& extra) {
  static constexpr no_array none;
  if constexpr (Holds)
    return extra;
  else
    return none;
}

/// Pools the rows. `extra`: see require_extra.
template <pool_side Side, class Pooling, class Bounds, class Exec, class Access, class Batch, class Bags,
          class Extra, class Out, class OutSpace>
void pool_on(launch_context<Exec>& call, const std::string& label, const Access& access, const Batch& batch,
             const Bags& bags, const Extra& extra, const array_ref<Out, OutSpace>& out) {
  constexpr bool on_host = Side == pool_side::host;
  const auto& chosen = extra_if<Pooling::selects>(extra);
  using chosen_type = std::remove_cvref_t<decltype(chosen)>;
  constexpr bool selects = !std::is_same_v<chosen_type, no_array>;
  constexpr bool checks = !std::is_same_v<Bounds, bounds::unchecked>;
  constexpr bool out_detours =
      Side == pool_side::kernels_and_ring || (on_host && !OutSpace::is_host_accessible);
  constexpr bool chosen_detours = [] {
    if constexpr (!selects)
      return false;
    else if constexpr (on_host)
      return !chosen_type::memory_space::is_host_accessible;
    else
      return out_detours && std::is_same_v<typename chosen_type::memory_space, pageable_space>;
  }();
  using delivery = std::conditional_t<on_host, path::direct, path::staged>;
  const auto& table = access.table();
  const std::int64_t count = out.rows(), positions = positions_of(batch);
  if constexpr (on_host) {
    wait_for_host_access(call, label, read_only(table), out);
    if constexpr (selects && !chosen_detours) call.wait_for_host_access(chosen);
  } else if constexpr (out_detours) {
    refuse_capture_of_staging<path::staged>(call);  // before the kernel is captured
  }
  const auto pooled = written_rows<out_detours, on_host>(call, out, "pooled");
  const auto maxima = written_rows<chosen_detours, on_host>(call, chosen, "maxima");
  std::int64_t* changed = nullptr;
  if constexpr (on_host && (out_detours || chosen_detours))
    changed = call.template pinned<std::int64_t>(count);
  else if constexpr (out_detours)
    changed = near_rows<std::int64_t>(call, count, 1, "bags").data;
  // Before the first kernel: in a capture, offsets and weights may be refused.
  const auto bag_list = bags_for_kernels<on_host>(call, bags, count, positions, checks);
  const auto* const factors = weights_for_kernels<on_host>(call, extra_if<!Pooling::selects>(extra));
  const auto inputs_of = [&](const auto& rows, const auto& source) {
    return pooling_inputs{rows,
                          source,
                          bag_list,
                          factors,
                          maxima.data,
                          maxima.row_stride(),
                          is_strict<Bounds>(batch),
                          table.rows() > 0};
  };
  if constexpr (on_host) {
    const auto host = host_side(call.exec());
    const auto& rows = rows_on_host(call, access);
    const auto source = rows_for_kernels<Bounds, true>(call, batch, table.rows());
    launch_pool<Pooling>(call, host, label, inputs_of(rows, source), pooled, changed);
    host.fence(label);
  } else {
    decltype(auto) rows = access.rows(call);
    if constexpr (!out_detours) {
      require_direct_reach(call.verb(), call.exec(), out);
      call.writes_to(out);
    }
    if constexpr (selects && !chosen_detours) {
      require_direct_reach(call.verb(), call.exec(), chosen);
      call.writes_to(chosen);
    }
    [[maybe_unused]] const auto traffic =
        count_transfer<path::direct>(call, table, pooled, bytes_of_rows(table, positions));
    const auto source = rows_for_kernels<Bounds>(call, batch, table.rows());
    const auto& plan = plan_of(batch);
    const auto& indices = access.places(call, source, positions, plan);
    launch_pool<Pooling>(call, call.exec(), label, inputs_of(rows, indices), pooled, changed);
  }
  if constexpr (chosen_detours) deliver_rows<delivery>(call, maxima, changed, chosen);
  if constexpr (out_detours) deliver_rows<delivery>(call, pooled, changed, out);
}

/// gather_bags after the checks. Under path::automatic the execution space pools, except tables in pageable
/// memory, which a device reads slowly or not at all.
template <class Path, class Pooling, class Bounds, class Exec, class Access, class Batch, class Bags,
          class Extra, class Out, class OutSpace>
ticket pool_bags(const Exec& exec, const Access& access, const Batch& batch, const Bags& bags,
                 const Extra& extra, const array_ref<Out, OutSpace>& out) {
  using space = typename Access::memory_space;
  constexpr bool on_device = !is_host_exec<Exec>;
  if constexpr (is_left_to_host<Access>() && Path::chosen_at_run_time && on_device)
    if (!execution_backend<Exec>::capturing(exec))
      return pool_bags<path::staged, Pooling, Bounds>(exec, access, batch, bags, extra, out);
  constexpr bool by_ring = on_device && (by_host_alone<Path> ? !space::is_host_accessible
                                                             : Path::chosen_at_run_time &&
                                                                   std::is_same_v<OutSpace, pageable_space>);
  constexpr pool_side side = by_ring                            ? pool_side::kernels_and_ring
                             : on_device && by_host_alone<Path> ? pool_side::host
                                                                : pool_side::kernels;
  using label_path = std::conditional_t<Path::chosen_at_run_time, path::direct, Path>;

  launch_context<Exec> call(exec, "gather_bags");
  const std::string& label = call.label(Access::template path_label<label_path>);
  const auto& table = access.table();
  if constexpr (is_plan<Batch>) call.use(batch.storage());
  if (out.size() != 0) {
    pool_on<side, Pooling, Bounds>(call, label, access, batch, bags, extra, out);
  } else {
    if constexpr (!is_plan<Batch>) look_at_bounds<Bounds>(call, batch, table.rows());
    if constexpr (!std::is_same_v<Bags, std::int64_t>) {
      const auto list = bags_for_kernels(call, bags, out.rows(), positions_of(batch),
                                         !std::is_same_v<Bounds, bounds::unchecked>);
      launch(exec, call.label("validate"), out.rows(), kernels::check_bags<offset_type<Bags>>{list});
    }
  }
  return call.finish(table, positions_of(batch), has_signed_indices(batch));
}

}  // namespace ferry::detail
