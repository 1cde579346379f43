// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/tensor/extents.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace ferry::detail {

/// One array of all batches: where it lies in a slot.
struct slot_field {
  array_label label;
  shape<dynamic_rank> extents;  ///< of a full batch
  std::size_t offset = 0;       ///< in bytes
  std::size_t row_bytes = 0;
};

/// The arrays of a slot, each at a multiple of 256 bytes, as device allocations are.
struct slot_layout {
  std::vector<slot_field> fields;
  std::size_t bytes = 0;
  const char* user = "prefetcher";  ///< the class that messages name

  void add(const batch_shape& shape, std::size_t element_bytes, std::int64_t batch);
  /// Of a ring.
  [[nodiscard]] std::size_t bytes_of(std::size_t slots) const;
};

/// The place of one batch at a time. Whose turn it is follows from the counters of the pipeline.
struct slot {
  using clock = std::chrono::steady_clock;

  std::int64_t number = 0;  ///< of the batch, from the first epoch
  std::vector<std::int64_t> samples;
  bool is_made = false;        ///< true if its worker has finished
  std::exception_ptr failure;  ///< what its source has thrown
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  event_handle arrived;   ///< the end of its transfer
  event_handle released;  ///< the end of the user's work on it
  clock::time_point sent, served;
  std::shared_ptr<access_tracker> host_accesses = std::make_shared<access_tracker>();
  std::shared_ptr<access_tracker> device_accesses = std::make_shared<access_tracker>();
};

}  // namespace ferry::detail
