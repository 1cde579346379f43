// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/encode_rows.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::detail {

/// The quantization of weights as a step takes them.
template <class Weights>
struct quantization_of {
  using type = quantization::rowwise_int8;
};
template <class Weights>
  requires requires { typename Weights::quantization; }
struct quantization_of<Weights> {
  using type = typename Weights::quantization;
};

/// The weights of a cache with the members of quantized_tensor that scatter uses.
template <class Weights>
struct cached_parts {
  using quantization = typename quantization_of<Weights>::type;

  const Weights& weights;

  [[nodiscard]] std::int64_t row_bytes() const { return weights.row_stride(); }
  [[nodiscard]] auto codes() const {
    array_ref<typename Weights::value_type, typename Weights::memory_space> rows = weights;
    rows.extents[1] = weights.row_stride();
    return rows;
  }
  [[nodiscard]] auto records() const { return codes(); }
  [[nodiscard]] const auto& scales() const { return weights.scales; }
  [[nodiscard]] std::int64_t blocks() const { return weights.scales.width(); }
  [[nodiscard]] float scale() const { return weights.tensor_scale; }
};

/// scatter into quantized rows of `access`: the execution space encodes, then codes and scales are scattered
/// to the places that one look-up has found.
template <class Duplicates, class Exec, class Access, class Value, class ValueSpace>
ticket scatter_codes(const Exec& exec, const Access& access, const row_plan& plan,
                     const array_ref<Value, ValueSpace>& values) {
  const auto& weights = access.table();
  launch_context<Exec> call(exec, "scatter");
  const std::string& label = call.label(Access::template path_label<path::direct>);
  call.use(plan.storage());
  [[maybe_unused]] const index_report* repeats = nullptr;
  if constexpr (Duplicates::forbids) repeats = report_repeats(call, label, plan).findings;
  if (values.size() != 0) {
    const plan_storage& store = *plan.storage();
    const auto near_batch = near_values<path::direct>(call, values);
    const kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                               std::is_same_v<Duplicates, duplicates::last>};
    const auto places = access.template find_rows<path::direct>(call, plan);
    using which =
        std::conditional_t<Duplicates::combines || Duplicates::forbids, duplicates::first, Duplicates>;
    const auto replace = [&]<class T, class Space>(const array_ref<T, Space>& array, const auto& rows) {
      const replace_job<T, Space> job(array);
      access.template touches<path::direct>(call, job);
      const auto located = access.template located_at<path::direct>(job, plan, places);
      const auto batch = read_only(rows);
      auto source = plan_source<which, T>(call, label, plan, batch);
      source.repeats = repeats;
      launch_update<which>(exec, update_labels::of<replace_job<T, Space>>(call, label), located.job, source,
                           plan.positions(), batch, located.order);
    };
    const cached_parts<std::remove_cvref_t<decltype(weights)>> parts{weights};
    if constexpr (Duplicates::combines)
      visit_encoded(call, label, parts, combined_values<Duplicates>(call, label, plan, near_batch), deciding,
                    replace);
    else
      visit_encoded(call, label, parts, near_batch, deciding, replace);
  }
  return call.finish(weights, plan.positions(), plan.storage()->signed_indices);
}

}  // namespace ferry::detail
