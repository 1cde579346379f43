// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cache_use.hpp>
#include <ferry/cache/detail/update_cached.hpp>
#include <ferry/int8/detail/quantize_rows.hpp>
#include <ferry/int8/detail/rowwise_int8_rows.hpp>
#include <ferry/int8/scatter.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// scatter into a cached table of 8-bit rows: the execution space quantises, then records are scattered.
/// `codes`: the table as codes_of describes it.
template <class Duplicates, class Exec, class Space, class Value, class ValueSpace>
ticket scatter_codes(const Exec& exec, row_cache& cache, const array_ref<std::byte, Space>& codes,
                     const row_plan& plan, const array_ref<Value, ValueSpace>& values) {
  require_foreign("scatter", cache, values);
  launch_context<Exec> of(exec, "scatter");
  const std::string& label = of.label("cached");
  of.use(plan.storage());
  if constexpr (Duplicates::forbids) report_repeats(of, label, plan);  // names the table's own extents
  if (values.size() != 0) {
    const plan_storage& store = *plan.storage();
    const std::int64_t bytes = codes.row_stride();
    const auto here = near_values<path::direct>(of, values);
    const auto records = near_rows<std::byte>(of, plan.positions(), bytes, "records");
    const kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                               std::is_same_v<Duplicates, duplicates::last>};
    if constexpr (Duplicates::combines)
      launch_quantize(exec, label, combined_values<Duplicates>(of, label, plan, here), records.data, bytes,
                      deciding);
    else
      launch_quantize(exec, label, here, records.data, bytes, deciding);
    using which = std::conditional_t<Duplicates::combines, duplicates::first, Duplicates>;
    auto whole = codes;
    whole.extents[1] = bytes;
    update_cached_by_plan<which>(exec, "scatter", cache, replace_job<std::byte, Space>{whole}, plan,
                                 read_only(records), {})
        .drop();
  }
  return of.finish(codes, plan.positions(), plan.storage()->signed_indices);
}

}  // namespace ferry::detail
