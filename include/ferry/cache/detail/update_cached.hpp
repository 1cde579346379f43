// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/find_places.hpp>
#include <ferry/cache/detail/flush_rows.hpp>
#include <ferry/cache/detail/missed_items.hpp>
#include <ferry/cache/detail/placed_kernel.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// scatter, scatter_add and step on a cached table: what update_rows.hpp does, on path::direct, with the
/// rows at their places.
namespace ferry::detail {

/// Checks the arrays of a job, orders the call after their work in flight, and puts those in host memory
/// into the cache.
template <class Exec, class Job>
void reach_cached(launch_context<Exec>& of, row_cache& cache, const Job& job) {
  job.for_each_array([&](const auto& array) {
    require_direct_reach(of.verb(), of.exec(), array);
    of.touches(array);
  });
  if constexpr (requires { Job::row_fields; }) {
    const auto put = [&](const auto& array) {
      if constexpr (!std::is_same_v<typename std::remove_cvref_t<decltype(array)>::memory_space,
                                    device_space>)
        add_backing_array(of, cache, array);
    };
    for (int f = 0; f < job.fields; ++f) put(job.arrays.state[static_cast<std::size_t>(f)]);
    for (int f = 0; f < Job::row_fields; ++f) put(job.arrays.row_state[static_cast<std::size_t>(f)]);
    if constexpr (Job::counts_rows) put(job.arrays.row_steps);
  }
}

template <class Duplicates, class Exec, class Job, class Value, class Space>
ticket update_cached_by_plan(const Exec& exec, const char* verb, row_cache& cache, const Job& job,
                             const row_plan& plan, const array_ref<Value, Space>& values,
                             const rollback& ends) {
  launch_context<Exec> of(exec, verb);
  const std::string& label = of.label("cached");
  const std::int64_t n = plan.positions();
  of.use(plan.storage());
  of.changes().only(*plan.storage());
  of.roll_back_by(ends);
  if (n == 0) {
  } else if (job.table.width() == 0 && !Job::counts_rows) {
    if constexpr (Duplicates::forbids) report_repeats(of, label, plan);
  } else {
    [[maybe_unused]] const auto moving = moves<path::direct>(of, values, job.table, bytes_of_rows(values, n));
    require_direct_reach(verb, exec, values);
    of.reads_from(values);
    auto* codes = of.template scratch<std::int64_t>(n);
    reach_cached(of, cache, job);
    const bool counts = begin_batch(of, cache, plan.storage(), true);
    if (counts) cache.counted_every = 1;
    kernels::missed_items missed;
    if constexpr (!is_host_exec<Exec>) missed = empty_lists(of, n);
    const auto ready = job.template prepare<false>(of, label, values);
    const auto labels = update_labels::of<Job>(of, label);
    const auto source = plan_source<Duplicates, sum_of<Job, Exec, Value>>(of, label, job, plan, values);
    const plan_storage& from = *plan.storage();
    find_places(of, cache, kernels::counted_segments{from.unique_rows, from.segment_begin, from.unique_count},
                n, codes_of_rows(cache), counts, true, codes, missed);
    launch_update<Duplicates>(exec, labels, placed_job<Job>(ready, cache, codes, missed), source, n, values,
                              schedule::hits_and_misses{});
  }
  return of.finish(job.table, n, plan.storage()->signed_indices);
}

/// Under duplicates::assume_unique, without sorting. As update_by_index.
template <class Bounds, class Exec, class Job, class Index, class IndexSpace, class Value, class Space>
ticket update_cached_by_index(const Exec& exec, const char* verb, row_cache& cache, const Job& job,
                              const array_ref<Index, IndexSpace>& indices,
                              const array_ref<Value, Space>& values, const rollback& ends) {
  using plain = std::remove_const_t<Index>;
  using unique = duplicates::assume_unique;
  const std::int64_t n = indices.rows();
  launch_context<Exec> of(exec, verb);
  const std::string& label = of.label("cached");
  of.roll_back_by(ends);
  if (job.table.width() == 0 && !Job::counts_rows) {
    look_at_bounds<Bounds>(of, indices, job.table.rows());
  } else if (n != 0) {
    [[maybe_unused]] const auto moving = moves<path::direct>(of, values, job.table, bytes_of_rows(values, n));
    require_direct_reach(verb, exec, values);
    of.reads_from(values);
    auto* codes = of.template scratch<std::int64_t>(n);
    const auto* const list = indices_for_kernels(of, indices);
    of.changes().only(list, n, job.table.rows(), true);
    const kernels::index_rows<plain, Bounds> source{list, job.table.rows(),
                                                    Bounds::reports ? of.report() : report_writer{}};
    const auto labels = update_labels::of<Job>(of, label);
    reach_cached(of, cache, job);
    const bool counts = begin_batch(of, cache, nullptr, true);
    if (counts) cache.counted_every = counting_step(n);
    const auto ready = job.template prepare<false>(of, label, values);
    using counted = kernels::counted_positions<kernels::index_rows<plain, Bounds>>;
    // It reports bad indices, so that the next kernel writes nothing.
    find_places(of, cache, counted{source, counting_step(n)}, n, codes_of_rows(cache), counts, true, codes);
    launch_update<unique>(exec, labels, placed_job<Job>(ready, cache, codes, {}), source, n, values);
  }
  return of.finish(job.table, n, std::is_signed_v<plain>);
}

/// After require_batch has checked the arguments. `named` comes from rows_named_by. The caller holds a
/// cache_use.
template <class Chosen, class Duplicates, class Exec, class Job, class Named, class Value, class Space>
ticket update_cached(const Exec& exec, const char* verb, row_cache& cache, const Job& job, const Named& named,
                     const array_ref<Value, Space>& values, const rollback& ends = {}) {
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  require_foreign(verb, cache, named, values);
  // sum_any_order is sum for a device and a table in host memory; index by index needs atomic additions.
  using ordered = std::conditional_t<in_any_order<Duplicates>, duplicates::sum, Duplicates>;
  if constexpr (is_plan<Named>)
    return update_cached_by_plan<ordered>(exec, verb, cache, job, named, values, ends);
  else if constexpr (ordered::needs_plan)
    return update_cached_by_plan<ordered>(
        exec, verb, cache, job, plan_rows_of<bounds_policy>(exec, named, job.table.rows()), values, ends);
  else
    return update_cached_by_index<bounds_policy>(exec, verb, cache, job, named, values, ends);
}

}  // namespace ferry::detail
