// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/detail/finite.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// Reports values that are infinite or not a number. One thread for four packets of `Elements` values, which
/// lie apart, so that neighbouring threads read neighbouring packets.
template <class Value, int Elements>
struct find_nonfinite {
  static constexpr int at_once = 4;

  const Value* values;
  std::int64_t stride;
  detail::fast_divisor packets;  ///< of a row
  std::int64_t items;            ///< packets of all rows
  std::int64_t threads;
  ferry::detail::report_writer report;

  static std::int64_t bytes_each() { return static_cast<std::int64_t>(sizeof(Value)) * Elements * at_once; }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    packet<Value, Elements> part[at_once];
    for (int k = 0; k < at_once; ++k)
      if (const std::int64_t item = i + k * threads; item < items) {
        const std::int64_t row = packets.quotient(item);
        part[k] =
            load_packet<Value, Elements>(values + row * stride + (item - row * packets.divisor()) * Elements);
      }
    for (int k = 0; k < at_once; ++k)
      if (const std::int64_t item = i + k * threads; item < items)
        for (int e = 0; e < Elements; ++e)
          if (const Value value = part[k].value[e]; !detail::is_finite(value))
            report.nonfinite(item * Elements + e, detail::is_nan(value), detail::is_negative(value));
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// Looks for values that are infinite or not a number. Their positions count in row-major order.
template <class Exec, class Value, class Space>
void launch_find_nonfinite(const Exec& exec, const std::string& label, const array_ref<Value, Space>& values,
                           const report_writer& report) {
  using plain = std::remove_const_t<Value>;
  const auto look = [&]<int Elements>(std::integral_constant<int, Elements>, std::int64_t width) {
    const std::int64_t items = static_cast<std::int64_t>(values.size()) / Elements;
    const std::int64_t threads = (items + 3) / 4;
    launch(exec, label, threads,
           kernels::find_nonfinite<plain, Elements>{values.data, values.row_stride(),
                                                    fast_divisor(width / Elements), items, threads, report});
  };
  // A device's widest load. Rows without gaps are one row.
  constexpr int elements = is_host_exec<Exec> || sizeof(plain) > 8 ? 1 : static_cast<int>(16 / sizeof(plain));
  const auto size = static_cast<std::int64_t>(values.size());
  if (size == 0) return;
  const bool dense = values.row_stride() == values.width() || values.rows() == 1;
  if (dense && size % elements == 0 && reinterpret_cast<std::uintptr_t>(values.data) % 16 == 0)
    look(std::integral_constant<int, elements>{}, size);
  else if (in_packets<elements>(values))
    look(std::integral_constant<int, elements>{}, values.width());
  else
    look(std::integral_constant<int, 1>{}, values.width());
}

}  // namespace ferry::detail
