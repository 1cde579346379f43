// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>
#include <ferry/loader/batch_source.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/event.hpp>
#include <ferry/memory/detail/late.hpp>
#include <ferry/memory/detail/share.hpp>
#include <ferry/tensor/detail/array_label.hpp>
#include <ferry/tensor/extents.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <span>
#include <string>
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

  template <class Dependent = void>
  void add(const late<batch_shape, Dependent>& of, std::size_t element_bytes, std::int64_t batch) {
    std::vector<late<std::size_t, Dependent>> sizes{static_cast<std::size_t>(batch)};
    sizes.insert(sizes.end(), of.extents.begin(), of.extents.end());
    late<slot_field, Dependent> made;
    made.label = of.label;
    made.extents = shape<dynamic_rank>::make({sizes.data(), sizes.size()}, of.label, element_bytes);
    made.offset = bytes;
    made.row_bytes = made.extents.width() * element_bytes;
    fields.push_back(made);
    const std::size_t more = (made.extents.size() * element_bytes + 255) / 256 * 256;
    if (more > most - bytes) refuse();
    bytes += more;
  }
  /// Of a ring.
  [[nodiscard]] std::size_t bytes_of(std::size_t slots) const {
    if (bytes != 0 && slots > most / bytes) refuse();
    return bytes * slots;
  }

 private:
  static constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  [[noreturn]] void refuse() const {
    throw invalid_argument(
        std::string("ferry::") + user +
        ": the slots of the ring do not fit the address space; choose a smaller batch or depth");
  }
};

/// The place of one batch at a time. Whose turn it is follows from the counters of the pipeline.
struct slot {
  using clock = std::chrono::steady_clock;

  std::int64_t number = 0;  ///< of the batch, from the first epoch
  std::vector<std::int64_t> samples;
  bool made = false;           ///< whether its worker has finished
  std::exception_ptr failure;  ///< what its source has thrown
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  event_handle arrived;   ///< the end of its transfer
  event_handle released;  ///< the end of the user's work on it
  clock::time_point sent, served;
  std::shared_ptr<access_tracker> host_accesses = share<access_tracker>();
  std::shared_ptr<access_tracker> device_accesses = share<access_tracker>();
};

}  // namespace ferry::detail
