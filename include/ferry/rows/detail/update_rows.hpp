// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/make_plan.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/choose_path.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/position_tiles.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/search_rows.hpp>
#include <ferry/rows/detail/write_staged.hpp>
#include <ferry/rows/detail/write_winners.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

/// The path of scatter, scatter_add and step from their arguments to the kernels.
namespace ferry::detail {

/// The ways to write a batch by kernels or host threads of one path.
enum class algorithm : unsigned char {
  planned,   ///< by a plan, made here if the batch has none
  in_place,  ///< position by position, or all rows of the table
  searched,  ///< a small batch by one kernel, see search_rows
  winners    ///< by a hash table of the positions that replace their rows, see winner_table
};

/// True if a batch that is neither searched nor has winners is sorted. In any order positions are added one
/// by one, by a device inside its own memory only: atomic additions to host memory cost more than a sort.
template <class Path, class Duplicates, class Update>
consteval bool needs_plan() {
  using access = typename Update::access_type;
  using batch = typename Update::batch_type;
  constexpr bool adds_by_position = in_any_order<Duplicates> && access::is_strided &&
                                    (is_host_exec<typename Update::exec_type>
                                         ? in_batch_order<Path>
                                         : std::is_same_v<typename access::memory_space, device_space>);
  constexpr bool sorts = in_any_order<Duplicates> || Duplicates::needs_plan;
  return !is_every_row<batch> && (is_plan<batch> || Path::sorts || (sorts && !adds_by_position));
}

template <class Path, class Duplicates, class Update>
algorithm choose_algorithm([[maybe_unused]] const Update& update) {
  if constexpr (may_search<Path, Duplicates, Update>())
    if (is_searched<Duplicates>(update)) return algorithm::searched;
  if constexpr (may_write_winners<Path, Duplicates, Update>())
    if (winners_beat_a_plan(update)) return algorithm::winners;
  return needs_plan<Path, Duplicates, Update>() ? algorithm::planned : algorithm::in_place;
}

template <class Path, class Bounds, class Duplicates, class Update>
ticket update_by_search(const Update& update) {
  const auto& table = update.job.table;
  launch_context<typename Update::exec_type> call(update.exec, update.verb);
  const std::string& label = call.label(Path::name);
  call.roll_back_by(update.undo);
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, update.values, table, bytes_of_rows(update.values, update.values.rows()));
  const auto& job = prepare_job<Path>(call, label, update);
  launch_search<Duplicates>(call.exec(), label, job,
                            rows_for_kernels<Bounds>(call, update.batch, table.rows()), update.values);
  return call.finish(table, update.batch.rows(), has_signed_indices(update.batch));
}

template <class Path, class Duplicates, class Update>
ticket update_by_plan(const Update& update, const row_plan& plan) {
  using exec = typename Update::exec_type;
  using job_type = typename Update::job_type;
  const auto& table = update.job.table;
  const auto& values = update.values;
  launch_context<exec> call(update.exec, update.verb);
  if constexpr (splits_rows<Path>) call.refuse_capture(cooperative_needs_the_host);
  const std::string& label = call.label(Update::access_type::template path_label<Path>);
  call.use(plan.storage());
  call.roll_back_by(update.undo);
  const auto finish = [&] { return call.finish(table, plan.positions(), plan.storage()->signed_indices); };
  if (plan.positions() == 0) return finish();
  if (table.width() == 0 && !job_type::counts_rows) {
    if constexpr (Duplicates::forbids) report_repeats(call, label, plan);
    return finish();
  }
  [[maybe_unused]] const auto traffic =
      count_transfer<Path>(call, values, table, bytes_of_rows(values, values.rows()));
  const auto& job = prepare_job<Path>(call, label, update);
  if constexpr (by_host_alone<Path>) {
    if (!job.is_refused()) write_staged<Duplicates>(call, label, job, plan, values);
  } else if constexpr (splits_rows<Path> && !is_host_exec<exec>) {
    write_cooperative<Duplicates>(call, label, job, plan, values);
  } else {
    const auto labels = update_labels::of<job_type>(call, label);
    const auto rows = update.access.template located<Path>(call, job, plan);
    using sum = sum_of<job_type, exec, typename Update::values_type::value_type>;
    const auto source = plan_source<Duplicates, sum>(call, label, plan, values);
    launch_update<Duplicates>(call.exec(), labels, rows.job, update_items{source, plan.positions(), values},
                              update.limited(rows.order));
    update.access.end_update(call, label, rows.job, plan.positions());
  }
  return finish();
}

/// Writes the rows of a batch, or all rows, by kernels that reach table and values. Nothing is written if an
/// index is bad: another kernel has looked for bad ones.
template <class Bounds, class Duplicates, class Update, class Job, class Values>
void write_in_place(launch_context<typename Update::exec_type>& call, const std::string& label,
                    const Update& update, const Job& job, const Values& values) {
  using exec = typename Update::exec_type;
  using values_type = std::remove_const_t<typename Values::value_type>;
  constexpr bool on_device = !is_host_exec<exec>;
  const std::int64_t n = update.batch.rows();
  const auto labels = update_labels::of<Job>(call, label);
  const auto source = rows_for_kernels<Bounds>(call, update.batch, job.table.rows());
  const auto rows = update.access.located(call, label, job, source, n);
  if constexpr (on_device && in_any_order<Duplicates>) {
    launch_update<Duplicates>(call.exec(), labels, rows.job, update_items{source, n, values},
                              schedule::position_tiles{});
  } else if constexpr (on_device && Update::access_type::is_strided &&
                       Job::template replaces_by<values_type>) {
    before_writing();
    using destinations = kernels::index_destinations<typename decltype(source)::index_type, Bounds>;
    launch_gather(call.exec(), label, values, job.table, destinations{source}, n, update.limited(rows.order));
  } else {
    launch_update<Duplicates>(call.exec(), labels, rows.job, update_items{source, n, values},
                              update.limited(rows.order));
  }
  update.access.end_update(call, label, rows.job, n);
}

