// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/checks.hpp>
#include <ferry/plan/detail/index_kernels.hpp>
#include <ferry/plan/detail/row_source.hpp>
#include <ferry/policy/bounds.hpp>
#include <ferry/policy/path.hpp>
#include <ferry/quantized/detail/decode_rows.hpp>
#include <ferry/quantized/detail/encode_rows.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/detail/batch_rows.hpp>
#include <ferry/rows/detail/move_rows.hpp>
#include <ferry/rows/detail/row_access.hpp>
#include <ferry/rows/detail/schedule.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/launch_context.hpp>
#include <ferry/runtime/ticket.hpp>
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

/// Rows of codes and scales as kernels take them: arrays of these types, or records, whose numbers are the
/// columns of `codes`. Scales: an array_ref, or no_scale.
template <class Q, class Code, class Space, class Scales>
struct coded_rows {
  using value_type = Code;

  array_ref<Code, Space> codes;
  Scales scales;
  float tensor_scale;

  [[nodiscard]] kernels::coded_memory<Q> for_kernels() const {
    const std::int64_t stride = codes.row_stride() * static_cast<std::int64_t>(sizeof(Code));
    kernels::coded_memory<Q> table;
    table.codes = reinterpret_cast<const std::byte*>(codes.data);
    table.row_bytes = stride;
    table.tensor_scale = tensor_scale;
    if constexpr (Q::in_records) {
      table.row_bytes = codes.width();
      table.record_bytes = stride;
    } else {
      table.memory = memory_of_rows(codes);
      if constexpr (has_scales<Q>) {
        table.scales = scales.data;
        table.blocks = scales.width();
      }
    }
    return table;
  }
};
template <class Q, class Code, class Space, class Scales>
coded_rows<Q, Code, Space, Scales> rows_of_codes(const array_ref<Code, Space>& codes, const Scales& scales,
                                                 float tensor_scale) {
  return {codes, scales, tensor_scale};
}

/// Rows of codes and scales that kernels decode: `codes` says how those of a row lie.
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

/// As above, of a table's rows.
template <class Exec, class Q, class Code, class RowSpace, class Scales, class Out, class Space, class Source,
          class Order = schedule::flat>
void launch_gather(const Exec& exec, const std::string& label,
                   const coded_rows<Q, Code, RowSpace, Scales>& rows, const array_ref<Out, Space>& out,
                   const Source& source, std::int64_t items, const Order& order = {}) {
  launch_decode(exec, label, rows.for_kernels(), !std::is_same_v<RowSpace, device_space>, out, source, items,
                order);
}

/// Codes and scales of row p = those of values[p], for each position p that `source` names. Scales: an
/// array_ref, or no_scale.
template <class Q, class Exec, class Values, class Codes, class Source = kernels::identity>
void launch_encode(const Exec& exec, const std::string& label, const Values& values, const Codes& codes,
                   [[maybe_unused]] const auto& scales, float tensor_scale, const Source& source = {}) {
  typename Q::scale_type* scale_data = nullptr;
  std::int64_t blocks = 1;
  if constexpr (has_scale_array<Q>) {
    scale_data = scales.data;
    blocks = scales.width();
  }
  const auto launch_tiles = [&]<class Tile>(Tile) {
    launch(exec, label, schedule::flat{}, values.rows(), 1,
           kernels::encode_rows<Q, std::remove_const_t<typename Values::value_type>, Source, Tile>{
               values.data, values.row_stride(), values.width(), reinterpret_cast<std::byte*>(codes.data),
               codes.row_stride() * static_cast<std::int64_t>(sizeof(typename Codes::value_type)), scale_data,
               blocks, tensor_scale, values.rows(), source});
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
inline constexpr bool is_read_in_place = is_local<Exec, Space> ||
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

/// scatter, but for the checks of its arguments. `batch` comes from rows_named_by.
template <class Chosen, class Exec, class Table, class Named, class Value, class ValueSpace>
ticket scatter_numbers(const Exec& exec, Table& table, const Named& batch,
                       const array_ref<Value, ValueSpace>& values);

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
  static constexpr bool encodes_rows = true;
  template <class Path, class Exec, class OutSpace>
  static constexpr bool gathers_apart = !decodes_at_once<Path, Exec, OutSpace, Space, ScaleSpace>;

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
  /// Gathers codes and scales to scratch, on the user's path, and decodes them from there.
  template <class Path, class Bounds, class Exec, class Named, class Out, class OutSpace>
  void gather_apart(launch_context<Exec>& call, const Named& batch,
                    const array_ref<Out, OutSpace>& out) const {
    refuse_capture_of_staging<Path, Space, ScaleSpace, OutSpace>(call);
    const std::int64_t n = out.rows();
    const auto rows = resolved_rows<Bounds>(call, batch, numbers_.rows());
    const std::string& label = call.label(Path::name);
    const auto fetch = [&]<class T, class PartSpace>(const array_ref<const T, PartSpace>& part,
                                                     const char* name) {
      const auto scratch = near_rows<T>(call, n, part.width(), name);
      gather(call.exec(), part, rows, scratch, part_path<Path, Exec, PartSpace>{}, bounds::skip{}).drop();
      return scratch;
    };
    const auto decode = [&](const auto& codes, const auto& scales) {
      const auto coded = rows_of_codes<Q>(codes, scales, rows_.tensor_scale);
      const kernels::masked_identity source{rows.data};
      if constexpr (is_read_in_place<Path, Exec, OutSpace>) {
        require_direct_reach("gather", call.exec(), out);
        call.writes_to(out);
        launch_gather(call.exec(), label, coded, out, source, n);
      } else {
        const auto local_batch = near_rows<Out>(call, n, out.width(), "batch");
        launch_gather(call.exec(), label, coded, local_batch, source, n);
        auto positions = near_rows<std::int64_t>(call, n, 1, "positions");
        positions.rank = 1;
        launch(call.exec(), call.label(Path::name, "positions"), n,
               kernels::list_positions{rows.data, positions.data});
        gather(call.exec(), local_batch, positions, out, path::staged{}, bounds::skip{}).drop();
      }
    };
    if constexpr (Q::in_records) {
      auto records = rows_.codes;
      records.extents[1] = records.row_stride();
      auto codes = fetch(records, "codes");
      codes.extents[1] = out.width();
      decode(codes, no_scale{});
    } else if constexpr (has_scales<Q>) {
      const auto codes = fetch(rows_.codes, "codes");
      decode(codes, fetch(rows_.scales, "scales"));
    } else {
      decode(fetch(rows_.codes, "codes"), no_scale{});
    }
  }
  /// The execution space encodes, and codes and scales travel.
  template <class Chosen, class, class Exec, class Named, class Value, class ValueSpace>
  static ticket replace_rows(const Exec& exec, table_type& table, const Named& batch,
                             const array_ref<Value, ValueSpace>& values) {
    return scatter_numbers<Chosen>(exec, table, batch, values);
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
