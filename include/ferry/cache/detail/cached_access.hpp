// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/cached_table.hpp>
#include <ferry/cache/detail/backing_table.hpp>
#include <ferry/cache/detail/cached_addresser.hpp>
#include <ferry/cache/detail/cached_codes.hpp>
#include <ferry/cache/detail/find_rows.hpp>
#include <ferry/cache/detail/make_cache.hpp>
#include <ferry/cache/detail/resolve_rows.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/cache/detail/stage_rows.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/occupancy.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/coded_weights.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/addressed_rows.hpp>
#include <ferry/rows/detail/gather_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry::kernels {

/// Item k of a source, at the location that was found for it.
template <class Source>
struct located_items {
  const std::int64_t* locations = nullptr;
  Source source;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t item, bool) const { return locations[item]; }
  KOKKOS_FUNCTION std::int64_t position(std::int64_t item) const { return source.position(item); }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The table of a cache as its verbs take it: an array_ref, or the codes with what belongs to them.
template <class Table, class Policy>
auto cached_weights(const cached_table<Table, Policy>& table) {
  if constexpr (is_coded<Table>) {
    const auto content = table.record_state();
    return coded_weights<typename Table::quantization, typename Table::memory_space,
                         std::remove_const_t<decltype(content.scales)>>{table.ref(), content.scales,
                                                                        content.tensor_scale};
  } else {
    return table.ref();
  }
}

/// Rows of a cached table: a small kernel looks up the location of each item's row, in device memory or in
/// host memory; locations address both. Holds the cache until the verb is enqueued.
template <class Table, class Policy>
class table_access<cached_table<Table, Policy>> {
  using backing = backing_table<Table>;

 public:
  using value_type = typename backing::value_type;
  using memory_space = typename backing::memory_space;
  using checked = typename backing::checked;
  using added_to = typename backing::added_to;
  using gathered = typename backing::gathered;
  using table_type = decltype(cached_weights(std::declval<const cached_table<Table, Policy>&>()));
  static constexpr bool is_strided = false;
  static constexpr bool encodes_rows = is_quantized<Table>;
  static constexpr bool may_need_host = std::is_same_v<memory_space, pageable_space> && !encodes_rows;
  template <class Path, class Exec, class OutSpace>
  static constexpr bool gathers_apart = by_host_alone<Path>;
  template <class OutSpace>
  static constexpr bool gathers_once = std::is_same_v<OutSpace, device_space>;
  template <class Path>
  static constexpr std::string_view path_label = "cached";

  table_access(const cached_table<Table, Policy>& table, const char* verb)
      : cache_(table.core()), use_(cache_, verb), table_(cached_weights(table)) {}

  template <class Exec, class Chosen, bool Gathers = false>
  static consteval void require() {
    static_assert(!Chosen::template names<occupancy_category>,
                  "ferry: verbs on a cached_table take no occupancy policy; resolve does.");
    require_cached_verb<Exec, Chosen, Gathers && !is_quantized<Table>>();
  }
  static consteval void require_writable() { detail::require_writable<Table>(); }
  template <class Out>
  static consteval void require_decodable() {
    if constexpr (is_quantized<Table>)
      require_quantizable<array_ref<Out, memory_space>>();
    else
      require_convertible<Out, gathered>();
  }

  static auto extents_of(const cached_table<Table, Policy>& table) { return table.ref(); }
  [[nodiscard]] const table_type& table() const { return table_; }
  [[nodiscard]] std::int64_t row_bytes() const {
    if constexpr (is_coded<Table>)
      return cache_.row_bytes;
    else
      return bytes_of_rows(table_, 1);
  }
  template <class... Operands>
  void require_foreign(const char* verb, const Operands&... operands) const {
    detail::require_foreign(verb, cache_, operands...);
  }

  template <class Exec>
  auto rows(launch_context<Exec>& call) const {
    require_direct_reach(call.verb(), call.exec(), table_);
    call.reads_from(table_);
    if constexpr (is_coded<Table>) {
      if constexpr (has_scales<typename Table::quantization>) {
        require_direct_reach(call.verb(), call.exec(), table_.scales);
        call.reads_from(table_.scales);
      }
      return rows_in_cache<typename Table::quantization>(cache_, read_only(table_), table_.scales,
                                                         table_.tensor_scale);
    } else {
      kernels::location_rule rule{};
      const auto virtual_rows = virtual_table(table_, cache_.arrays.front(), rule);
      if constexpr (is_codes<Table>)
        return rows_of_codes<typename Table::quantization>(virtual_rows, no_scale{}, 1.0f);
      else
        return virtual_rows;
    }
  }
  /// Kernels that decode need the row and the slot, because scales lie apart.
  template <class Exec, class Source>
  auto places(launch_context<Exec>& call, const Source& source, std::int64_t n,
              const std::shared_ptr<plan_storage>& plan) const {
    kernels::location_rule rule = packing_of(cache_);
    if constexpr (!is_coded<Table>) virtual_table(table_, cache_.arrays.front(), rule);
    const auto* locations = find_items(call, source, {n, rule, false}, plan);
    if constexpr (requires { Source::in_order; })
      return kernels::listed_rows{locations};
    else
      return kernels::located_items<Source>{locations, source};
  }

