// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/rows/detail/initial_values.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace ferry::kernels {

/// Neighbours that a generator draws at once; one for others.
template <class Generator>
consteval int draws_at_once() {
  if constexpr (requires { Generator::draws_at_once; })
    return Generator::draws_at_once;
  else
    return 1;
}

/// One thread per element, row-major.
template <class T, class Generator>
struct fill_elements {
  T* data;
  std::int64_t stride;
  detail::fast_divisor width;
  Generator generator;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i);
    const std::int64_t column = i - row * width.divisor();
    data[row * stride + column] = generator(row, column, i);
  }
};

/// One thread per packet of 16 bytes, of positions that follow each other in memory, or per draw of more. A
/// thread of a constant's stores `packets_each` of them, and a warp neighbouring ones: with one for a thread,
/// the blocks of 128 threads that Kokkos makes start at three quarters of a memset's rate (H200).
template <class T, class Generator>
struct fill_packets {
  static constexpr int draws = draws_at_once<Generator>();
  static constexpr int fitting = std::max(static_cast<int>(16 / sizeof(T)), draws);
  /// Random elements that are drawn one by one are a long code each.
  static constexpr int elements = draws > 1 || std::is_same_v<Generator, constant_value<T>>
                                      ? fitting
                                      : std::min(fitting, 4);
  /// True if elements fill packets, and the generator needs no row and column.
  static constexpr bool serves = std::has_single_bit(sizeof(T)) && sizeof(T) <= 16 &&
                                 std::is_trivially_default_constructible_v<T> &&
                                 (draws > 1 || Generator::is_by_position);
  static constexpr std::int64_t packets_each = std::is_same_v<Generator, constant_value<T>> ? 2 : 1;
  static constexpr std::int64_t neighbours = 32;  ///< threads

  T* data;
  std::int64_t size;
  Generator generator;

  /// The threads that fill `size` elements.
  static constexpr std::int64_t threads_for(std::int64_t size) {
    const std::int64_t packets = (size + elements - 1) / elements;
    if constexpr (packets_each == 1) return packets;
    constexpr std::int64_t group = neighbours * packets_each;
    return (packets + group - 1) / group * neighbours;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    if constexpr (packets_each == 1) {
      fill_packet(i);
    } else {
      const std::int64_t first = i / neighbours * (neighbours * packets_each) + i % neighbours;
      for (int p = 0; p < packets_each; ++p) fill_packet(first + p * neighbours);
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void fill_packet(std::int64_t number) const {
    const std::int64_t first = number * elements;
    T values[elements];
    draw_from<0>(first, values);
    if (first + elements <= size) {
      packet<T, elements> whole;
      for (int e = 0; e < elements; ++e) whole.value[e] = values[e];
      store_packet(data + first, whole);
    } else {
      for (int e = 0; e < elements; ++e)
        if (first + e < size) data[first + e] = values[e];
    }
  }
  /// Recursive, because a compiler that did not unroll a loop would put the packet into memory.
  template <int Element>
  KOKKOS_FORCEINLINE_FUNCTION void draw_from(std::int64_t first, T (&values)[elements]) const {
    if constexpr (Element < elements) {
      if constexpr (draws > 1) {
        // A draw behind the end would be one of a row that the array lacks.
        if (first + Element < size) generator.draw((first + Element) / draws, values + Element);
      } else {
        values[Element] = generator(0, 0, first + Element);
      }
      draw_from<Element + draws>(first, values);
    }
  }
};

/// On a host, one thread per run of neighbours.
template <class T, class Generator>
struct fill_runs {
  static constexpr bool takes_runs = true;
  T* data;
  std::int64_t stride;
  std::int64_t width;
  std::int64_t size;
  Generator generator;

  [[nodiscard]] static constexpr std::int64_t bytes_each() { return sizeof(T); }
  void operator()(const detail::host_run& run) const {
    std::int64_t position = run.begin(size);
    const std::int64_t end = run.end(size);
    if (position >= end) return;
    std::int64_t row = position / width;
    for (std::int64_t column = position - row * width; position < end; ++row, column = 0) {
      const std::int64_t count = std::min(width - column, end - position);
      fill(row, column, position, count, data + row * stride + column);
      position += count;
    }
  }

 private:
  void fill(std::int64_t row, std::int64_t column, std::int64_t position, std::int64_t count,
            T* target) const {
    if constexpr (requires { generator.run(row, column, position, count, target); })
      generator.run(row, column, position, count, target);
    else
      for (std::int64_t i = 0; i < count; ++i) target[i] = generator(row, column + i, position + i);
  }
};

}  // namespace ferry::kernels

namespace ferry::detail {

/// An array of `rows` rows of `width` elements, `stride` elements apart.
template <class T>
struct fill_target {
  T* data;
  std::int64_t rows, width, stride;

  [[nodiscard]] std::int64_t size() const { return rows * width; }
  [[nodiscard]] bool is_contiguous() const { return stride == width || rows == 1; }
};

/// Enqueues an initialisation on an instance that reaches the memory: a host fills runs, a device packets
/// if elements lie next to each other. Packets of zeros are as fast as a memset.
template <class Exec, class T, class Generator>
void launch_fill(const Exec& exec, const std::string& label, const fill_target<T>& target,
                 const Generator& generator) {
  const std::int64_t size = target.size();
  if (size == 0) return;
  if constexpr (is_host_exec<Exec>) {
    // One long row, if the generator does not care.
    const bool joins = Generator::is_by_position && target.is_contiguous();
    const std::int64_t width = joins ? size : target.width;
    launch(exec, label, size,
           kernels::fill_runs<T, Generator>{target.data, target.stride, width, size, generator});
  } else {
    using packets = kernels::fill_packets<T, Generator>;
    if constexpr (packets::serves) {
      bool fits = target.is_contiguous() &&
                  reinterpret_cast<std::uintptr_t>(target.data) % (packets::elements * sizeof(T)) == 0;
      if constexpr (packets::draws > 1) fits = fits && generator.has_whole_draws();
      if (fits) {
        launch(exec, label, packets::threads_for(size), packets{target.data, size, generator});
        return;
      }
    }
    launch(exec, label, size,
           kernels::fill_elements<T, Generator>{target.data, target.stride, fast_divisor(target.width),
                                                generator});
  }
}

}  // namespace ferry::detail
