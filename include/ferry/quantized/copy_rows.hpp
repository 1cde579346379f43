// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/copy_rows.hpp>
#include <ferry/runtime/ticket.hpp>

#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// Throws invalid_argument unless both tables have one factor.
void require_equal_factors(const untyped_array& source, float source_factor, const untyped_array& target,
                           float target_factor);

template <class Table>
inline constexpr bool holds_codes = is_quantized<std::remove_cvref_t<Table>>;

template <class Source, class Target>
auto pair_arrays(const row_tables<Source>& sources, const row_tables<Target>& targets) {
  return paired_tables{sources.span(), targets.span()};
}

}  // namespace detail

/// copy_rows between tables of one quantization and width: codes and scales move as they are. Policies and
/// errors are those of arrays; throws invalid_argument also for tables whose factors differ.
template <class Exec, class Source, class SourceRows, class Target, class TargetRows, class... Policies>
  requires(
      (detail::holds_codes<Source> ||
       detail::holds_codes<Target>)&&detail::Fits<detail::copy_rows_arguments, const Exec&, const Source&,
                                                  const SourceRows&, Target, const TargetRows&, Policies...>)
[[nodiscard]] ticket copy_rows(const Exec& exec, const Source& source, const SourceRows& source_rows,
                               Target&& target, const TargetRows& target_rows, Policies...) {
  using choice = detail::row_copy_policies<Policies...>;
  using target_table = std::remove_cvref_t<Target>;
  detail::require_row_copy<Exec, choice, SourceRows, TargetRows>();
  constexpr bool alike = [] {
    if constexpr (detail::holds_codes<Source> && detail::holds_codes<Target>)
      return std::is_same_v<typename Source::quantization, typename target_table::quantization>;
    else
      return false;
  }();
  static_assert(
      alike,
      "ferry: copy_rows moves codes and scales as they are, so both tables are quantized_tensors of one quantization; quantize and dequantize convert rows.");
  if constexpr (alike) {
    using quantization = typename target_table::quantization;
    const detail::row_tables codes(detail::stored(source));
    const detail::row_tables target_codes(detail::stored(target));
    const auto pairs = detail::pair_arrays(codes, target_codes);
    if constexpr (quantization::has_tensor_scale)
      detail::require_equal_factors(make_ref(detail::stored(source)), source.scale(),
                                    make_ref(detail::stored(target)), target.scale());
    detail::require_moved_elements<Exec, choice>(std::type_identity<std::remove_const_t<decltype(pairs)>>{});
    const auto& reads = detail::listed_rows_of(source_rows);
    const auto& writes = detail::listed_rows_of(target_rows);
    if constexpr (detail::has_scale_array<quantization>) {
      const detail::row_tables scales(source.scales());
      const detail::row_tables target_scales(target.scales());
      const auto scale_pairs = detail::pair_arrays(scales, target_scales);
      detail::require_moved_elements<Exec, choice>(
          std::type_identity<std::remove_const_t<decltype(scale_pairs)>>{});
      return detail::copy_row_arrays<choice>(exec, reads, writes, pairs, scale_pairs);
    } else {
      return detail::copy_row_arrays<choice>(exec, reads, writes, pairs);
    }
  } else {
    return {};
  }
}

}  // namespace ferry
