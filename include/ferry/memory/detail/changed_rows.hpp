// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Kokkos_Macros.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ferry::detail {

/// Rows of equal distance in memory.
struct rows_in_memory {
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t stride = 0;  ///< in bytes
};

/// Rows by their numbers, in a list that kernels or the host can read. Numbers outside of
/// [first, first + rows) name no row, or the nearest one.
struct listed_numbers {
  const void* list = nullptr;
  std::int64_t count = 0;
  const std::int64_t* valid_count = nullptr;  ///< in the list's memory: how many are valid; null: all
  int bytes = 8;                              ///< of a number, 4 or 8
  bool is_signed = true;
  bool clamps = false;
  bool ascends = false;  ///< numbers of 8 bytes, each once, in ascending order
  std::int64_t rows = 0;
  std::int64_t first = 0;  ///< the number of row 0

  /// The numbers [begin(), end()) of the list may name rows; at most most() of them do. Many tables share the
  /// list of a plan, so the part of each is found by binary search.
  /// @{
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t begin() const { return ascends ? place_of(first) : 0; }
  [[nodiscard]] std::int64_t end() const { return ascends ? place_of(first + rows) : count; }
  [[nodiscard]] std::int64_t most() const { return ascends ? std::min(count, rows) : count; }
  /// @}

