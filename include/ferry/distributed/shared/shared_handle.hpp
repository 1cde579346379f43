// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/library.hpp>
#include <ferry/distributed/shared/detail/shared_segment.hpp>

#include <cstddef>
#include <string>
#include <type_traits>

namespace ferry {

/// Names a tensor in device memory for other processes of the machine, see share and open_shared. Trivially
/// copyable, of some hundred bytes: send it through a pipe, a message of MPI or communicator::all_gather, or
/// put it into shared memory. It owns nothing and keeps nothing alive.
class shared_handle {
 public:
  /// Names no tensor.
  shared_handle() = default;
  /// For ferry::share.
  explicit shared_handle(const detail::shared_record& record) : record_(record) {}

  /// The label of the tensor; of a long one the first 95 characters.
  [[nodiscard]] std::string label() const { return std::string(record_.label.view()); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return static_cast<std::size_t>(record_.rank); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept {
    return i < rank() && i < max_rank ? static_cast<std::size_t>(record_.extents[i]) : 1;
  }
  /// Label, extents, elements, space and process, as text.
  [[nodiscard]] std::string describe() const { return record_.describe(); }

  /// For ferry::open_shared.
  [[nodiscard]] const detail::shared_record& record() const noexcept { return record_; }

 private:
  detail::shared_record record_;
};

static_assert(std::is_trivially_copyable_v<shared_handle>);

}  // namespace ferry
