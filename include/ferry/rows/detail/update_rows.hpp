// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_access.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/checked_rows.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/position_tiles.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/search_rows.hpp>
#include <ferry/rows/detail/write_staged.hpp>
#include <ferry/rows/detail/write_winners.hpp>
#include <ferry/runtime/detail/count_moves.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The path of scatter, scatter_add and step from their arguments to the kernels.
namespace ferry::detail {

template <class Path, class Duplicates, class Exec, class Access, class Job, class Value, class Space>
ticket update_by_plan(const Exec& exec, const char* verb, const Access& access, const Job& job,
                      const row_plan& plan, const array_ref<Value, Space>& values, const rollback& ends) {
  launch_context<Exec> call(exec, verb);
  if constexpr (splits_rows<Path>) call.refuse_capture(cooperative_needs_the_host);
  const std::string& label = call.label(Access::template path_label<Path>);
  call.use(plan.storage());
  call.roll_back_by(ends);
  if (plan.positions() == 0) {
  } else if (job.table.width() == 0 && !Job::counts_rows) {
    if constexpr (Duplicates::forbids) report_repeats(call, label, plan);
  } else {
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, values, job.table, bytes_of_rows(values, values.rows()));
    if constexpr (!by_host_alone<Path>) {
      require_direct_reach(verb, exec, values);
      call.reads_from(values);
      access.template touches<Path>(call, job);
      const auto ready = job.template prepare<false>(call, label, values);
      if constexpr (splits_rows<Path> && !is_host_exec<Exec>) {
        write_cooperative<Duplicates>(call, label, ready, plan, values);
      } else {
        const auto labels = update_labels::of<Job>(call, label);
        const auto rows = access.template located<Path>(call, ready, plan);
        const auto source = plan_source<Duplicates, sum_of<Job, Exec, Value>>(call, label, plan, values);
        launch_update<Duplicates>(exec, labels, rows.job, source, plan.positions(), values, rows.order);
      }
    } else {
      wait_for_host_access(call, label, job.table, values);
      job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
      const auto ready = job.template prepare<true>(call, label, values);
      if (!ready.is_refused()) write_staged<Duplicates>(call, label, ready, plan, values);
    }
  }
  return call.finish(job.table, plan.positions(), plan.storage()->signed_indices);
}

/// True if positions are added one by one, without sorting. A device does so inside its own memory only:
/// atomic additions to host memory cost more than a sort.
template <class Path, class Duplicates, class Exec, class TableSpace>
inline constexpr bool adds_by_index = (in_any_order<Duplicates> && !Path::sorts &&
                                       (is_host_exec<Exec> ? in_batch_order<Path>
                                                           : std::is_same_v<TableSpace, device_space>));

/// True if the kernel that writes may look for bad indices: on a device, for rows in its own memory and
/// indices that do not come over the link, because all its teams read them.
template <class Bounds, class Exec, class Access, class Job, class IndexSpace>
consteval bool may_check_in_place() {
  return !is_host_exec<Exec> && Bounds::reports && Access::is_strided && !Job::needs_whole_rows &&
         std::is_same_v<typename Access::memory_space, device_space> &&
         !std::is_same_v<IndexSpace, mapped_space>;
}

/// Without sorting: of distinct rows, in any order, or by a search. Nothing is written if an index is bad: a
/// kernel looks for bad ones first, or the one that writes.
template <class Path, class Bounds, class Duplicates, class Exec, class Access, class Job, class Index,
          class IndexSpace, class Value, class Space>
