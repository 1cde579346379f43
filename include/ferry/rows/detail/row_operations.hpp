// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/plan/detail/row_source.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/rows/detail/tile.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/half.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

/// Traits of the operations of apply_rows.
namespace ferry::kernels {

/// True if an operation of apply_rows adds the value to something.
template <class Operation>
inline constexpr bool adds_value = requires {
  requires Operation::adds;
};

/// True if the items of a source are segments of a plan, fewer than its positions.
template <class Source>
inline constexpr bool by_segments = requires(const Source& source) {
  source.unique_count;
};

/// Blocks of a multiprocessor that the registers of apply_rows must allow, see launch.
template <class Compute, class Tile, class Source, class Operation>
consteval unsigned int blocks_of_rows() {
  if constexpr (by_segments<Source> && Operation::is_lean && Tile::elements <= 4) {
    if (sizeof(Compute) > 4) return Operation::arrays <= 2 ? 10 : 1;
    return Operation::arrays <= 4 ? 12 : Operation::arrays <= 6 ? 10 : 1;
  } else if constexpr (Operation::counts_rows && Tile::packed && Tile::elements <= 4 &&
                       sizeof(Compute) <= 4) {
    return Operation::blocks_of_counted_rows;
  } else {
    return 1;
  }
}

/// See launch_each. Rows take different times: with fewer rounds some blocks end late.
template <class Source, class Operation>
consteval unsigned int rounds_of_rows(unsigned int blocks_at_once) {
  if (!by_segments<Source> && !Operation::catches_up) return 0;
  return blocks_at_once > 1 ? 8 : 64;
}

/// The first column of the tiles of an item's row.
template <class Tile, class Operation>
KOKKOS_FORCEINLINE_FUNCTION std::int64_t first_column([[maybe_unused]] const Operation& operation,
                                                      [[maybe_unused]] std::int64_t item,
                                                      [[maybe_unused]] std::int64_t row) {
  if constexpr (Tile::masked)
    return masked_column<Tile>(0, operation.target(item, row));
  else
    return 0;
}

// Operations on a row and its combined value. An operation sees one tile: item (of the source), row (of the
// table), column, the tile and its live elements. `load` reads the other inputs of `finish`, so that these
// loads are issued before values are summed. `prefetch` prefetches a later row on a host. On a host an
// operation with `by_vectors` gets rows of one value in tiles of one vector. `arrays` is the number of rows
// that it reads or writes. `target(item, row)` is the row that it writes, for masked tiles. One with `adds`
// adds the value to something. A kernel with one that `is_lean` needs at most 48 registers. One that
// `counts_rows` gives rows steps of their own, and one that `catches_up` those that they missed.

/// An operation that reads nothing and never refuses.
struct plain_operation {
  static constexpr bool by_vectors = true;
  static constexpr bool is_lean = true, counts_rows = false, catches_up = false;
  static constexpr unsigned int most_threads = 128;  ///< of a block
  static constexpr int arrays = 1;

  template <class Tile, class Compute>
  struct held {};

  KOKKOS_FORCEINLINE_FUNCTION static bool is_refused() { return false; }
  template <class Held>
  KOKKOS_FORCEINLINE_FUNCTION static void load(Held&, std::int64_t, std::int64_t, int) {}
  KOKKOS_FORCEINLINE_FUNCTION static void prefetch(std::int64_t, std::int64_t) {}
};

/// An operation on rows of the table alone.
template <class T>
struct table_operation : plain_operation {
  T* table;
  std::int64_t stride;

  KOKKOS_FUNCTION table_operation(T* data, std::int64_t step) : table(data), stride(step) {}

  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit_rows(const Visit& visit) {
    visit(table);
  }
  KOKKOS_FORCEINLINE_FUNCTION void prefetch(std::int64_t row, std::int64_t width) const {
    look_ahead::prefetch(table + row * stride, width * static_cast<std::int64_t>(sizeof(T)));
  }
  /// The row that is written.
  KOKKOS_FORCEINLINE_FUNCTION T* target(std::int64_t, std::int64_t row) const { return table + row * stride; }
};

/// table[row] = value
template <class T>
struct replace_row : table_operation<T> {
  using table_operation<T>::table_operation;

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const plain_operation::held<Tile, Compute>&, std::int64_t,
                                          std::int64_t row, std::int64_t column,
                                          const Compute (&value)[Tile::elements], int count) const {
    store_tile<Tile>(value, this->table + row * this->stride + column, count);
  }
};

/// table[row] += value, added in the accumulation type and rounded once.
template <class T>
struct add_row : table_operation<T> {
  using table_operation<T>::table_operation;
  static constexpr bool adds = true;
  static constexpr int arrays = 2;

