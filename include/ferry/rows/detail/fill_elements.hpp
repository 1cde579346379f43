// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/rows/detail/initial_values.hpp>
#include <ferry/rows/detail/packet.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/launch.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace ferry::kernels {

/// Generators that draw neighbours, see initial_values.hpp.
template <class Generator>
concept DrawsNeighbours = (Generator::neighbours > 0);

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

/// One thread per draw of neighbours, whose positions follow each other in memory.
template <class T, class Generator>
struct fill_neighbours {
  static constexpr int neighbours = Generator::neighbours;
  T* data;
  std::int64_t size;
  Generator generator;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t first = i * neighbours;
    const packet<T, neighbours> drawn = generator.draw(i);
    if (first + neighbours <= size) return store_packet(data + first, drawn);
    for (int e = 0; e < neighbours; ++e)
      if (first + e < size) data[first + e] = drawn.value[e];
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

/// Enqueues an initialisation on an instance that reaches the memory: a host fills runs, a device draws
/// neighbours if they lie next to each other.
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
    if constexpr (kernels::DrawsNeighbours<Generator>) {
      constexpr int neighbours = Generator::neighbours;
      if (target.is_contiguous() && (Generator::is_by_position || target.width % neighbours == 0) &&
          reinterpret_cast<std::uintptr_t>(target.data) % (neighbours * sizeof(T)) == 0)
        return launch(exec, label, (size + neighbours - 1) / neighbours,
                      kernels::fill_neighbours<T, Generator>{target.data, size, generator});
    }
    launch(exec, label, size,
           kernels::fill_elements<T, Generator>{target.data, target.stride, fast_divisor(target.width),
                                                generator});
  }
}

}  // namespace ferry::detail
