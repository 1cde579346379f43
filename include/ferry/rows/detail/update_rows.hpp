#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/write_cooperative.hpp>
#include <ferry/rows/detail/write_staged.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

/// The way of scatter, scatter_add and step from their arguments to the kernels.
namespace ferry::detail {

template <class Path, class Duplicates, class Exec, class Job, class Value, class Space>
ticket update_by_plan(const Exec& exec, const char* verb, const Job& job, const row_plan& plan,
                      const array_ref<Value, Space>& values, const rollback& ends) {
  launch_context<Exec> of(exec, verb);
  if constexpr ((Path::occupies_host_threads && Path::reaches_table))
    of.refuse_capture(two_ends_need_the_host);
  const std::string& label = of.label(Path::name);
  of.use(plan.storage());
  of.roll_back_by(ends);
  if (plan.positions() == 0) {
  } else if (job.table.width() == 0 && !counts_rows_v<Job>) {
    if constexpr (Duplicates::forbids) report_repeats(of, label, plan);
  } else {
    if constexpr ((Path::reaches_table || Path::chosen_at_run_time)) {
      using table_space = typename decltype(job.table)::memory_space;
      require_direct_reach(verb, exec, values);
      of.reads_from(values);
      job.for_each_array([&](const auto& array) {
        require_direct_reach(verb, exec, array);
        if constexpr ((Path::occupies_host_threads && Path::reaches_table))
          of.wait_for_host_access(array);  // the host writes as well
        of.touches(array);
      });
      const auto ready = prepared<false>(of, label, job, values);
      if constexpr ((Path::occupies_host_threads && Path::reaches_table) && !is_host_exec<Exec>)
        write_cooperative<Duplicates>(of, label, ready, plan, values);
      else
        launch_update<Duplicates>(of, label, ready, plan, values, plan_order<Path, table_space>(plan));
    } else {
      settle(of, label, job.table, values);
      job.for_each_array([&](const auto& array) { of.wait_for_host_access(array); });
      const auto ready = prepared<true>(of, label, job, values);
      if (!is_refused(ready)) write_staged<Duplicates>(of, label, ready, plan, values);
    }
  }
  return of.finish(job.table, plan.positions(), plan.storage()->signed_indices);
}

/// Without sorting: the caller promised that no row is named twice. Bad indices are looked for by a kernel of
/// its own, so that nothing is written where there is one.
template <class Path, class Bounds, class Exec, class Job, class Index, class IndexSpace, class Value,
          class Space>
ticket write_unsorted(const Exec& exec, const char* verb, const Job& job,
                      const array_ref<Index, IndexSpace>& indices, const array_ref<Value, Space>& values,
                      const rollback& ends) {
  using plain = std::remove_const_t<Index>;
  using unique = duplicates::assume_unique;
  using table_space = typename decltype(job.table)::memory_space;
  const std::int64_t n = indices.rows();
  launch_context<Exec> of(exec, verb);
  const std::string& label = of.label(Path::name);
  of.roll_back_by(ends);
  const auto labels = apply_labels::of<Job>(of, label);
  const auto apply_here = [&](const auto& ready, const auto& batch) {
    const kernels::index_rows<plain, Bounds> source{indices_for_kernels(of, indices), job.table.rows(),
                                                    Bounds::reports ? of.report() : report_writer{}};
    if constexpr (Bounds::reports)
      launch(exec, of.label(Path::name, "validate"), n, kernels::validate_indices<plain, Bounds>{source});
    using values_type = std::remove_const_t<std::remove_pointer_t<decltype(batch.data)>>;
    if constexpr (!is_host_exec<Exec> && Job::template replaces_by<values_type>)
      launch_gather(exec, label, batch, job.table, kernels::index_destinations<plain, Bounds>{source}, n);
    else
      launch_apply<unique>(exec, labels, ready, source, n, batch);
  };
  if (job.table.width() == 0 && !counts_rows_v<Job>) {
    look_at_bounds<Bounds>(of, indices, job.table.rows());
  } else if (n != 0) {
    if constexpr ((Path::reaches_table && !Path::sorts)) {
      require_direct_reach(verb, exec, values);
      of.reads_from(values);
      job.for_each_array([&](const auto& array) {
        require_direct_reach(verb, exec, array);
        of.touches(array);
      });
      apply_here(prepared<false>(of, label, job, values), values);
    } else {
      settle(of, label, job.table, values);
      job.for_each_array([&](const auto& array) { of.wait_for_host_access(array); });
      const auto ready = prepared<true>(of, label, job, values);
      if (is_refused(ready)) {
        look_at_bounds<Bounds>(of, indices, job.table.rows());  // a bad index is the graver finding
      } else if constexpr (!table_space::is_host_accessible) {
        apply_here(ready, upload_values(of, label, values));
      } else {
        auto* rows = of.template pinned<std::int64_t>(n);
        resolve_on_host<Bounds>(of, indices, job.table.rows(), rows);
        if (!of.host_found()) {
          if constexpr (Space::is_host_accessible) {
            const auto host = host_side(exec);
            launch_apply<unique>(host, labels, ready, kernels::listed_rows{rows}, n, values);
            host.fence(label);
          } else {
            drain_rows(of, label, ready, rows, n, values.data, values.row_stride(), values.width());
          }
        }
      }
    }
  }
  return of.finish(job.table, n, std::is_signed_v<plain>);
}

/// Entry of the three verbs: plan or indices, sorted or not.
template <verb What, class Asked, class Bounds, class Duplicates, class Chosen, path_kind... Without,
          class Exec, class Job, class Indices, class Value, class Space>
ticket update_rows(const Exec& exec, const Job& job, const Indices& indices,
                   const array_ref<Value, Space>& values, const rollback& ends = {}) {
  static constexpr const char* verb_name = name(What).data();
  if constexpr (is_plan<Indices>) {
    require_plan<Exec, Chosen>(verb_name, indices, job.table);
    require_shapes(verb_name, job.table, indices.positions(), values);
    return on_path<Asked, What, Space, Without...>(
        exec, job.table, indices.positions(), true, [&]<class Path>(Path) {
          return update_by_plan<Path, Duplicates>(exec, verb_name, job, indices, values, ends);
        });
  } else {
    const auto which = make_ref(indices);
    require_rank_one(verb_name, which);
    require_shapes(verb_name, job.table, which.rows(), values);
    require_a_row_to_clamp_to<Bounds>(verb_name, job.table, which.rows());
    return on_path<Asked, What, Space, Without...>(
        exec, job.table, which.rows(), Duplicates::needs_plan, [&]<class Path>(Path) {
          if constexpr (Duplicates::needs_plan || Path::sorts)
            return update_by_plan<Path, Duplicates>(
                exec, verb_name, job, plan_rows_of<Bounds>(exec, which, job.table.rows()), values, ends);
          else
            return write_unsorted<Path, Bounds>(exec, verb_name, job, which, values, ends);
        });
  }
}

}  // namespace ferry::detail
