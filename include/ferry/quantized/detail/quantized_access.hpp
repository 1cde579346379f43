// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>
#include <ferry/quantized/detail/encode_rows.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantizations/rowwise_int8.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

/// Tables of quantized rows: their addresser, and the launches of kernels that decode and encode.
namespace ferry::detail {

/// Rows in records, which kernels decode: see row_access.hpp. Their numbers are the columns of `codes`.
template <class Byte, class Space>
struct record_rows {
  using value_type = Byte;
  array_ref<Byte, Space> codes;
};

/// Rows of codes and scales in arrays of this type, as kernels take them. Scales: an array_ref, or no_scale.
template <class Q, class Code, class Space, class Scales>
struct coded_rows {
  using value_type = Code;

  array_ref<Code, Space> codes;
  Scales scales;
  float tensor_scale;

  [[nodiscard]] kernels::coded_memory<Q> for_kernels() const {
    kernels::coded_memory<Q> table;
    table.codes = reinterpret_cast<const std::byte*>(codes.data);
    table.row_bytes = codes.row_stride() * static_cast<std::int64_t>(sizeof(Code));
    if constexpr (has_scales<Q>) {
      table.scales = scales.data;
      table.blocks = scales.width();
    }
    table.tensor_scale = tensor_scale;
    table.memory = memory_of_rows(codes);
    return table;
  }
};

/// Rows of codes and scales that kernels decode: `codes` says how those of a row lie, and placed(source), if
/// there is one, names the rows of a source as they are named in for_kernels().
template <class Rows>
concept CodedRows = requires(const Rows& rows) {
  rows.codes;
  typename decltype(rows.for_kernels())::quantization;
};

/// The scales of a table as an array_ref, or no_scale.
template <class Table>
auto scales_ref([[maybe_unused]] Table& table) {
  if constexpr (has_scale_array<typename std::remove_const_t<Table>::quantization>)
    return make_ref(table.scales());
  else
    return no_scale{};
}

/// Rows of codes and scales, or records, as launch_gather takes them. The columns of records are numbers.
template <class Q, class Code, class Space, class Scales>
auto rows_of_codes(const array_ref<Code, Space>& codes, const Scales& scales, float tensor_scale) {
  if constexpr (Q::in_records)
    return record_rows<Code, Space>{codes};
  else
    return coded_rows<Q, Code, Space, Scales>{codes, scales, tensor_scale};
}

/// out[source.position(k)] = the values of row source.row(k) for each item k. `table`: codes and scales as
/// decode_rows takes them; `over_link`: whether a device reads the codes over a link to the host.
template <class Exec, class Memory, class Out, class Space, class Source, class Order = schedule::flat>
void launch_decode(const Exec& exec, const std::string& label, const Memory& table, bool over_link,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  using kernel = kernels::decode_rows<Memory, Out, Source, is_host_exec<Exec>>;
  const bool in_parts = kernel::takes_parts(table, over_link);
  const std::int64_t units = kernel::units_of(table, out.width(), in_parts);
  launch(
      exec, label, order, items, units,
      kernel{table, out.width(), out.data, out.row_stride(), fast_divisor(units), items, source, in_parts});
}

/// As above, of rows in arrays.
template <class Exec, class Q, class Code, class RowSpace, class Scales, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label,
                   const coded_rows<Q, Code, RowSpace, Scales>& rows, const array_ref<Out, Space>& out,
                   const Source& source, std::int64_t items, const Order& order = {}) {
  launch_decode(exec, label, rows.for_kernels(), !std::is_same_v<RowSpace, device_space>, out, source, items,
                order);
}

/// Rows of records are decoded likewise. They begin `stride` bytes apart.
template <class Exec, class Out, class Space, class Source, class Order = schedule::flat>
void launch_decode_records(const Exec& exec, const std::string& label, const std::byte* records,
                           std::int64_t stride, bool over_link, const array_ref<Out, Space>& out,
                           const Source& source, std::int64_t items, const Order& order = {}) {
  kernels::coded_memory<quantization::rowwise_int8> table;
  table.codes = records;
  table.row_bytes = out.width();
  table.record_bytes = stride;
  launch_decode(exec, label, table, over_link, out, source, items, order);
}
template <class Exec, class Byte, class RowSpace, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label, const record_rows<Byte, RowSpace>& rows,
                   const array_ref<Out, Space>& out, const Source& source, std::int64_t items,
                   const Order& order = {}) {
  launch_decode_records(exec, label, rows.codes.data, rows.codes.row_stride(),
                        !std::is_same_v<RowSpace, device_space>, out, source, items, order);
}

/// Codes and scales of row p = those of values[p], for each position p that `source` names. Scales: an
/// array_ref, or no_scale.
template <class Q, class Exec, class Value, class Space, class Code, class CodeSpace, class Scales,
          class Source = kernels::identity>
