// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Code of a program without ferry, as fast as the machine allows. The build compiles one of
/// host.cpp and cuda.cpp; on a host backend both kinds of memory are ordinary memory.
namespace ferry_bench::baseline {

/// Owns plain memory of the device, or page-locked memory of the host.
class block {
 public:
  enum class kind { device, locked };
  block(kind place, std::size_t bytes);
  ~block();
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  kind place_;
  void* data_ = nullptr;
};

/// The vendor's copy, enqueued.
void copy(const exec_space& exec, void* target, const void* source, std::size_t bytes);

/// The vendor's copies at the same time, each by a queue of its own: both directions of a link, or the links of
/// several devices.
class copies_at_once {
 public:
  struct part {
    void* target;
    const void* source;
    std::size_t bytes;
  };
  /// For up to `most` copies by the device of `exec`.
  copies_at_once(const exec_space& exec, int most);
  ~copies_at_once();
  copies_at_once(const copies_at_once&) = delete;
  copies_at_once& operator=(const copies_at_once&) = delete;
  /// All enqueued: later work on `exec` comes after them.
  void enqueue(const exec_space& exec, const std::vector<part>& parts) const;
  /// By one call of the first queue.
  void enqueue_batch(const exec_space& exec, const std::vector<part>& parts) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Row reads[p] of each of `tables` tables becomes row writes[p]; a table has `rows` rows of `row_bytes` bytes, a multiple
/// of 16, and tables lie next to each other. By `blocks` blocks of 1024 threads; unchecked.
struct row_block_copy {
  const void* source;
  const std::int64_t* reads;
  void* target;
  const std::int64_t* writes;
  std::int64_t tables, positions, rows, row_bytes;
};
void copy_rows(const exec_space& exec, const row_block_copy& work, int blocks);

/// A product of square matrices of bfloat16 by the vendor's library, of `size` rows; nothing on a host.
class matrix_product {
 public:
  matrix_product(const exec_space& exec, int size);
  ~matrix_product();
  matrix_product(const matrix_product&) = delete;
  matrix_product& operator=(const matrix_product&) = delete;
  void enqueue() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The ceiling of what computes on rows of device memory in place.
const char* memory_ceiling();

/// Ways to launch the hand-written gather; which is best depends on the sizes, so callers try all.
int gather_shapes();
std::string shape_name(int shape);

/// out[p] = table[rows[p]], rows of `row_bytes` bytes, a multiple of 16 that is a power of two; enqueued,
/// unchecked.
void gather(const exec_space& exec, const void* table, const std::int64_t* rows, void* out, std::int64_t n,
            std::int64_t row_bytes, int shape);

/// Seconds that the vendor's function takes for page-locked memory; nothing where there is no such function.
std::optional<double> seconds_to_lock(std::size_t bytes);

}  // namespace ferry_bench::baseline