ticket update_by_index(const Exec& exec, const char* verb, const Access& access, const Job& job,
                       const array_ref<Index, IndexSpace>& indices, const array_ref<Value, Space>& values,
                       const rollback& ends) {
  using plain = std::remove_const_t<Index>;
  using table_space = typename Access::memory_space;
  const std::int64_t n = indices.rows();
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label(Access::template path_label<Path>);
  call.roll_back_by(ends);
  const auto labels = update_labels::of<Job>(call, label);
  const auto apply_here = [&](const auto& ready, const auto& batch) {
    const auto* const list = indices_for_kernels(call, indices);
    const kernels::index_rows<plain, Bounds> source{list, job.table.rows(),
                                                    Bounds::reports ? call.report() : report_writer{}};
    if constexpr (may_search<Path, Duplicates, Exec, Job, array_ref<Index, IndexSpace>>())
      return launch_search<Duplicates>(exec, label, ready, source, n, batch);
    using values_type = std::remove_const_t<std::remove_pointer_t<decltype(batch.data)>>;
    const auto write = [&]<class By>(const auto& located, const kernels::index_rows<plain, By>& items,
                                     const auto& order) {
      before_writing();
      if constexpr (Access::is_strided && !is_host_exec<Exec> && Job::template replaces_by<values_type>)
        launch_gather(exec, label, batch, job.table, kernels::index_destinations<plain, By>{items}, n, order);
      else
        launch_update<Duplicates>(exec, labels, located, items, n, batch, order);
    };
    using looked_rows = kernels::index_rows<plain, kernels::looked_at<Bounds>>;
    constexpr bool tiled = in_any_order<Duplicates> && !is_host_exec<Exec>;
    if constexpr (may_check_in_place<Bounds, Exec, Access, Job, IndexSpace>())
      if (job.table.width() != 0 && n <= execution_backend<Exec>::tuning(exec).positions_checked_in_place) {
        if constexpr (tiled)
          return write(ready, source,
                       schedule::position_tiles<kernels::index_rows<plain, Bounds>>{source, true});
        else if constexpr (Job::counts_rows)  // a kernel that counts reads the report of this one
          return write(ready, source, schedule::checked<kernels::index_rows<plain, Bounds>>{source, n});
        else  // the kernel has looked at the indices before it writes
          return write(ready, looked_rows{list, job.table.rows(), {}},
                       schedule::checked<kernels::index_rows<plain, Bounds>>{source, n});
      }
    const auto rows = access.located(call, label, ready, source, n);
    if constexpr (tiled)
      write(rows.job, source, schedule::position_tiles<kernels::index_rows<plain, Bounds>>{source, false});
    else
      write(rows.job, source, rows.order);
  };
  if (job.table.width() == 0 && !Job::counts_rows) {
    look_at_bounds<Bounds>(call, indices, job.table.rows());
  } else if (n != 0) {
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, values, job.table, bytes_of_rows(values, n));
    if constexpr (in_batch_order<Path>) {
      require_direct_reach(verb, exec, values);
      call.reads_from(values);
      access.template touches<Path>(call, job);
      apply_here(job.template prepare<false>(call, label, values), values);
    } else {
      wait_for_host_access(call, label, job.table, values);
      job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
      const auto ready = job.template prepare<true>(call, label, values);
      if (ready.is_refused()) {
        look_at_bounds<Bounds>(call, indices, job.table.rows());  // a bad index takes precedence
      } else if constexpr (!table_space::is_host_accessible) {
        apply_here(ready, upload_values(call, label, values));
      } else {
        auto* rows = call.template pinned<std::int64_t>(n);
        resolve_on_host<Bounds>(call, indices, job.table.rows(), rows);
        if (!call.host_found()) {
          if constexpr (Space::is_host_accessible) {
            const auto host = host_side(exec);
            launch_update<Duplicates>(host, labels, ready, kernels::listed_rows{rows}, n, values);
            host.fence(label);
          } else {
            drain_rows(call, label, ready, kernels::listed_rows{rows}, n, values.data, values.row_stride(),
                       values.width());
          }
        }
      }
    }
  }
  return call.finish(job.table, n, std::is_signed_v<plain>);
}

/// All rows in their order: no index is loaded and nothing is sorted, so path::ordered is path::direct.
template <class Path, class Exec, class Access, class Job, class Value, class Space>
ticket update_every_row(const Exec& exec, const char* verb, const Access& access, const Job& job,
                        const array_ref<Value, Space>& values, const rollback& ends) {
  using table_space = typename Access::memory_space;
  using each_once = duplicates::assume_unique;
  const std::int64_t n = job.table.rows();
  const kernels::consecutive_rows source{};
  launch_context<Exec> call(exec, verb);
  const std::string& label = call.label(Access::template path_label<Path>);
  call.roll_back_by(ends);
  if (n != 0 && (job.table.width() != 0 || Job::counts_rows)) {
    const auto labels = update_labels::of<Job>(call, label);
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, values, job.table, bytes_of_rows(values, n));
    if constexpr (!by_host_alone<Path>) {
      require_direct_reach(verb, exec, values);
      call.reads_from(values);
      access.template touches<Path>(call, job);
      const auto ready = job.template prepare<false>(call, label, values);
      const auto rows = access.located(call, label, ready, source, n);
      launch_update<each_once>(exec, labels, rows.job, source, n, values, rows.order);
    } else {
      wait_for_host_access(call, label, job.table, values);
      job.for_each_array([&](const auto& array) { call.wait_for_host_access(array); });
      const auto ready = job.template prepare<true>(call, label, values);
      if (ready.is_refused()) {
      } else if constexpr (!table_space::is_host_accessible && Space::is_host_accessible) {
        launch_update<each_once>(exec, labels, ready, source, n, upload_values(call, label, values));
      } else if constexpr (!table_space::is_host_accessible) {
        launch_update<each_once>(exec, labels, ready, source, n, values);
      } else if constexpr (Space::is_host_accessible) {
        const auto host = host_side(exec);
        launch_update<each_once>(host, labels, ready, source, n, values);
        host.fence(label);
      } else {
        drain_rows(call, label, ready, source, n, values.data, values.row_stride(), values.width());
      }
    }
  }
  return call.finish(job.table, n, true);
}