void launch_encode(const Exec& exec, const std::string& label, const array_ref<Value, Space>& values,
                   const array_ref<Code, CodeSpace>& codes, [[maybe_unused]] const Scales& scales,
                   float tensor_scale, const Source& source = {}) {
  typename Q::scale_type* scale_data = nullptr;
  std::int64_t blocks = 1;
  if constexpr (has_scale_array<Q>) {
    scale_data = scales.data;
    blocks = scales.width();
  }
  const auto launch_tiles = [&]<class Tile>(Tile) {
    launch(exec, label, schedule::flat{}, values.rows(), 1,
           kernels::encode_rows<Q, std::remove_const_t<Value>, Source, Tile>{
               values.data, values.row_stride(), values.width(), reinterpret_cast<std::byte*>(codes.data),
               codes.row_stride() * static_cast<std::int64_t>(sizeof(Code)), scale_data, blocks, tensor_scale,
               values.rows(), source});
  };
  if constexpr (is_host_exec<Exec>)
    launch_tiles(kernels::host_tile{});
  else if (in_packets<kernels::wide_packed_tile::elements>(values))
    launch_tiles(kernels::wide_packed_tile{});
  else if (in_packets<kernels::packed_tile::elements>(values))
    launch_tiles(kernels::packed_tile{});
  else
    launch_tiles(kernels::single_tile{});
}

/// True if kernels alone move rows on this path.
template <class Path>
inline constexpr bool is_kernel_path = in_batch_order<Path> ||
                                       (Path::sorts && !splits_rows<Path>) || Path::chosen_at_run_time;

/// True if kernels of Exec access rows in Space where they lie, on this path. Rows in pageable memory, and
/// rows that host threads move, are copied to scratch.
template <class Path, class Exec, class Space>
inline constexpr bool is_read_in_place = is_near<Exec, Space> ||
                                         (is_kernel_path<Path> && !(Path::chosen_at_run_time &&
                                                                    std::is_same_v<Space, pageable_space>));

/// True if one kernel reads codes and scales and writes numbers, where they lie.
template <class Path, class Exec, class... Spaces>
inline constexpr bool decodes_at_once = is_kernel_path<Path> && (is_read_in_place<Path, Exec, Spaces> && ...);

/// The user's path for codes, scales or records in Space, between the table and scratch of the execution
/// space: path::direct if no host thread can take part.
template <class Path, class Exec, class Space>
using part_path = std::conditional_t<(splits_rows<Path> && !Space::is_host_accessible) ||
                                         (by_host_alone<Path> && !any_host_space<Space, near_space<Exec>>),
                                     path::direct, Path>;

/// Rows of codes and scales, which kernels of the execution space read and decode.
template <class Q, class Space, class ScaleSpace>
class table_access<quantized_tensor<Q, Space, ScaleSpace>>
    : public rows_of_kernels<const typename Q::code_type, Space> {
  using table_type = quantized_tensor<Q, Space, ScaleSpace>;
  static auto rows_in(const table_type& table) {
    if constexpr (Q::in_records)
      return rows_of_codes<Q>(numbers_of(table), no_scale{}, 1.0f);
    else
      return rows_of_codes<Q>(make_ref(table.codes()), scales_ref(table), table.scale());
  }

 public:
  using gathered = float;
  using checked = tensor<typename Q::code_type, Space>;

  table_access(const table_type& table, const char*)
      : numbers_(numbers_of(table)),
        rows_(rows_in(table)),
        row_bytes_(static_cast<std::int64_t>(table.row_bytes())) {}

  template <class Exec, class Chosen, bool = false>
  static consteval void require() {
    require_reach<Exec, tensor<std::byte, ScaleSpace>>();
  }
  template <class Out>
  static consteval void require_decodable() {
    require_quantizable<array_ref<Out, Space>>();
  }

  static auto extents_of(const table_type& table) { return numbers_of(table); }
  [[nodiscard]] const auto& table() const { return numbers_; }
  [[nodiscard]] std::int64_t row_bytes() const { return row_bytes_; }

  template <class Exec>
  const auto& rows(launch_context<Exec>& call) const {
    require_direct_reach(call.verb(), call.exec(), rows_.codes);
    call.reads_from(rows_.codes);
    if constexpr (has_scale_array<Q>) {
      require_direct_reach(call.verb(), call.exec(), rows_.scales);
      call.reads_from(rows_.scales);
    }
    return rows_;
  }
  template <class Exec, class Source>
  static const Source& places(launch_context<Exec>&, const Source& source, std::int64_t,
                              const std::shared_ptr<plan_storage>&) {
    return source;
  }

  /// True if host threads read the rows, and if they do so under path::automatic.
  static constexpr bool is_read_by_host = Space::is_host_accessible && ScaleSpace::is_host_accessible;
  static constexpr bool is_left_to_host = is_read_by_host && (std::is_same_v<Space, pageable_space> ||
                                                              std::is_same_v<ScaleSpace, pageable_space>);
  /// The rows for host threads, after the device's writes to them.
  template <class Exec>
  const auto& rows_of_host(launch_context<Exec>& call) const {
    call.wait_for_host_access(rows_.codes);
    if constexpr (has_scale_array<Q>) call.wait_for_host_access(rows_.scales);
    return rows_;
  }

 private:
  array_ref<const typename Q::code_type, Space> numbers_;
  decltype(rows_in(std::declval<const table_type&>())) rows_;
  std::int64_t row_bytes_;
};

}  // namespace ferry::detail
