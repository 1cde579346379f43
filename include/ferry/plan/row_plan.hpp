// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/runtime/after.hpp>
#include <ferry/runtime/detail/plan_storage.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {

/// The memory space of a plan's arrays: Space, or the device's scratch space if Space is void.
template <class Space>
using plan_space =
    std::conditional_t<std::is_void_v<Space>, typename device_backend<Space>::scratch_space, Space>;

}  // namespace detail

/// The indices of a batch, sorted once, for all verbs of that batch. Made by make_plan, which applied its
/// bounds policy. Copies share the arrays. Only verbs of the execution space type that made a plan may use
/// it.
class row_plan {
 public:
  /// A plan of no indices.
  row_plan() = default;
  /// For make_plan.
  explicit row_plan(std::shared_ptr<detail::plan_storage> storage) : storage_(std::move(storage)) {}

  /// Number of indices of the batch.
  [[nodiscard]] std::int64_t positions() const { return storage_ ? storage_->positions : 0; }
  /// Number of rows of the tables that the plan is for.
  [[nodiscard]] std::int64_t rows() const { return storage_ ? storage_->rows : 0; }
  /// Number of different rows. Blocks until the plan has been made, then reads the number from the device.
  [[nodiscard]] std::int64_t unique_count() const { return storage_ ? storage_->read_unique_count() : 0; }
  /// The arrays of the plan, as rank-1 slices of std::int64_t: arguments of verbs, view() for kernels, and
  /// for host code where they lie in host memory. For the indices {7, 2, 7, 5}:
  ///
  ///   order()        {1, 3, 0, 2}  the positions sorted by row, equal rows in the order of the batch
  ///   rows_sorted()  {2, 5, 7, 7}  the row of position order()[k]
  ///   unique_rows()  {2, 5, 7}     the different rows, ascending; unique_count() elements
  ///   segments()     {0, 1, 2, 4}  where each begins in order(), and the end; unique_count() + 1 elements
  ///   inverse()      {2, 0, 2, 1}  the index in unique_rows() of the row of each position
  ///
  /// Positions without a row come last in order(): those of bounds::skip, and bad ones of bounds::check,
  /// which the verb that uses the plan reports. They have rows() in rows_sorted() and -1 in inverse();
  /// segments() ends before them.
  ///
  /// The arrays lie in device_space, those of a plan with a workspace in the space of the workspace, those of
  /// a plan of a host execution space in pageable_space. `Space` names a space other than device_space:
  /// order<pageable_space>(). Throws invalid_argument for a space that the arrays do not lie in.
  ///
  /// Verbs are ordered after the making of the plan. For host code and other kernels call ferry::after. A
  /// plan of a host execution space is complete when make_plan returns. A slice keeps the library's memory of
  /// the plan, but not a workspace. The slice or the plan must live until the work that reads it has ended.
  /// unique_rows() and segments() block as unique_count() does.
  /// @{
  template <class Space = void>
  [[nodiscard]] auto order() const {
    return array<Space>("order", &detail::plan_storage::order, positions());
  }
  template <class Space = void>
  [[nodiscard]] auto rows_sorted() const {
    return array<Space>("rows_sorted", &detail::plan_storage::sorted_rows, positions());
  }
  template <class Space = void>
  [[nodiscard]] auto unique_rows() const {
    return array<Space>("unique_rows", &detail::plan_storage::unique_rows, unique_count());
  }
  template <class Space = void>
  [[nodiscard]] auto segments() const {
    return array<Space>("segments", &detail::plan_storage::segment_begin, storage_ ? unique_count() + 1 : 0);
  }
  template <class Space = void>
  [[nodiscard]] auto inverse() const {
    return array<Space>("inverse", &detail::plan_storage::inverse, positions());
  }
  /// @}

  /// The arrays as pointers; for the verbs.
  [[nodiscard]] const std::shared_ptr<detail::plan_storage>& storage() const { return storage_; }

 private:
  template <class Space, class Member>
  [[nodiscard]] auto array(const char* name, Member member, std::int64_t count) const {
    using space = detail::plan_space<Space>;
    using slice = tensor_slice<const std::int64_t, space, extents<dyn>>;
    const std::array<std::size_t, 1> sizes{static_cast<std::size_t>(count)};
    if (storage_ == nullptr) return slice();
    require_space(name, space::name, space::is_host_accessible || device_backend<space>::device_is_host);
    // Rows are below 2^63, so they may be read as signed numbers.
    const auto* data = reinterpret_cast<const std::int64_t*>((*storage_).*member);
    return slice(std::string("plan::") + name, data,
                 shape<extents<dyn>>::make(sizes, name, sizeof(std::int64_t)), accesses());
  }

  void require_space(const char* name, std::string_view space, bool reached_by_host) const;
  [[nodiscard]] std::shared_ptr<detail::access_tracker> accesses() const;

  std::shared_ptr<detail::plan_storage> storage_;
};

}  // namespace ferry

/// ferry::after takes a plan: the later work comes after the making of the plan.
template <>
inline constexpr bool ferry::detail::is_earlier_work<ferry::row_plan> = true;
