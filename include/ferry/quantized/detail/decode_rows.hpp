// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/quantized/detail/coded_memory.hpp>
#include <ferry/quantized/quantization.hpp>
#include <ferry/rows/detail/chunks.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace ferry::kernels {

/// out[position(k)] = the values of row row(k) for each item k of the source. Rows that the source does not
/// resolve keep their contents. Each value is rounded once, to Out. Memory: a kind of coded_blocks.
///
/// Device mapping over a link: one thread for each aligned unit of 16 bytes that holds codes of a row,
/// row-major. It loads the unit at once, so that a row costs the lines of memory that it touches, wherever it
/// begins; then the scales of the unit's blocks, which neighbouring threads share; and stores its numbers in
/// packets of 16 bytes if the row of `out` is aligned there. The first and the last unit of a row may hold
/// codes of its neighbours, too; these are not decoded. Codes that cross bytes are loaded byte by byte, 16 by
/// a thread. Device mapping in parts, for codes in the device's memory: a thread has packets of 16 bytes of
/// `out`, as many as a unit of codes gives, and loads their codes alone. Neighbouring threads have
/// neighbouring packets, so that each of their loads and stores fills whole sectors. Host mapping: one
/// iteration per block of a row.
template <class Memory, class Out, class Source, bool Host>
struct decode_rows {
  using Q = typename Memory::quantization;
  using scales_type = scale_pointer<Q>;
  static constexpr int bits = Q::code_bits;
  static constexpr bool in_units = 32 % bits == 0;
  static constexpr int numbers = in_units ? 8 * unit_bytes / bits : 16;  ///< of a unit
  /// Numbers of a unit that share a scale if the unit begins with a block or a whole part of one.
  static constexpr int sharers = Q::block == 0 ? numbers : std::gcd(numbers, Q::block);
  static constexpr std::int64_t host_block = 4096;  ///< numbers
  static constexpr int packet_numbers = static_cast<int>(unit_bytes / sizeof(Out));
  static constexpr int part_bytes = packet_numbers * bits / 8;  ///< of the codes of a packet
  static constexpr bool has_parts =
      !Host && in_units && packet_numbers * bits % 8 == 0 && part_bytes < static_cast<int>(unit_bytes);
  static constexpr int parts_at_once =
      has_parts ? static_cast<int>(unit_bytes) / part_bytes : 1;  ///< of a thread

  Memory table;
  std::int64_t width;
  Out* out;
  std::int64_t out_stride;
  detail::fast_divisor units;  ///< of a row
  std::int64_t items;
  Source source;
  bool in_parts = false;

