// SPDX-License-Identifier: Apache-2.0
#include "baseline.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ferry_bench::baseline {

namespace {

constexpr std::size_t copy_bytes = std::size_t{1} << 18;

struct copy_piece {
  char* target;
  const char* source;
  std::size_t bytes;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::size_t begin = static_cast<std::size_t>(i) * copy_bytes;
    std::memcpy(target + begin, source + begin, bytes - begin < copy_bytes ? bytes - begin : copy_bytes);
  }
};

struct copy_row {
  const char* table;
  const std::int64_t* rows;
  char* out;
  std::int64_t row_bytes;
  KOKKOS_FUNCTION void operator()(std::int64_t p) const {
    std::memcpy(out + p * row_bytes, table + rows[p] * row_bytes, static_cast<std::size_t>(row_bytes));
  }
};

struct copy_block {
  row_block_copy work;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t table = i / work.positions, p = i - table * work.positions;
    std::memcpy(static_cast<char*>(work.target) + (table * work.rows + work.writes[p]) * work.row_bytes,
                static_cast<const char*>(work.source) + (table * work.rows + work.reads[p]) * work.row_bytes,
                static_cast<std::size_t>(work.row_bytes));
  }
};

using range = Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>;

}  // namespace

block::block(kind place, std::size_t bytes)
    : place_(place), data_(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)) {
  if (data_ == nullptr) throw std::bad_alloc();
}
block::~block() { std::free(data_); }

void copy(const exec_space& exec, void* target, const void* source, std::size_t bytes) {
  const auto pieces = static_cast<std::int64_t>((bytes + copy_bytes - 1) / copy_bytes);
  Kokkos::parallel_for("ferry_bench::copy", range(exec, 0, pieces),
                       copy_piece{static_cast<char*>(target), static_cast<const char*>(source), bytes});
}

/// There is no link: one copy after the other.
struct copies_at_once::state {};
copies_at_once::copies_at_once(const exec_space&, int) {}
copies_at_once::~copies_at_once() = default;

void copies_at_once::enqueue(const exec_space& exec, const std::vector<part>& parts) const {
  for (const part& piece : parts) copy(exec, piece.target, piece.source, piece.bytes);
}

void copies_at_once::enqueue_batch(const exec_space& exec, const std::vector<part>& parts) const {
  enqueue(exec, parts);
}

void copy_rows(const exec_space& exec, const row_block_copy& work, int) {
  Kokkos::parallel_for("ferry_bench::copy_rows", range(exec, 0, work.tables * work.positions),
                       copy_block{work});
}

struct matrix_product::state {};
matrix_product::matrix_product(const exec_space&, int) {}
matrix_product::~matrix_product() = default;
void matrix_product::enqueue() const {}

/// Threads that read and write each at its own rate, as STREAM's do.
const char* memory_ceiling() { return "ceiling.triad"; }

int gather_shapes() { return 1; }
std::string shape_name(int) { return "memcpy for each row, all threads"; }

void gather(const exec_space& exec, const void* table, const std::int64_t* rows, void* out, std::int64_t n,
            std::int64_t row_bytes, int) {
  Kokkos::parallel_for("ferry_bench::gather", range(exec, 0, n),
                       copy_row{static_cast<const char*>(table), rows, static_cast<char*>(out), row_bytes});
}

std::optional<double> seconds_to_lock(std::size_t) { return std::nullopt; }

}  // namespace ferry_bench::baseline
