// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/quantize_rows.hpp>
#include <ferry/quantized/detail/rowwise_int8_rows.hpp>
#include <ferry/quantized/scatter.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/update_rows.hpp>
#include <ferry/runtime/detail/launch_context.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// scatter into 8-bit rows of `access`: the execution space quantises, then records are scattered.
template <class Duplicates, class Exec, class Access, class Value, class ValueSpace>
ticket scatter_codes(const Exec& exec, const Access& access, const row_plan& plan,
                     const array_ref<Value, ValueSpace>& values) {
  const auto& codes = access.table();
  launch_context<Exec> call(exec, "scatter");
  const std::string& label = call.label(Access::template path_label<path::direct>);
  call.use(plan.storage());
  // Found here too, so that the ticket names the table's extents.
  if constexpr (Duplicates::forbids) report_repeats(call, label, plan);
  if (values.size() != 0) {
    const plan_storage& store = *plan.storage();
    const std::int64_t bytes = codes.row_stride();
    const auto near_batch = near_values<path::direct>(call, values);
    const auto records = near_rows<std::byte>(call, plan.positions(), bytes, "records");
    const kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                               std::is_same_v<Duplicates, duplicates::last>};
    if constexpr (Duplicates::combines)
      launch_quantize(exec, label, combined_values<Duplicates>(call, label, plan, near_batch), records.data,
                      bytes, deciding);
    else
      launch_quantize(exec, label, near_batch, records.data, bytes, deciding);
    using which = std::conditional_t<Duplicates::combines, duplicates::first, Duplicates>;
    auto whole = codes;
    whole.extents[1] = bytes;
    using job = replace_job<std::byte, typename Access::memory_space>;
    update_by_plan<path::direct, which>(exec, "scatter", access, job{whole}, plan, read_only(records), {})
        .drop();
  }
  return call.finish(codes, plan.positions(), plan.storage()->signed_indices);
}

}  // namespace ferry::detail
