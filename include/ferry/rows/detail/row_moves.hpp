// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/rows/detail/copy_box.hpp>
#include <ferry/rows/detail/copy_kernels.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/launch.hpp>
#include <ferry/runtime/detail/report.hpp>
#include <ferry/tensor/detail/numeric.hpp>

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

/// The kernels of copy_rows.
namespace ferry::kernels {

/// The memory of one table on both sides of a copy.
struct table_pair {
  const void* source;
  void* target;
};

/// Item k of a copy goes from row source[k] to row target[k]. A negative row on either side: no copy.
struct row_pairs {
  const std::int64_t* source = nullptr;  ///< null: row k
  const std::int64_t* target = nullptr;  ///< null: row k
  const detail::index_report* findings = nullptr;
  const detail::index_report* plan_findings = nullptr;

  /// True if earlier kernels found a fault in the batch, of which then nothing is written.
  [[nodiscard]] KOKKOS_FUNCTION bool blocked() const {
    return (findings != nullptr && (findings->out_of_range != 0 || findings->duplicates != 0)) ||
           (plan_findings != nullptr && plan_findings->out_of_range != 0);
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t source_row(std::int64_t item) const {
    return source == nullptr ? item : source[item];
  }
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION std::int64_t target_row(std::int64_t item) const {
    return target == nullptr ? item : target[item];
  }
};

/// The rows of a copy, in units that both sides have next to each other. A row is `pieces` runs of as many
/// units; strides are in units.
struct row_moves {
  row_pairs pairs;
  table_pair only{};                   ///< the only table
  const table_pair* tables = nullptr;  ///< of several tables; null: one
  std::int64_t source_stride = 0;      ///< from a row to the next
  std::int64_t target_stride = 0;
  box_offsets pieces;
  std::int64_t row_pieces = 1;
  std::int64_t run = 1;  ///< units of a piece
  std::int64_t items = 0;
  std::int64_t table_count = 1;

  [[nodiscard]] std::int64_t count() const { return table_count * items * row_pieces; }

  /// The first unit of a piece on both sides.
  template <class To, class From>
  struct piece {
    const From* source;
    To* target;  ///< null: no copy
  };
  template <class To, class From>
  [[nodiscard]] KOKKOS_FORCEINLINE_FUNCTION piece<To, From> find(std::int64_t table, std::int64_t item,
                                                                 std::int64_t number) const {
    const std::int64_t source_row = pairs.source_row(item), target_row = pairs.target_row(item);
    if (source_row < 0 || target_row < 0) return {nullptr, nullptr};
    std::int64_t target_offset = target_row * target_stride, source_offset = source_row * source_stride;
    if (row_pieces != 1) pieces(number, target_offset, source_offset);
    const table_pair memory = tables == nullptr ? only : tables[table];
    return {static_cast<const From*>(memory.source) + source_offset,
            static_cast<To*>(memory.target) + target_offset};
  }
};

/// Device mapping: a fixed number of threads walk over the units of all pieces, row-major. A group of threads
/// takes `at_once` times as many neighbouring units, of which a thread has every group-th one, all in flight:
/// so few blocks fill a link, whole lines cross it, and long pieces are looked up once for several units.
template <class To, class From>
struct move_rows_by_units {
  static constexpr unsigned int most_threads = 512;  ///< per block, see launch
  static constexpr std::int64_t group = 32;
  static constexpr int at_once = 4;

  row_moves moves;
  detail::fast_divisor run, row_pieces, items;
  std::int64_t count;
  std::int64_t threads;  ///< a multiple of the group

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (moves.pairs.blocked()) return;
    const std::int64_t begin = i / group * group * at_once + i % group;
    for (std::int64_t first = begin; first < count; first += at_once * threads) {
      From unit[at_once];
      To* target[at_once];
      typename row_moves::template piece<To, From> begins{nullptr, nullptr};
      std::int64_t column = run.divisor();
      for (int k = 0; k < at_once; ++k, column += group) {
        target[k] = nullptr;
        const std::int64_t u = first + k * group;
        if (u >= count) continue;
        if (column >= run.divisor()) {
          const std::int64_t number = run.quotient(u), row = row_pieces.quotient(number),
                             table = items.quotient(row);
          begins =
              moves.find<To, From>(table, row - table * items.divisor(), number - row * row_pieces.divisor());
          column = u - number * run.divisor();
        }
        if (begins.target == nullptr) continue;
        unit[k] = begins.source[column];
        target[k] = begins.target + column;
      }
      for (int k = 0; k < at_once; ++k)
        if (target[k] != nullptr) *target[k] = converted(unit[k]);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static To converted(const From& unit) {
    if constexpr (std::is_same_v<To, From>)
      return unit;
    else
      return convert<To>(unit);
  }
};

/// The kernel for a host's cores: one iteration for each block of a piece. The first lines of rows are
/// prefetched some items ahead.
template <class To, class From>
struct move_rows_by_runs {
  static constexpr std::int64_t block = 16384;  ///< units