  template <class Tile, class Compute>
  struct held {
    Compute sum[Tile::elements];
  };

  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void load(held<Tile, Compute>& inputs, std::int64_t row, std::int64_t column,
                                        int count) const {
    load_addends<Tile>(inputs.sum, this->table + row * this->stride + column, count);
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(held<Tile, Compute>& inputs, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int count) const {
    for (int e = 0; e < live<Tile>(count); ++e) inputs.sum[e] += value[e];
    store_results<Tile>(inputs.sum, this->table + row * this->stride + column, count);
  }
};

/// buffer[item] = value: the combined rows, packed for slots.
template <class T>
struct emit_row : plain_operation {
  T* buffer;
  std::int64_t stride;

  KOKKOS_FUNCTION emit_row(T* data, std::int64_t step) : buffer(data), stride(step) {}

  /// The row that is written.
  KOKKOS_FORCEINLINE_FUNCTION T* target(std::int64_t item, std::int64_t) const {
    return buffer + item * stride;
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const held<Tile, Compute>&, std::int64_t item, std::int64_t,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int count) const {
    store_tile<Tile>(value, buffer + item * stride + column, count);
  }
};

/// *target += value for a number of 8 or 16 bits: exchanges the word of 32 bits that holds it. Words do not
/// straddle allocations.
template <class T>
KOKKOS_FUNCTION void add_in_word(T* target, const T& value) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2);
  using bits_type = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  const auto byte = static_cast<int>(reinterpret_cast<std::uintptr_t>(target) & 3);
  auto* word = reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(target) - byte);
  const int shift = byte * 8;
  const std::uint32_t mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
  for (std::uint32_t content = Kokkos::atomic_load(word);;) {
    using wide = accumulation_t<T>;
    const T before = ferry::detail::bit_cast<T>(static_cast<bits_type>(content >> shift));
    const T sum = convert<T>(convert<wide>(before) + convert<wide>(value));
    const std::uint32_t next =
        (content & ~mask) | static_cast<std::uint32_t>(ferry::detail::bit_cast<bits_type>(sum)) << shift;
    const std::uint32_t previous = Kokkos::atomic_compare_exchange(word, content, next);
    if (previous == content) return;
    content = previous;
  }
}

/// target[0, N) += value[0, N), number by number at the latest: a sum that other threads see as a whole.
template <class Backend, class T, int N>
KOKKOS_FORCEINLINE_FUNCTION void add_to_shared(T* target, const T (&value)[N]) {
  if constexpr (N > 4 && N % 4 == 0) {
    for (int first = 0; first < N; first += 4) {
      const T part[4] = {value[first], value[first + 1], value[first + 2], value[first + 3]};
      add_to_shared<Backend>(target + first, part);
    }
  } else if constexpr (is_extended_number<T>) {
    constexpr bool brain = std::is_same_v<T, bhalf_t>;
    std::uint16_t bits[N];
    for (int e = 0; e < N; ++e) bits[e] = value[e].bits();
    auto* halves = reinterpret_cast<std::uint16_t*>(target);
    if constexpr (N == 4)
      if (Backend::template add_packet<brain>(halves, bits)) return;
    for (int e = 0; e < N; ++e)
      if (!Backend::template add_one<brain>(halves + e, bits[e])) add_in_word(target + e, value[e]);
  } else {
    if constexpr (std::is_same_v<T, float> && N == 4)
      if (Backend::add_packet(target, value)) return;
    for (int e = 0; e < N; ++e)
      if constexpr (sizeof(T) < 4)
        add_in_word(target + e, value[e]);
      else
        Kokkos::atomic_add(target + e, value[e]);
  }
}

/// table[row] += factor * value on a device, for positions of which several may name the row.
template <class Backend, class T, class Factor>
struct add_atomically : plain_operation {
  T* table;
  std::int64_t stride;
  Factor factor;
  const ferry::detail::index_report* refusal;  ///< as that of update_row

  KOKKOS_FUNCTION add_atomically(T* data, std::int64_t step, const Factor& scale,
                                 const ferry::detail::index_report* findings)
      : table(data), stride(step), factor(scale), refusal(findings) {}

  KOKKOS_FORCEINLINE_FUNCTION bool is_refused() const {
    return refusal != nullptr && refusal->nonfinite != 0;
  }
  template <class Tile, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void finish(const held<Tile, Compute>&, std::int64_t, std::int64_t row,
                                          std::int64_t column, const Compute (&value)[Tile::elements],
                                          int) const {
    T added[Tile::elements];
    for (int e = 0; e < Tile::elements; ++e) added[e] = convert<T>(factor(value[e]));
    add_to_shared<Backend>(table + row * stride + column, added);
  }
};

/// The factors of add_atomically.
/// @{
struct unscaled {
  template <class Compute>
  KOKKOS_FORCEINLINE_FUNCTION const Compute& operator()(const Compute& value) const {
    return value;
  }
};
template <class Compute>
struct scaled {
  Compute factor;
  KOKKOS_FORCEINLINE_FUNCTION Compute operator()(const Compute& value) const { return factor * value; }
};
/// @}

/// True if each item of a source is a position of the batch, so that several may name one row.
template <class Source>
inline constexpr bool by_positions = requires {
  requires Source::in_order;
};

}  // namespace ferry::kernels
