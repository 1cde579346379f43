// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/distributed/communicator/detail/collective.hpp>
#include <ferry/distributed/sharded/copy.hpp>
#include <ferry/distributed/sharded/detail/gather_in_parts.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/gather.hpp>
#include <ferry/distributed/sharded/sharded_plan.hpp>
#include <ferry/distributed/sharded/sharded_quantized_table.hpp>
#include <ferry/distributed/sharded/sharded_table.hpp>
#include <ferry/error.hpp>
#include <ferry/plan/detail/checks.hpp>
#include <ferry/quantized/detail/quantized_verbs.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/quantized/quantize.hpp>
#include <ferry/quantized/quantized_tensor.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace ferry {

namespace detail {

/// True if the shards of two tables have the same rows.
template <class Table, class Source>
bool spread_alike(const Table& table, const Source& source) {
  return table.comm() == source.comm() && digest_of(table.sharding()) == digest_of(source.sharding());
}

/// Codes and scales for rows of a sharded table, on a device.
template <class Exec, class Table, class Device>
auto coded_rows_like(const Table& table, const Device& device, std::int64_t count) {
  using quantization = typename Table::quantization;
  using space = near_space<Exec>;
  quantized_tensor<quantization, space, space> codes("codes", 0, table.width());
  tensor<typename quantization::code_type, space> stored("codes", device, count, table.stored().width());
  if constexpr (quantization::in_records) {
    codes.records() = std::move(stored);
  } else {
    codes.codes() = std::move(stored);
    if constexpr (has_scales<quantization>)
      codes.scales() =
          tensor<typename quantization::scale_type, space>("scales", device, count, table.blocks());
    if constexpr (quantization::has_tensor_scale) codes.set_scale(table.scale());
  }
  return codes;
}

/// Calls copy_part(source, target) for records, or for codes and scales.
template <class Source, class Target, class CopyPart>
void copy_parts(const Source& source, Target& target, const CopyPart& copy_part) {
  if constexpr (Target::quantization::in_records) {
    copy_part(source.records(), target.records());
  } else {
    copy_part(source.codes(), target.codes());
    if constexpr (has_scales<typename Target::quantization>) copy_part(source.scales(), target.scales());
  }
}

/// Records, or codes, scales and factor, as they are.
template <class Exec, class Source, class Target>
ticket copy_codes(const Exec& exec, const Source& source, Target& target) {
  copy_parts(source, target, [&](const auto& rows, auto& sink) { copy(exec, rows, sink).join(); });
  if constexpr (Target::quantization::has_tensor_scale) target.set_scale(source.scale());
  return {};
}

/// The shard of a rank = the rows of `source`, encoded by an instance of the shard's device.
template <class Exec, class Source, class Table>
void quantize_shard(const Exec& exec, const Source& source, Table& table, int rank) {
  using value = std::remove_const_t<typename Source::value_type>;
  const std::int64_t rows = table.rows_of(rank);
  if (rows == 0 || table.width() == 0) return;
  const Exec instance = shard_instance(table.comm(), rank, exec);
  row_list<Exec> list("rows", rows_of_part(rows, table.width() * sizeof(value)));
  const auto at_once = static_cast<std::int64_t>(list.rows());
  tensor<value, near_space<Exec>> values("values", memory_home(instance), at_once, table.width());
  for (std::int64_t begin = 0; begin < rows; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, rows);
    auto part = values.first(end - begin);
    if constexpr (is_sharded_rows<Source>)
      copy(instance, source.shard(rank).rows_between(begin, end), part).join();
    else
      gather_across(exec, source, fill_list(list, begin, end, row_numbers(table, rank)), part);
    auto codes = coded_rows_like<Exec>(table, memory_home(instance), end - begin);
    quantize(instance, part, codes).join();
    copy_parts(codes, table, [&](const auto& coded, auto& array) {
      auto shard_rows = array.shard(rank).rows_between(begin, end);
      copy(instance, coded, shard_rows).join();
    });
  }
}

template <class Exec>
consteval void refuse_copy_of_codes() {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: copy moves numbers, or codes and scales, as they are; quantize(exec, table, quantized) encodes the rows of a sharded_table, and dequantize(exec, quantized, array) decodes them into an array.");
}