  template <class Path, class Exec, class Job>
  void touches(launch_context<Exec>& call, const Job& job) const {
    touch_arrays<Path>(call, job);
    const auto add = [&](const auto& array) {
      using array_type = std::remove_cvref_t<decltype(array)>;
      if constexpr (!std::is_same_v<typename array_type::memory_space, device_space>)
        add_backing_array(call, cache_, array);
    };
    job.for_each_row_array(add);
    if constexpr (Job::counts_rows) add(job.arrays.row_steps);
  }
  /// Few threads of a device write to host memory: on path::direct they take those items from lists.
  template <class Path, class Exec, class Job>
  auto located(launch_context<Exec>& call, const Job& job, const row_plan& plan) const {
    return located_at<Path>(job, plan, find_rows<Path>(call, plan));
  }
  /// Locations of the rows of a plan, for jobs on several arrays of the cache.
  struct plan_locations {
    const std::int64_t* packed;
    kernels::missed_items far_items;
  };
  template <class Path, class Exec>
  plan_locations find_rows(launch_context<Exec>& call, const row_plan& plan) const {
    const plan_storage& store = *plan.storage();
    const kernels::counted_segments rows{store.unique_rows, store.segment_begin, store.unique_count};
    plan_locations locations{};
    if constexpr (!is_host_exec<Exec> && in_batch_order<Path>)
      locations.far_items = empty_lists(call, plan.positions());
    locations.packed = find_items(
        call, rows, {plan.positions(), packing_of(cache_), true, locations.far_items}, plan.storage());
    return locations;
  }
  template <class Path, class Job>
  auto located_at(const Job& job, const row_plan& plan, const plan_locations& locations) const {
    const auto addressed = addressed_by(job, locations.packed, locations.far_items);
    if constexpr (in_batch_order<Path>)
      return located_job{addressed, schedule::hits_and_misses{}};
    else
      return located_job{addressed, plan_order<Path, memory_space>(plan)};
  }
  /// The kernel that looks rows up reports bad indices.
  template <class Exec, class Job, class Source>
  auto located(launch_context<Exec>& call, const std::string&, const Job& job, const Source& source,
               std::int64_t n) const {
    const auto* packed = find_items(call, source, {n, packing_of(cache_), true}, nullptr);
    return located_job{addressed_by(job, packed, {}), schedule::flat{}};
  }

  template <class Exec, class Job>
  void end_update(launch_context<Exec>& call, const std::string& label, const Job& job,
                  std::int64_t n) const {
    if constexpr (keeps_order<Policy>)
      if (cache_.writes_through) write_through(call, cache_, label, job, n);
  }

  /// scatter into quantized rows.
  template <class Chosen, class Duplicates, class Exec, class Named, class Value, class ValueSpace>
  ticket replace_rows(const Exec& exec, const auto&, const Named& batch,
                      const array_ref<Value, ValueSpace>& values) const {
    using bounds_policy = typename Chosen::template get<bounds_category, bounds::check>;
    if constexpr (is_plan<Named>) {
      return scatter_codes<typename Table::quantization, Duplicates>(exec, *this, batch, values);
    } else {
      if (execution_backend<Exec>::capturing(exec))
        launch_context<Exec>(exec, "scatter")
            .refuse_capture(
                "but indices into quantized rows of a cached_table are sorted, also distinct ones, which a graph can't repeat; make the plan before the capture");
      return scatter_codes<typename Table::quantization, Duplicates>(
          exec, *this, plan_rows_of<bounds_policy>(exec, batch, table_.rows()), values);
    }
  }

  /// True if the device does not reach the table, so that host threads bring its rows.
  [[nodiscard]] bool needs_host() const { return cache_.stage != nullptr; }
  /// Host threads bring the rows of host memory.
  template <class Path, class Bounds, class Exec, class Named, class Out, class OutSpace>
  void gather_apart(launch_context<Exec>& call, const Named& batch,
                    const array_ref<Out, OutSpace>& out) const {
    [[maybe_unused]] const auto traffic =
        count_transfer<Path>(call, table_, out, positions_of(batch) * row_bytes());
    call.refuse_capture("but host threads bring rows of this table, which a graph can't repeat");
    require_direct_reach(call.verb(), call.exec(), out);
    call.writes_to(out);
    const std::int64_t n = positions_of(batch);
    const auto source = rows_for_kernels<Bounds>(call, batch, table_.rows());
    const auto* packed = find_items(call, source, {n, packing_of(cache_), false}, plan_of(batch));
    detail::gather_by_host(call, cache_, read_only(table_), packed, n, out);
  }

 private:
  /// The locations of a batch's items. Under cache::lru their rows are brought first, unless these are all.
  template <class Exec, class Source>
  const std::int64_t* find_items(launch_context<Exec>& call, const Source& source, row_search search,
                                 const std::shared_ptr<plan_storage>& plan) const {
    const auto items = counted(source, search.items);
    if constexpr (keeps_order<Policy> && !std::is_same_v<Source, kernels::consecutive_rows>) {
      const auto rows = [&] {
        if constexpr (kernels::may_repeat_rows<std::remove_const_t<decltype(items)>>)
          return source;
        else
          return items;
      }();
      resolve_rows(call, cache_, rows, batch_lines{search.items, false}, static_cast<std::int64_t*>(nullptr),
                   true, most_blocks<occupancy::full>(call.exec()));
      search.is_tallied = true;
    }
    return detail::find_rows(call, cache_, items, search, plan);
  }
  template <class Job>
  auto addressed_by(const Job& job, const std::int64_t* packed,
                    const kernels::missed_items& far_items) const {
    const auto addresser = address_slots(cache_, job, packed, far_items);
    return addressed_job<Job, std::remove_const_t<decltype(addresser)>>(job, addresser);
  }

  row_cache& cache_;
  cache_use use_;
  table_type table_;
};

}  // namespace ferry::detail