/// Writes the rows of a batch, or all rows, of a table in host memory by the host's threads.
template <class Bounds, class Duplicates, class Update, class Job>
void write_on_host(launch_context<typename Update::exec_type>& call, const std::string& label,
                   const Update& update, const Job& job) {
  const auto rows = rows_for_host<Bounds>(call, update.batch, job.table.rows());
  if (call.host_found()) return;
  if constexpr (Update::values_type::memory_space::is_host_accessible) {
    const auto host = host_side(call.exec());
    const auto labels = update_labels::of<Job>(call, label);
    launch_update<Duplicates>(host, labels, job, update_items{rows, update.batch.rows(), update.values});
    host.fence(label);
  } else {
    drain_rows(call, label, job, rows, update.values);
  }
}

/// Without sorting: all rows, distinct rows, or in any order.
template <class Path, class Bounds, class Duplicates, class Update>
ticket update_in_place(const Update& update) {
  using job_type = typename Update::job_type;
  const auto& table = update.job.table;
  const auto& values = update.values;
  const std::int64_t n = update.batch.rows();
  launch_context<typename Update::exec_type> call(update.exec, update.verb);
  const std::string& label = call.label(Update::access_type::template path_label<Path>);
  call.roll_back_by(update.undo);
  const auto finish = [&] { return call.finish(table, n, has_signed_indices(update.batch)); };
  if (n == 0) return finish();
  if (table.width() == 0 && !job_type::counts_rows) {
    look_at_bounds<Bounds>(call, update.batch, table.rows());
    return finish();
  }
  [[maybe_unused]] const auto traffic = count_transfer<Path>(call, values, table, bytes_of_rows(values, n));
  const auto& job = prepare_job<Path>(call, label, update);
  if constexpr (!by_host_alone<Path>)
    write_in_place<Bounds, Duplicates>(call, label, update, job, values);
  else if (job.is_refused())
    look_at_bounds<Bounds>(call, update.batch, table.rows());  // a bad index takes precedence
  else if constexpr (!Update::access_type::memory_space::is_host_accessible)
    write_in_place<Bounds, Duplicates>(call, label, update, job, values_on_device(call, label, values));
  else
    write_on_host<Bounds, Duplicates>(call, label, update, job);
  return finish();
}

/// Entry of the three verbs, after require_batch has checked their arguments. path::automatic takes no path
/// of `Without`. `Duplicates` combines the values of a row; a job may have to refuse sum_any_order, which is
/// then sum, as it is under a plan.
template <verb What, class Chosen, class Duplicates, path_kind... Without, class Update>
ticket update_rows(Update update) {
  if (update.verb == nullptr) update.verb = name(What).data();
  if constexpr (in_any_order<Duplicates> && requires { update.job.adds_in_any_order(); })
    if (!update.job.adds_in_any_order())
      return update_rows<What, Chosen, duplicates::sum, Without...>(update);
  using access_type = typename Update::access_type;
  using batch_type = typename Update::batch_type;
  using exec_type = typename Update::exec_type;
  using asked = typename Chosen::template get<path_category, path::automatic>;
  using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
  using values_space = typename Update::values_type::memory_space;
  using ordered = std::conditional_t<in_any_order<Duplicates>, duplicates::sum, Duplicates>;
  constexpr bool planned = is_every_row<batch_type> || needs_plan<path::direct, Duplicates, Update>();
  constexpr path_set candidates = paths_to<access_type, asked, What, exec_type, values_space, Without...>();
  // With a plan the direct path walks over mapped rows in order as well, and all rows are in order.
  constexpr bool in_order = is_every_row<batch_type> ||
                            (planned && std::is_same_v<typename access_type::memory_space, mapped_space>);
  constexpr path_set paths =
      in_order && asked::chosen_at_run_time ? candidates.without(path_set{path_kind::ordered}) : candidates;
  const auto& batch = update.batch;
  const auto& table = update.job.table;
  const path_kind best =
      choose_path<paths, What, values_space>(update.exec, table, positions_of(batch), planned);
  const auto& limited =
      update.template within<typename Chosen::template get<occupancy_category, occupancy::full>>();
  return on_path<paths>(best, [&]<class Path>(Path) {
    [[maybe_unused]] const algorithm chosen = choose_algorithm<Path, Duplicates>(update);
    if constexpr (may_search<Path, Duplicates, Update>())
      if (chosen == algorithm::searched) return update_by_search<Path, bounds_policy, Duplicates>(update);
    if constexpr (may_write_winners<Path, Duplicates, Update>())
      if (chosen == algorithm::winners) return update_by_winners<Path, bounds_policy, Duplicates>(update);
    if constexpr (is_plan<batch_type>)
      return update_by_plan<Path, ordered>(limited, batch);
    else if constexpr (is_every_row<batch_type>)
      return update_in_place<Path, bounds_policy, duplicates::assume_unique>(limited);
    else if constexpr (needs_plan<Path, Duplicates, Update>())
      return update_by_plan<Path, ordered>(limited,
                                           plan_rows_of<bounds_policy>(update.exec, batch, table.rows()));
    else
      return update_in_place<Path, bounds_policy, Duplicates>(limited);
  });
}

}  // namespace ferry::detail