/// Quantizes into the shards.
template <class Exec, class Source, class Table>
ticket quantize_sharded(const Exec& exec, const Source& source, Table& table) {
  using value = std::remove_const_t<typename Source::value_type>;
  require_execution_space<Exec>();
  require_quantizable<tensor<value, near_space<Exec>>>();
  require_reach<Exec, tensor<value, typename Source::memory_space>>();
  auto note = note_of<value>("quantize", table);
  if constexpr (is_sharded_rows<Source>) note.add(", values").add_number(source.number());
  if constexpr (Table::quantization::has_tensor_scale) note.add_hidden(note_part::values, table.scale());
  collective call(table.comm(), note);
  return call.guarded([&]() -> ticket {
    if constexpr (is_sharded_rows<Source>) {
      require_same_extents("quantize", table, whole_ref(source));
      if (!spread_alike(table, source))
        throw invalid_argument(joined(
            "ferry::quantize: the rows of ", source.describe(), " and ", table.describe(),
            " are spread differently; copy the values to a table of the same sharding and group first"));
    } else {
      require_same_extents("quantize", table, source);
    }
    call.agree();
    for (int r = call.first(); r < call.last(); ++r) quantize_shard(exec, source, table, r);
    call.agree();
    call.close();
    return {};
  });
}

}  // namespace detail

/// Codes and scales of a sharded table = those of `values`, as quantize for a quantized_tensor has them:
///
///   values  all rows, an array of float, double, half_t or bhalf_t in any memory space, with the same
///           contents on every rank; or a sharded_table of such numbers, of the same group and sharding
///   table   rows and width of `values`; set its factor before, if the quantization has one
///
/// The bits are those of an ordinary table. Collective, see sharded_table: each owner encodes its rows, on
/// the device of its shard. Blocks until all ranks have. Throws invalid_argument for extents that differ
/// and rows that are spread differently, peer_error if that happened to another rank, and protocol_error if
/// ranks have set different factors.
/// @{
template <class Exec, class From, class Q, class Space, class ScaleSpace, class Spread>
  requires(detail::AnArray<From>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket quantize(
    const Exec& exec, const From& values, sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table) {
  const auto source = detail::read_only(make_ref(values));
  return detail::quantize_sharded(exec, source, table);
}
template <class Exec, class T, class FromSpace, class Q, class Space, class ScaleSpace, class Spread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket quantize(
    const Exec& exec, const sharded_table<T, FromSpace, Spread>& values,
    sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table) {
  return detail::quantize_sharded(exec, values, table);
}
/// @}

/// An array of all rows = the values of a sharded table, decoded as its quantization says and rounded once.
/// Collective, see sharded_table: every rank gets all rows in an array of its own; a rank that passes an
/// array without rows gets none. Blocks until the rows are there. Throws as copy of a sharded_table.
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class To>
  requires(detail::AnArray<To>)
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket dequantize(
    const Exec& exec, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& table, To&& out) {
  detail::require_output<To>();
  const auto sink = make_ref(out);
  detail::gather_all_rows("dequantize", exec, table, sink, detail::note_of<>("dequantize", table));
  return {};
}

/// Codes, scales and factor of a sharded table = those of a table with all rows, as they are, and the other
/// way round; or of another sharded table, of any sharding. Collective, blocking, and with the errors of copy
/// of sharded tables. If memory runs out after the codes, bad_alloc leaves old scales: repeat the call.
/// @{
template <class Exec, class Q, class FromSpace, class FromScaleSpace, class Space, class ScaleSpace,
          class Spread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const quantized_tensor<Q, FromSpace, FromScaleSpace>& source,
    sharded_quantized_table<Q, Space, ScaleSpace, Spread>& target) {
  return detail::copy_codes(exec, source, target);
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class ToSpace, class ToScaleSpace>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& source,
    quantized_tensor<Q, ToSpace, ToScaleSpace>& target) {
  return detail::copy_codes(exec, source, target);
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class ToSpace, class ToScaleSpace,
          class ToSpread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& source,
    sharded_quantized_table<Q, ToSpace, ToScaleSpace, ToSpread>& target) {
  return detail::copy_codes(exec, source, target);
}
/// @}

/// Refuse a copy between numbers and codes. Do not compile.
/// @{
template <class Exec, class T, class FromSpace, class FromSpread, class Q, class Space, class ScaleSpace,
          class Spread>
ticket copy(const Exec&, const sharded_table<T, FromSpace, FromSpread>&,
            const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&) {
  detail::refuse_copy_of_codes<Exec>();
  return {};
}
template <class Exec, class T, class ToSpace, class ToSpread, class Q, class Space, class ScaleSpace,
          class Spread>
ticket copy(const Exec&, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>&,
            const sharded_table<T, ToSpace, ToSpread>&) {
  detail::refuse_copy_of_codes<Exec>();
  return {};
}
/// @}

}  // namespace ferry
