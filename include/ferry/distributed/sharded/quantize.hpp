// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/argument.hpp>
#include <ferry/distributed/sharded/copy.hpp>
#include <ferry/distributed/sharded/detail/copy_from_shards.hpp>
#include <ferry/distributed/sharded/detail/copy_lists.hpp>
#include <ferry/distributed/sharded/detail/shard_instance.hpp>
#include <ferry/distributed/sharded/detail/verb_on_shards.hpp>
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

/// The shards = the rows of `source`, encoded: of an array of all rows, or of a sharded table whose shards
/// have the same rows. Each owner encodes the rows of its shard on the shard's device.
template <class Exec, class Table, class Source>
struct quantize_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::table;
  using quantization = typename Table::quantization;
  using home = near_space<Exec>;
  using value = std::remove_const_t<typename Source::value_type>;
  static constexpr bool is_sharded = is_sharded_rows<Source>;

  const Exec& exec;
  const Source& source;

  quantize_shards(const Exec& instance, const Source& values, Table& shards, const call_note& note)
      : base(shards, note), exec(instance), source(values) {}

  void check() {
    if constexpr (is_sharded) {
      require_same_extents("quantize", table, whole_ref(source));
      if (!spread_alike(table, source))
        throw invalid_argument(joined(
            "ferry::quantize: the rows of ", source.describe(), " and ", table.describe(),
            " are spread differently; copy the values to a table of the same sharding and group first"));
    } else {
      require_same_extents("quantize", table, source);
    }
  }
  void apply() {
    row_list<Exec> numbers("rows", is_sharded ? 0 : std::min(quantized_at_once(), this->rows()));
    for (int r = call.first(); r < call.last(); ++r) fill(r, numbers);
    call.agree();
  }

 private:
  /// Rows whose numbers take about 32 MiB.
  [[nodiscard]] std::int64_t quantized_at_once() const {
    const auto bytes = static_cast<std::int64_t>(table.width() * sizeof(value));
    return std::clamp<std::int64_t>((std::int64_t{1} << 25) / std::max<std::int64_t>(bytes, 1), 1,
                                    copied_at_once);
  }
  void fill(int rank, row_list<Exec>& numbers) {
    const std::int64_t shard_rows = table.rows_of(rank);
    if (shard_rows == 0 || table.width() == 0) return;
    const Exec instance = shard_instance(table.comm(), rank, exec);
    const auto device = memory_home(instance);
    const std::int64_t most = std::min(quantized_at_once(), shard_rows);
    const auto row_at = this->rows_of_shard(rank);
    tensor<value, home> values("values", device, most, table.width());
    for (std::int64_t begin = 0; begin < shard_rows; begin += most) {
      const std::int64_t count = std::min(most, shard_rows - begin);
      auto part = values.first(count);
      if constexpr (is_sharded) {
        copy(instance, source.shard(rank).rows_between(begin, begin + count), part).join();
      } else {
        for (std::int64_t i = 0; i < count; ++i) numbers.data()[i] = row_at(begin + i);
        gather_across(exec, source, numbers.first(count), part);
      }
      auto codes = coded_rows_on(device, count);
      quantize(instance, part, codes).join();
      put(instance, rank, begin, codes);
    }
  }
  template <class Device>
  [[nodiscard]] quantized_tensor<quantization, home, home> coded_rows_on(const Device& device,
                                                                         std::int64_t count) const {
    quantized_tensor<quantization, home, home> codes("codes", 0, table.width());
    const std::int64_t columns = static_cast<std::int64_t>(table.stored().width());
    tensor<typename quantization::code_type, home> stored("codes", device, count, columns);
    if constexpr (quantization::in_records) {
      codes.records() = std::move(stored);
    } else {
      codes.codes() = std::move(stored);
      if constexpr (has_scales<quantization>)
        codes.scales() =
            tensor<typename quantization::scale_type, home>("scales", device, count, table.blocks());
      if constexpr (quantization::has_tensor_scale) codes.set_scale(table.scale());
    }
    return codes;
  }
  template <class Codes>
  void put(const Exec& instance, int rank, std::int64_t begin, const Codes& codes) {
    const auto end = begin + static_cast<std::int64_t>(codes.rows());
    const auto put_part = [&](const auto& rows, auto& part) {
      auto sink = part.shard(rank).rows_between(begin, end);
      copy(instance, rows, sink).join();
    };
    if constexpr (quantization::in_records) {
      put_part(codes.records(), table.records());
    } else {
      put_part(codes.codes(), table.codes());
      if constexpr (has_scales<quantization>) put_part(codes.scales(), table.scales());
    }
  }
};

