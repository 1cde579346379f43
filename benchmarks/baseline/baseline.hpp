#pragma once

#include "../support/device.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// What a programmer would write without ferry, as fast as the machine lets him. The build compiles one of
/// host.cpp and cuda.cpp; on a host backend both kinds of memory are ordinary memory.
namespace ferry_bench::baseline {

/// Owns plain memory of the device, or page-locked memory of the host.
class block {
 public:
  enum class kind { device, locked };
  block(kind where, std::size_t bytes);
  ~block();
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  kind where_;
  void* data_ = nullptr;
};

/// The vendor's copy, enqueued.
void copy(const exec_space& exec, void* to, const void* from, std::size_t bytes);

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
