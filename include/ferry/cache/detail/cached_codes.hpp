// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/cache/detail/cached_addresser.hpp>
#include <ferry/cache/detail/row_cache.hpp>
#include <ferry/plan/row_plan.hpp>
#include <ferry/policy/duplicates.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>
#include <ferry/quantized/detail/encode_rows.hpp>
#include <ferry/quantized/detail/quantized_access.hpp>
#include <ferry/quantized/detail/scatter_quantized.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/launch_update.hpp>
#include <ferry/rows/detail/row_jobs.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// Quantized rows behind a cache, which kernels decode.
namespace ferry::kernels {

/// Codes and scales in host memory and in slots. A row is given by its packed location.
template <class Q>
struct codes_in_cache : coded_blocks<Q> {
  const std::byte* cold_codes = nullptr;
  const std::byte* hot_codes = nullptr;
  const typename Q::scale_type* cold_scales = nullptr;
  const typename Q::scale_type* hot_scales = nullptr;  ///< null: scales are not cached
  packed_locations locations{};
  readable_memory cold_memory, hot_memory;  ///< of the codes

  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const std::byte* codes_of(std::int64_t packed) const {
    const auto [row, slot] = locations.unpack(packed);
    return slot < 0 ? cold_codes + row * this->row_bytes : hot_codes + slot * this->row_bytes;
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION const typename Q::scale_type* scales_of(
      [[maybe_unused]] std::int64_t packed) const {
    if constexpr (has_scales<Q>) {
      const auto [row, slot] = locations.unpack(packed);
      return slot < 0 || hot_scales == nullptr ? cold_scales + row * this->blocks
                                               : hot_scales + slot * this->blocks;
    } else {
      return cold_scales;
    }
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION readable_memory memory_of(std::int64_t packed) const {
    return locations.unpack(packed).slot < 0 ? cold_memory : hot_memory;
  }
  [[nodiscard]] bool is_aligned(int bytes) const {
    return this->is_aligned_from(cold_codes, bytes) && this->is_aligned_from(hot_codes, bytes);
  }
  [[nodiscard]] std::int64_t units_of_row() const {
    return std::max(this->units_from(cold_codes), this->units_from(hot_codes));
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Such rows of one table.
template <class Q, class Space>
struct cached_codes {
  using value_type = const typename Q::code_type;

  kernels::codes_in_cache<Q> memory;
  /// Rows that begin at addresses with the alignment of both memories. Nothing lies there.
  array_ref<value_type, Space> codes;

  [[nodiscard]] kernels::codes_in_cache<Q> for_kernels() const { return memory; }
};

/// The rows of a table behind a cache. Scales: an array_ref, or no_scale.
template <class Q, class Space, class Scales>
cached_codes<Q, Space> rows_in_cache(const row_cache& cache,
                                     const array_ref<const typename Q::code_type, Space>& codes,
                                     [[maybe_unused]] const Scales& scales, float tensor_scale) {
  const cached_array& array = cache.arrays.front();
  cached_codes<Q, Space> rows{{}, codes};
  rows.codes.data = reinterpret_cast<const typename Q::code_type*>(array.cold | array.hot);
  auto& memory = rows.memory;
  memory.row_bytes = array.stride;
  memory.tensor_scale = tensor_scale;
  memory.cold_codes = reinterpret_cast<const std::byte*>(array.cold);
  memory.hot_codes = reinterpret_cast<const std::byte*>(array.hot);
  memory.locations = {cache.row_bits()};
  const auto rows_from = [&](std::uintptr_t begin, std::int64_t count) {
    return kernels::readable_memory{begin, begin + static_cast<std::uintptr_t>(count * memory.row_bytes)};
  };
  memory.cold_memory = rows_from(array.cold, codes.rows());
  memory.hot_memory = rows_from(array.hot, cache.memory.slots);
  if constexpr (has_scales<Q>) {
    memory.cold_scales = scales.data;
    memory.blocks = scales.width();
    if (const cached_array* const cached = cache.find(scales))
      memory.hot_scales = reinterpret_cast<const typename Q::scale_type*>(cached->hot);
  }
  return rows;
}

template <class Exec, class Q, class RowSpace, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const cached_codes<Q, RowSpace>& rows,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  launch_decode(exec, label, rows.memory, true, out, source, items, order);
}

/// scatter into quantized rows of `access`: the execution space encodes, then codes and scales are scattered
/// to the locations that one look-up has found.
template <class Q, class Duplicates, class Exec, class Access, class Value, class ValueSpace>
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
    const auto local_batch = local_values<path::direct>(call, values);
    const kernels::deciding_positions deciding{store.inverse, store.segment_begin, store.order,
                                               std::is_same_v<Duplicates, duplicates::last>};
    const auto locations = access.template find_rows<path::direct>(call, plan);
    using which =
        std::conditional_t<Duplicates::combines || Duplicates::forbids, duplicates::first, Duplicates>;
    const auto replace = [&]<class T, class Space>(const array_ref<T, Space>& array, const auto& rows) {
      const replace_job<T, Space> job(array);
      access.template touches<path::direct>(call, job);
      const auto located = access.template located_at<path::direct>(job, plan, locations);
      const auto batch = read_only(rows);
      auto source = plan_source<which, T>(call, label, plan, batch);
      source.repeats = repeats;
      launch_update<which>(exec, update_labels::of<replace_job<T, Space>>(call, label), located.job,
                           update_items{source, plan.positions(), batch}, located.order);
      access.end_update(call, label, located.job, plan.positions());
    };
    array_ref<typename Access::value_type, typename Access::memory_space> codes = weights;
    codes.extents[1] = weights.row_stride();
    const auto parts = [&] {
      if constexpr (Q::in_records)
        return rows_of_codes<Q>(codes, no_scale{}, 1.0f);
      else
        return rows_of_codes<Q>(codes, weights.scales, weights.tensor_scale);
    }();
    if constexpr (Duplicates::combines)
      visit_encoded(call, label, parts, combined_values<Duplicates>(call, label, plan, local_batch), deciding,
                    replace);
    else
      visit_encoded(call, label, parts, local_batch, deciding, replace);
  }
  return call.finish(weights, plan.positions(), plan.storage()->signed_indices);
}

}  // namespace ferry::detail