  /// The row of number i, -1 for none.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t row(std::int64_t i) const {
    if (i >= valid_numbers()) return -1;
    std::int64_t value = 0;
    if (bytes == 4)
      value = is_signed ? std::int64_t{static_cast<const std::int32_t*>(list)[i]}
                        : std::int64_t{static_cast<const std::uint32_t*>(list)[i]};
    else
      value = static_cast<const std::int64_t*>(list)[i];
    value -= first;
    if (value >= 0 && value < rows) return value;
    if (!clamps) return -1;
    const bool beyond = value >= 0 || !is_signed;  // an unsigned number above the largest signed one
    return beyond ? rows - 1 : (rows > 0 ? 0 : -1);
  }

 private:
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t valid_numbers() const {
    return valid_count != nullptr && *valid_count < count ? *valid_count : count;
  }
  /// The place in an ascending list of the first number that is not below `number`.
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t place_of(std::int64_t number) const {
    const auto* const numbers = static_cast<const std::int64_t*>(list);
    std::int64_t low = 0, high = valid_numbers();
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (numbers[middle] < number)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

/// The offset of one array's rows in another: row r shares memory with rows r + first to r + last, with none
/// if first > last.
struct row_shift {
  std::int64_t first = 0;
  std::int64_t last = -1;
};

/// One mark per row in the memory of a device, which kernels set. Kernels for it are compiled where changed
/// rows are asked for, not where verbs are called.
class device_marks {
 public:
  device_marks() = default;
  device_marks(const device_marks&) = delete;
  device_marks& operator=(const device_marks&) = delete;
  virtual ~device_marks() = default;

  /// Enqueues the marking of rows on `exec`, the instance of device `device`. False if it can't be done
  /// there.
  virtual bool mark(const void* exec, int device, const std::string& label, const listed_numbers& numbers,
                    const row_shift& shift) = 0;
  virtual bool mark(const void* exec, int device, const std::string& label, std::int64_t begin,
                    std::int64_t end) = 0;
  /// Moves the marks into `marks`, one byte per row. Blocks.
  virtual void take(std::vector<unsigned char>& marks) = 0;
};

/// The rows of an array that have changed since the marks were last dropped. A mark is set after its write: a
/// mark that take() finds belongs to a write that has ended. Thread-safe, except for taken(), drop() and
/// distrust() of the owner.
class changed_rows {
 public:
  /// `device`: null if no device's kernels write to the array.
  changed_rows(const rows_in_memory& array, std::unique_ptr<device_marks> device)
      : array_(array),
        by_host_(static_cast<std::size_t>(array.rows)),
        snapshot_(static_cast<std::size_t>(array.rows)),
        device_(std::move(device)) {}

  [[nodiscard]] const rows_in_memory& array() const { return array_; }

  /// For each array written: where its rows lie in this one.
  [[nodiscard]] row_shift shift_of(const rows_in_memory& written) const {
    const std::int64_t distance = written.data - array_.data;
    return {floor_of(distance - array_.row_bytes, array_.stride) + 1,
            -floor_of(-(distance + written.row_bytes), array_.stride) - 1};
  }
  /// True if rows that were written by their numbers are known by number here.
  [[nodiscard]] bool is_like(const rows_in_memory& written) const {
    return written.stride == array_.stride && array_.stride > 0 && written.rows > 0 && array_.rows > 0;
  }
  /// The rows [begin, end) that share memory with an array, or with some rows of it.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> range_of(const rows_in_memory& written) const {
    if (written.rows == 0 || written.row_bytes == 0 || array_.rows == 0) return {0, 0};
    if (array_.stride <= 0) return {0, array_.rows};
    const std::int64_t first = written.data - array_.data;
    const std::int64_t end = first + (written.rows - 1) * written.stride + written.row_bytes;
    return clipped(floor_of(first - array_.row_bytes, array_.stride) + 1, -floor_of(-end, array_.stride));
  }

  /// Marks rows by the host, after their write has ended.
  /// @{
  void mark(const listed_numbers& numbers, const row_shift& shift) {
    const std::lock_guard lock(guard_);
    const std::int64_t end = numbers.end();
    for (std::int64_t i = numbers.begin(); i < end; ++i)
      if (const std::int64_t row = numbers.row(i); row >= 0)
        for (std::int64_t k = shift.first; k <= shift.last; ++k)
          if (row + k >= 0 && row + k < array_.rows) by_host_[static_cast<std::size_t>(row + k)] = 1;
  }
  void mark(std::int64_t begin, std::int64_t end) noexcept {
    const auto [first, last] = clipped(begin, end);
    if (first >= last) return;
    const std::lock_guard lock(guard_);
    std::memset(by_host_.data() + first, 1, static_cast<std::size_t>(last - first));
  }
  /// @}
  [[nodiscard]] device_marks* device() const { return device_.get(); }

  /// For writes that can't be marked, those of a graph that was captured in part for example: from now on the
  /// marks say nothing.
  void distrust() noexcept { trusted_ = false; }
  [[nodiscard]] bool is_trusted() const noexcept { return trusted_; }

  /// Takes the marks that have been set so far; they stay taken until drop(). One byte per row. Blocks.
  const std::vector<unsigned char>& take() {
    std::vector<unsigned char> by_device;
    if (device_ != nullptr) device_->take(by_device);
    const std::lock_guard lock(guard_);
    for (std::size_t i = 0; i < by_device.size(); ++i) snapshot_[i] |= by_device[i];
    for (std::size_t i = 0; i < by_host_.size(); ++i) snapshot_[i] |= by_host_[i];
    std::fill(by_host_.begin(), by_host_.end(), static_cast<unsigned char>(0));
    return snapshot_;
  }
  /// Forgets what has been taken: it is saved.
  void drop() noexcept { std::fill(snapshot_.begin(), snapshot_.end(), static_cast<unsigned char>(0)); }

 private:
  static std::int64_t floor_of(std::int64_t a, std::int64_t b) {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> clipped(std::int64_t begin, std::int64_t end) const {
    const std::int64_t first = std::clamp<std::int64_t>(begin, 0, array_.rows);
    return {first, std::clamp<std::int64_t>(end, first, array_.rows)};
  }

  rows_in_memory array_;
  std::mutex guard_;
  std::vector<unsigned char> by_host_;
  std::vector<unsigned char> snapshot_;
  std::unique_ptr<device_marks> device_;
  std::atomic<bool> trusted_{true};
};

}  // namespace ferry::detail