  row_moves moves;
  std::int64_t blocks;  ///< of a piece

  [[nodiscard]] std::int64_t bytes_each() const {
    return std::min(moves.run, block) * static_cast<std::int64_t>(sizeof(From) + sizeof(To));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if (moves.pairs.blocked()) return;
    const std::int64_t number = i / blocks, begin = (i - number * blocks) * block;
    const std::int64_t row = number / moves.row_pieces, table = row / moves.items;
    const std::int64_t item = row - table * moves.items;
    const std::int64_t bytes = moves.run * static_cast<std::int64_t>(sizeof(From));
    if (const std::int64_t ahead = item + look_ahead::rows(bytes);
        blocks * moves.row_pieces == 1 && ahead < moves.items)
      if (const auto later = moves.find<To, From>(table, ahead, 0); later.target != nullptr)
        look_ahead::prefetch(later.source, bytes);
    const auto begins = moves.find<To, From>(table, item, number - row * moves.row_pieces);
    if (begins.target == nullptr) return;
    const std::int64_t count = moves.run - begin < block ? moves.run - begin : block;
    const From* const source = begins.source + begin;
    To* const target = begins.target + begin;
    if constexpr (std::is_same_v<To, From>)
      std::memcpy(static_cast<void*>(target), static_cast<const void*>(source),
                  static_cast<std::size_t>(count) * sizeof(From));
    else
      for (std::int64_t c = 0; c < count; ++c) target[c] = convert<To>(source[c]);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// The rows of two tables, which correspond: a box of the elements of a row, and the distances of rows.
/// Elements, or bytes.
struct row_shape {
  copy_box box;
  std::int64_t source_stride = 0;
  std::int64_t target_stride = 0;
};

/// Sets what the kernels need to know of the rows, in units of `unit` of the shape.
void describe_rows(const row_shape& shape, std::int64_t unit, kernels::row_moves& moves);

/// Enqueues the moves. Device kernels take at most `blocks` blocks. `exec` may be the calling thread.
template <class To, class From, class Exec>
void launch_moves(const Exec& exec, const std::string& label, const kernels::row_moves& moves,
                  [[maybe_unused]] std::int64_t blocks) {
  if (moves.count() == 0 || moves.run == 0) return;
  if constexpr (is_host_exec<Exec>) {
    using kernel = kernels::move_rows_by_runs<To, From>;
    const std::int64_t blocks_of_piece = (moves.run + kernel::block - 1) / kernel::block;
    launch(exec, label, moves.count() * blocks_of_piece, kernel{moves, blocks_of_piece});
  } else {
    using kernel = kernels::move_rows_by_units<To, From>;
    const std::int64_t count = moves.count() * moves.run;
    constexpr std::int64_t units = kernel::group * kernel::at_once;
    const std::int64_t threads =
        std::min((count + units - 1) / units * kernel::group, blocks * kernel::most_threads);
    launch(exec, label, threads,
           kernel{moves, fast_divisor(moves.run), fast_divisor(moves.row_pieces), fast_divisor(moves.items),
                  count, threads});
  }
}

/// Moves rows whose shape is in bytes, in the largest units that all addresses allow. `alignment`: the
/// greatest power of two, up to 16, that divides the addresses of all tables. Compiled for the execution
/// spaces that Kokkos has and the calling thread.
template <class Exec>
void move_row_bytes(const Exec& exec, const std::string& label, const row_shape& shape,
                    std::int64_t alignment, kernels::row_moves moves, std::int64_t blocks);

}  // namespace ferry::detail