/// Runs on one path: over all rows, by a plan, made here if the policies need one, by a search, by winners,
/// or index by index. Under a plan sum_any_order is sum.
template <class Path, class Bounds, class Duplicates, class Exec, class Access, class Job, class Named,
          class Value, class Space>
ticket select_update(const Exec& exec, const char* verb, const Access& access, const Job& job,
                     const Named& named, const array_ref<Value, Space>& values, const rollback& ends) {
  using table_space = typename Access::memory_space;
  using ordered = std::conditional_t<in_any_order<Duplicates>, duplicates::sum, Duplicates>;
  constexpr bool adds = Access::is_strided && adds_by_index<Path, Duplicates, Exec, table_space>;
  if constexpr (Access::is_strided && !is_every_row<Named>) {
    if constexpr (may_search<Path, Duplicates, Exec, Job, Named>())
      if (is_searched<Duplicates>(exec, job, values, named.rows()))
        return update_by_index<Path, Bounds, Duplicates>(exec, verb, access, job, named, values, ends);
    if constexpr (!is_plan<Named> && may_write_winners<Path, Duplicates, Exec, Job, Value>())
      if (winners_beat_a_plan(exec, job, named.rows()))
        return update_by_winners<Path, Bounds, Duplicates>(exec, verb, job, named, values, ends);
  }
  if constexpr (is_every_row<Named>)
    return update_every_row<Path>(exec, verb, access, job, values, ends);
  else if constexpr (is_plan<Named>)
    return update_by_plan<Path, ordered>(exec, verb, access, job, named, values, ends);
  else if constexpr ((ordered::needs_plan && !adds) || Path::sorts)
    return update_by_plan<Path, ordered>(exec, verb, access, job,
                                         plan_rows_of<Bounds>(exec, named, job.table.rows()), values, ends);
  else
    return update_by_index<Path, Bounds, Duplicates>(exec, verb, access, job, named, values, ends);
}

/// Entry of the three verbs, after require_batch has checked their arguments: `job` says what happens to a
/// row, `access` where it lies. `named` comes from rows_named_by. path::automatic takes no path of `Without`.
/// `Duplicates` combines the values of a row; a job may have to refuse sum_any_order, which is then sum.
/// `verb` is what messages and labels call it.
template <verb What, class Chosen, class Duplicates, path_kind... Without, class Exec, class Access,
          class Job, class Named, class Value, class Space>
ticket update_rows(const Exec& exec, const Access& access, const Job& job, const Named& named,
                   const array_ref<Value, Space>& values, const rollback& ends = {},
                   const char* verb = name(What).data()) {
  if constexpr (in_any_order<Duplicates> && requires { job.adds_in_any_order(); })
    if (!job.adds_in_any_order())
      return update_rows<What, Chosen, duplicates::sum, Without...>(exec, access, job, named, values, ends,
                                                                    verb);
  using asked = typename Chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  constexpr bool planned = is_plan<Named> || is_every_row<Named> || Duplicates::needs_plan ||
                           (in_any_order<Duplicates> &&
                            !adds_by_index<path::direct, Duplicates, Exec, typename Access::memory_space>);
  constexpr path_set candidates = paths_to<Access, asked, What, Exec, Space, Without...>();
  // With a plan the direct path walks over mapped rows in order as well.
  constexpr bool in_order =
      is_every_row<Named> || (planned && std::is_same_v<typename Access::memory_space, mapped_space>);
  constexpr path_set paths =
      in_order && asked::chosen_at_run_time ? candidates.without(path_set{path_kind::ordered}) : candidates;
  const path_kind best = choose_path<paths, What, Space>(exec, job.table, positions_of(named), planned);
  if constexpr (paths.contains(path_kind::ordered))
    if (best == path_kind::ordered)
      return select_update<path::ordered, bounds_policy, Duplicates>(exec, verb, access, job, named, values,
                                                                     ends);
  if constexpr (paths.contains(path_kind::staged))
    if (best == path_kind::staged)
      return select_update<path::staged, bounds_policy, Duplicates>(exec, verb, access, job, named, values,
                                                                    ends);
  if constexpr (paths.contains(path_kind::cooperative))
    if (best == path_kind::cooperative)
      return select_update<path::cooperative, bounds_policy, Duplicates>(exec, verb, access, job, named,
                                                                         values, ends);
  if constexpr (paths.contains(path_kind::direct))
    if (best == path_kind::direct)
      return select_update<path::direct, bounds_policy, Duplicates>(exec, verb, access, job, named, values,
                                                                    ends);
  return {};  // not reached: the path is one of these
}

}  // namespace ferry::detail