  /// True if codes can be loaded by parts, which neither cross a link nor lie across their alignment. Their
  /// columns fit into 32 bits.
  static bool takes_parts(const Memory& table, bool over_link) {
    if constexpr (has_parts)
      return !over_link && table.is_aligned(part_bytes) && table.row_bytes < std::int64_t{1} << 28;
    else
      return false;
  }
  /// Threads of a device for each row, or iterations of a host.
  static std::int64_t units_of(const Memory& table, std::int64_t width, bool by_parts = false) {
    constexpr auto thread_numbers = std::int64_t{parts_at_once} * packet_numbers;
    if (by_parts) return (width + thread_numbers - 1) / thread_numbers;
    if constexpr (Host)
      return (width + host_block - 1) / host_block;
    else if constexpr (in_units)
      return table.units_of_row();
    else
      return (width + numbers - 1) / numbers;
  }
  [[nodiscard]] std::int64_t bytes_each() const {
    const std::int64_t count = width < host_block ? width : host_block;
    return count * bits / 8 + count * static_cast<std::int64_t>(sizeof(Out));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t item = units.quotient(i);
    const std::int64_t number = i - item * units.divisor();
    if constexpr (Host) look_ahead_of(item);
    const std::int64_t row = source.row(item, number == 0);
    if (row < 0) return;
    const std::byte* const codes = table.codes_of(row);
    const scales_type scales = table.scales_of(row);
    Out* const target = out + source.position(item) * out_stride;
    if constexpr (has_parts)
      if (in_parts)
        return decode_parts(codes, scales, target, number, std::make_integer_sequence<int, parts_at_once>());
    if constexpr (Host)
      decode_block(codes, scales, target, number * host_block);
    else if constexpr (in_units)
      decode_unit(row, codes, scales, target, number);
    else
      store_numbers([&](int e) { return code_at<bits>(codes, number * numbers + e); }, scales, target,
                    number * numbers);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void look_ahead_of(std::int64_t item) const {
    if (units.divisor() != 1) return;
    if (const std::int64_t upcoming = item + look_ahead::rows(table.row_bytes); upcoming < items) {
      const std::int64_t upcoming_row = source.row(upcoming, false);
      if (upcoming_row >= 0) look_ahead::prefetch(table.codes_of(upcoming_row), table.row_bytes);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void decode_unit(std::int64_t row, const std::byte* codes, scales_type scales,
                                               Out* target, std::int64_t number) const {
    const auto head_bytes = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(codes) % unit_bytes);
    const std::int64_t offset = number * unit_bytes - head_bytes;  // of the unit's first byte within the row
    if (offset >= table.row_bytes) return;
    const unit_words unit = load_unit(codes + offset, table.memory_of(row));
    const std::int64_t first = offset * 8 / bits;  // column, below 0 in a unit that begins before the row
    const bool whole = first >= 0 && first + numbers <= width && first % sharers == 0 &&
                       reinterpret_cast<std::uintptr_t>(target + first) % unit_bytes == 0;
    if (whole)
      store_packets(unit, scales, target, first);
    else
      store_numbers([&](int e) { return code_in<bits>(unit, e); }, scales, target, first);
  }

  /// The codes of a packet that begins at a column, as the first words of a unit.
  KOKKOS_FORCEINLINE_FUNCTION static unit_words load_part(const std::byte* codes, std::uint32_t column) {
    using part_type = packet_integer<has_parts ? part_bytes : 1>;
    const auto part = *reinterpret_cast<const part_type*>(codes + column * bits / 8);
    unit_words unit{};
    unit.value[0] = static_cast<std::uint32_t>(part);
    if constexpr (part_bytes > 4) unit.value[1] = static_cast<std::uint32_t>(part >> 32);
    return unit;
  }
  template <int... Part>
  KOKKOS_FORCEINLINE_FUNCTION void decode_parts(const std::byte* codes, scales_type scales, Out* target,
                                                std::int64_t number,
                                                std::integer_sequence<int, Part...>) const {
    const auto columns = static_cast<std::uint32_t>(width);
    const std::uint32_t first = static_cast<std::uint32_t>(number) * packet_numbers;
    const std::uint32_t distance = static_cast<std::uint32_t>(units.divisor()) * packet_numbers;
    if (columns % packet_numbers == 0 && reinterpret_cast<std::uintptr_t>(target) % unit_bytes == 0) {
      // Loads of all parts are under way before the first store. Beyond the row the first part is loaded
      // again: loads without a condition stay ahead of the arithmetic.
      const auto column_of = [&](std::uint32_t part) {
        return first + part * distance < columns ? first + part * distance : first;
      };
      const unit_words unit[] = {load_part(codes, column_of(Part))...};
      if constexpr (has_scales<Q> && sharers % packet_numbers == 0) {
        const typename Q::scale_type scale[] = {scale_at<Q>(scales, table.block_of(column_of(Part)))...};
        ((first + Part * distance < columns
              ? store_packet_of(unit[Part], Q::step_of(scale[Part], table.tensor_scale),
                                target + (first + Part * distance))
              : void()),
         ...);
      } else {
        ((first + Part * distance < columns
              ? store_packets<packet_numbers>(unit[Part], scales, target, first + Part * distance)
              : void()),
         ...);
      }
    } else {
      for (std::uint32_t column = first; column < columns; column += distance) {
        const unit_words unit = load_part(codes, column);
        store_numbers<packet_numbers>([&](int e) { return code_in<bits>(unit, e); }, scales, target, column);
      }
    }
  }

  /// Stores the packets of `Count` numbers from column `first` on.
  template <int Count = numbers, class Column>
  KOKKOS_FORCEINLINE_FUNCTION void store_packets(const unit_words& unit, scales_type scales, Out* target,
                                                 Column first) const {
    constexpr int step_numbers = packet_numbers < sharers ? packet_numbers : sharers;
    static_assert(packet_numbers % step_numbers == 0 && sharers % step_numbers == 0);
    typename Q::step_type step{};
    for (int begin = 0; begin < Count; begin += packet_numbers) {
      decltype(Q::decode(0u, step)) value[packet_numbers];
      for (int part = begin; part < begin + packet_numbers; part += step_numbers) {
        if (part % sharers == 0) step = table.step_of(scales, table.block_of(first + part));
        decode_codes<step_numbers>(unit, part, step, value + (part - begin));
      }
      store_values(target + first + begin, value);
    }
  }

  /// Stores the packet of the first codes of a unit, which share a step.
  KOKKOS_FORCEINLINE_FUNCTION static void store_packet_of(const unit_words& unit, typename Q::step_type step,
                                                          Out* target) {
    decltype(Q::decode(0u, step)) value[packet_numbers];
    decode_codes<packet_numbers>(unit, 0, step, value);
    store_values(target, value);
  }

  /// value[e] = the value of code part + e of a unit.
  template <int Count, class Value>
  KOKKOS_FORCEINLINE_FUNCTION static void decode_codes(const unit_words& unit, int part,
                                                       const typename Q::step_type& step, Value* value) {
    constexpr int word_numbers = 32 / bits;
    if constexpr (ferry::detail::decodes_words<Q>) {
      constexpr int count = Count < word_numbers ? Count : word_numbers;
      bool decoded = true;
      for (int e = 0; e < Count; e += word_numbers) {
        float word_value[word_numbers];
        const std::uint32_t word = unit.value[(part + e) / word_numbers];
        decoded = decoded && Q::decode_word(word >> (part + e) % word_numbers * bits, step, word_value);
        if (decoded)
          for (int k = 0; k < count; ++k) value[e + k] = word_value[k];
      }
      if (decoded) return;
    }
    for (int e = 0; e < Count; ++e) value[e] = Q::decode(code_in<bits>(unit, part + e), step);
  }

  template <class Value>
  KOKKOS_FORCEINLINE_FUNCTION static void store_values(Out* target, const Value (&value)[packet_numbers]) {
    packet<std::uint32_t, packet_numbers / 2> pairs;
    if (narrow_pairs<Out, ferry::detail::decodes_words<Q>>(value, pairs)) {
      store_packet(reinterpret_cast<std::uint32_t*>(target), pairs);
    } else {
      packet<Out, packet_numbers> whole;
      for (int e = 0; e < packet_numbers; ++e) whole.value[e] = convert<Out>(value[e]);
      store_packet(target, whole);
    }
  }

  /// The numbers from column `first` on that belong to the row.
  template <int Count = numbers, class Code>
  KOKKOS_FORCEINLINE_FUNCTION void store_numbers(const Code& code, scales_type scales, Out* target,
                                                 std::int64_t first) const {
    typename Q::step_type step{};
    bool has_step = false;
    for (int e = 0; e < Count; ++e) {
      const std::int64_t column = first + e;
      if (column < 0 || column >= width) continue;
      const bool begins_block = Q::block != 0 && column % (Q::block == 0 ? 1 : Q::block) == 0;
      if (!has_step || begins_block) step = table.step_of(scales, table.block_of(column));
      has_step = true;
      target[column] = convert<Out>(Q::decode(code(e), step));
    }
  }

  /// Codes that decode_block takes at once: a constant number, between arrays without aliases, so that a
  /// compiler vectorises.
  static constexpr int at_once = Q::block == 0 ? 16 : std::gcd(16, Q::block);

  KOKKOS_FUNCTION void decode_block(const std::byte* codes, scales_type scales, Out* target,
                                    std::int64_t begin) const {
    const std::int64_t end = begin + host_block < width ? begin + host_block : width;
    std::int64_t column = begin;
    for (; column + at_once <= end; column += at_once) {
      const auto step = table.step_of(scales, table.block_of(column));
      std::uint32_t code[at_once];
      Out value[at_once];
      for (int e = 0; e < at_once; ++e) code[e] = code_at<bits>(codes, column + e);
      for (int e = 0; e < at_once; ++e) value[e] = convert<Out>(Q::decode(code[e], step));
      std::memcpy(static_cast<void*>(target + column), value, sizeof value);
    }
    for (; column < end; ++column)
      target[column] = convert<Out>(
          Q::decode(code_at<bits>(codes, column), table.step_of(scales, table.block_of(column))));
  }
};

}  // namespace ferry::kernels
