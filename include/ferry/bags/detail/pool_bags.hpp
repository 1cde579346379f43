// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/bags/detail/bag_arguments.hpp>
#include <ferry/bags/detail/bag_list.hpp>
#include <ferry/bags/detail/launch_pool.hpp>
#include <ferry/int8/detail/rowwise_int8_rows.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/gather.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/host_side.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The path of gather_bags from its arguments to pool_rows.
namespace ferry::detail {

/// Whether a bag with a position without a row keeps its contents.
template <class Bounds, class Named>
bool is_strict(const Named& named) {
  if constexpr (is_plan<Named>)
    return named.storage()->checked;
  else
    return Bounds::reports;
}

/// The rows that the batch names, for kernels of the host.
template <class Bounds, class Exec, class Named>
auto rows_for_host(launch_context<Exec>& of, const Named& named, [[maybe_unused]] std::int64_t table_rows) {
  if constexpr (is_plan<Named>) {
    return kernels::listed_rows{plan_array_for_host(of, named.storage()->row_of, named.positions())};
  } else {
    using plain = std::remove_const_t<typename Named::value_type>;
    return kernels::index_rows<plain, Bounds>{indices_for_host(of, named), table_rows,
                                              Bounds::reports ? of.host_report() : report_writer{}};
  }
}

template <class Exec, class Weights>
auto* weights_for_kernels([[maybe_unused]] launch_context<Exec>& of, const Weights& weights) {
  if constexpr (std::is_same_v<Weights, no_array>)
    return static_cast<const void*>(nullptr);
  else
    return indices_for_kernels(of, weights);
}
template <class Exec, class Weights>
auto* weights_for_host([[maybe_unused]] launch_context<Exec>& of, const Weights& weights) {
  if constexpr (std::is_same_v<Weights, no_array>)
    return static_cast<const void*>(nullptr);
  else
    return indices_for_host(of, weights);
}

/// Kernels of the execution space pool the rows where the table lies. Where they don't reach `out`, they pool
/// into memory of their own, and the rows travel through the ring.
template <bool Through, class Pooling, class Bounds, class Exec, class Access, class Named, class Bags,
          class Weights, class Chosen, class Out, class OutSpace>
void pool_here(launch_context<Exec>& of, const std::string& label, const Access& access, const Named& named,
               const Bags& bags, const Weights& weights, const Chosen& chosen,
               const array_ref<Out, OutSpace>& out) {
  const std::int64_t count = out.rows(), positions = positions_of(named);
  if constexpr (Through) refuse_capture_of_staging<path::staged>(of);  // before the kernel is captured
  const auto& table = access.table();
  decltype(auto) rows = access.rows(of);
  const auto launch_into = [&](const auto& to, auto* maxima, std::int64_t stride, std::int64_t* own) {
    const auto source = rows_for_kernels<Bounds>(of, named, table.rows());
    const pooling_inputs in{
        rows,
        access.places(of, source, positions, plan_of(named)),
        bags_for_kernels(of, bags, count, positions, !std::is_same_v<Bounds, bounds::unchecked>),
        weights_for_kernels(of, weights),
        maxima,
        stride,
        is_strict<Bounds>(named),
        table.rows() > 0};
    launch_pool<Pooling>(of.exec(), label, in, to, own);
  };
  const auto pool_into = [&](const auto& to, std::int64_t* own) {
    [[maybe_unused]] const auto moving = moves<path::direct>(of, table, to, bytes_of_rows(table, positions));
    if constexpr (std::is_same_v<Chosen, no_array>) {
      launch_into(to, static_cast<void*>(nullptr), 0, own);
    } else {
      require_direct_reach(of.verb(), of.exec(), chosen);
      of.writes_to(chosen);
      launch_into(to, chosen.data, chosen.row_stride(), own);
    }
  };
  if constexpr (Through) {
    const auto pooled = near_rows<Out>(of, count, out.width(), "pooled");
    auto own = near_rows<std::int64_t>(of, count, 1, "bags");
    own.rank = 1;
    pool_into(pooled, own.data);
    gather(of.exec(), pooled, own, out, path::staged{}, bounds::skip{}).drop();
  } else {
    require_direct_reach(of.verb(), of.exec(), out);
    of.writes_to(out);
    pool_into(out, nullptr);
  }
}

/// Brings the rows of the bags that changed from page-locked memory to the device.
template <class Exec, class T, class Out, class OutSpace>
void bring(launch_context<Exec>& of, const array_ref<T, pinned_space>& from, std::int64_t* own,
           const array_ref<Out, OutSpace>& out) {
  auto which = dense_rows<const std::int64_t, pinned_space>(own, from.rows(), 1, "bags");
  which.rank = 1;
  gather(of.exec(), from, which, out, path::direct{}, bounds::skip{}).drop();
}

/// The host's threads pool the rows of a table in host memory, so that pooled rows travel only.
template <class Pooling, class Bounds, class Exec, class T, class Space, class Named, class Bags,
          class Weights, class Chosen, class Out, class OutSpace>
void pool_on_host(launch_context<Exec>& of, const std::string& label, const array_ref<T, Space>& table,
                  const Named& named, const Bags& bags, const Weights& weights, const Chosen& chosen,
                  const array_ref<Out, OutSpace>& out) {
  const std::int64_t count = out.rows(), positions = positions_of(named);
  const auto host = host_side(of.exec());
  wait_for_host_access(of, label, read_only(table), out);
  const auto launch_into = [&](const auto& to, auto* maxima, std::int64_t stride, std::int64_t* own) {
    const pooling_inputs in{
        table,
        rows_for_host<Bounds>(of, named, table.rows()),
        bags_for_kernels<true>(of, bags, count, positions, !std::is_same_v<Bounds, bounds::unchecked>),
        weights_for_host(of, weights),
        maxima,
        stride,
        is_strict<Bounds>(named),
        table.rows() > 0};
    launch_pool<Pooling>(host, label, in, to, own);
    host.fence(label);
  };
  std::int64_t* own = nullptr;
  const auto pool_into = [&](const auto& to) {
    if constexpr (std::is_same_v<Chosen, no_array>) {
      launch_into(to, static_cast<void*>(nullptr), 0, own);
    } else if constexpr (Chosen::memory_space::is_host_accessible) {
      of.wait_for_host_access(chosen);
      launch_into(to, chosen.data, chosen.row_stride(), own);
    } else {
      using element = typename Chosen::value_type;
      const auto here = dense_rows<element, pinned_space>(of.template pinned<element>(count * out.width()),
                                                          count, out.width(), "maxima");
      launch_into(to, here.data, here.row_stride(), own);
      bring(of, here, own, chosen);
    }
  };
  constexpr bool there = !OutSpace::is_host_accessible;
  constexpr bool chosen_there = [] {
    if constexpr (std::is_same_v<Chosen, no_array>)
      return false;
    else
      return !Chosen::memory_space::is_host_accessible;
  }();
  if constexpr (there || chosen_there) own = of.template pinned<std::int64_t>(count);
  if constexpr (there) {
    const auto here = dense_rows<Out, pinned_space>(of.template pinned<Out>(count * out.width()), count,
                                                    out.width(), "pooled");
    pool_into(here);
    bring(of, here, own, out);
  } else {
    pool_into(out);
  }
}

template <class Path, bool Through, class Pooling, class Bounds, class Exec, class Access, class Named,
          class Bags, class Weights, class Chosen, class Out, class OutSpace>
ticket gather_bags_on(const Exec& exec, const Access& access, const Named& named, const Bags& bags,
                      const Weights& weights, const Chosen& chosen, const array_ref<Out, OutSpace>& out) {
  launch_context<Exec> of(exec, "gather_bags");
  const std::string& label = of.label(Access::template path_label<Path>);
  const auto& table = access.table();
  if constexpr (is_plan<Named>) of.use(named.storage());
  constexpr bool by_host =
      by_host_alone<Path> && Access::memory_space::is_host_accessible && !is_host_exec<Exec>;
  if (out.size() == 0) {
    if constexpr (!is_plan<Named>) look_at_bounds<Bounds>(of, named, table.rows());
    if constexpr (!std::is_same_v<Bags, std::int64_t>) {
      const auto list = bags_for_kernels(of, bags, out.rows(), positions_of(named),
                                         !std::is_same_v<Bounds, bounds::unchecked>);
      launch(exec, of.label("validate"), out.rows(), kernels::check_bags<offset_type<Bags>>{list});
    }
  } else if constexpr (by_host) {
    pool_on_host<Pooling, Bounds>(of, label, table, named, bags, weights, chosen, out);
  } else {
    pool_here<Through, Pooling, Bounds>(of, label, access, named, bags, weights, chosen, out);
  }
  return of.finish(table, positions_of(named), has_signed_indices(named));
}

/// Chooses the side that pools. Under path::automatic the execution space does, but for tables in pageable
/// memory, which a device reads slowly or not at all.
template <class Path, class Pooling, class Bounds, class Exec, class Access, class Named, class Bags,
          class Weights, class Chosen, class Out, class OutSpace>
ticket gather_bags_by(const Exec& exec, const Access& access, const Named& named, const Bags& bags,
                      const Weights& weights, const Chosen& chosen, const array_ref<Out, OutSpace>& out) {
  constexpr bool to_pageable = !is_host_exec<Exec> && std::is_same_v<OutSpace, pageable_space>;
  if constexpr (by_host_alone<Path>) {
    constexpr bool through = !is_host_exec<Exec> && !Access::memory_space::is_host_accessible;
    return gather_bags_on<Path, through, Pooling, Bounds>(exec, access, named, bags, weights, chosen, out);
  } else if constexpr (!Path::chosen_at_run_time) {
    return gather_bags_on<Path, false, Pooling, Bounds>(exec, access, named, bags, weights, chosen, out);
  } else if constexpr (Access::is_strided && !is_host_exec<Exec> &&
                       std::is_same_v<typename Access::memory_space, pageable_space>) {
    if (execution_backend<Exec>::capturing(exec))
      return gather_bags_on<path::direct, to_pageable, Pooling, Bounds>(exec, access, named, bags, weights,
                                                                        chosen, out);
    return gather_bags_on<path::staged, false, Pooling, Bounds>(exec, access, named, bags, weights, chosen,
                                                                out);
  } else {
    return gather_bags_on<path::direct, to_pageable, Pooling, Bounds>(exec, access, named, bags, weights,
                                                                      chosen, out);
  }
}

}  // namespace ferry::detail