/// The ranks agree on an array of all values for each of them; then gathers decode the rows.
template <class Exec, class Table, class Sink>
struct dequantize_shards : verb_on_shards<Table> {
  using base = verb_on_shards<Table>;
  using base::call, base::rows, base::table;

  const Exec& exec;
  const Sink& sink;
  bool takes = true;  ///< this rank gets the rows
  row_list<Exec> numbers{};

  dequantize_shards(const Exec& instance, Table& shards, const Sink& array, const call_note& note)
      : base(shards, note), exec(instance), sink(array) {}

  void check() {
    takes = call.is_whole() || sink.rows() != 0;
    if (takes) require_same_extents("dequantize", table, sink);
    numbers = row_list<Exec>("rows", std::min(copied_at_once, rows()));
  }
  void apply() const {}
};

template <class Exec>
consteval void refuse_copy_of_codes() {
  static_assert(
      sizeof(Exec) == 0,
      "ferry: copy moves numbers, or codes and scales, as they are; quantize(exec, table, quantized) encodes the rows of a sharded_table, and dequantize(exec, quantized, array) decodes them into an array.");
}

/// Calls copy_part(source, target) for records, or for codes and scales; the target gets the factor.
template <class Source, class Target, class CopyPart>
void copy_parts(const Source& source, Target& target, const CopyPart& copy_part) {
  using quantization = typename Target::quantization;
  if constexpr (quantization::in_records) {
    copy_part(source.records(), target.records());
  } else {
    copy_part(source.codes(), target.codes());
    if constexpr (has_scales<quantization>) copy_part(source.scales(), target.scales());
    if constexpr (quantization::has_tensor_scale) target.set_scale(source.scale());
  }
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
  quantize_shards<Exec, Table, Source> verb(exec, source, table, note);
  return verb.call.run(verb);
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
  using table_type = const sharded_quantized_table<Q, Space, ScaleSpace, Spread>;
  detail::dequantize_shards<Exec, table_type, std::remove_const_t<decltype(sink)>> verb(
      exec, table, sink, detail::note_of<>("dequantize", table));
  verb.call.run(verb).drop();
  detail::gather_all_rows(exec, table, sink, verb.takes, verb.numbers);
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
  detail::copy_parts(source, target, [&](const auto& rows, auto& sink) { copy(exec, rows, sink).join(); });
  return {};
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class ToSpace, class ToScaleSpace>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& source,
    quantized_tensor<Q, ToSpace, ToScaleSpace>& target) {
  detail::copy_parts(source, target, [&](const auto& rows, auto& sink) { copy(exec, rows, sink).join(); });
  return {};
}
template <class Exec, class Q, class Space, class ScaleSpace, class Spread, class ToSpace, class ToScaleSpace,
          class ToSpread>
[[nodiscard("the verb may still be in flight: wait() for its ticket or detach() it")]] ticket copy(
    const Exec& exec, const sharded_quantized_table<Q, Space, ScaleSpace, Spread>& source,
    sharded_quantized_table<Q, ToSpace, ToScaleSpace, ToSpread>& target) {
  detail::copy_parts(source, target, [&](const auto& rows, auto& sink) { copy(exec, rows, sink).join(); });
  return {};
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
