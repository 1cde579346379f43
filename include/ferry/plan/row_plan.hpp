#pragma once

#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/backend.hpp>
#include <ferry/memory/detail/event.hpp>
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

/// Where the arrays of a plan lie unless the caller says it: where the device's scratch memory does.
template <class Space>
consteval auto plan_space_of() {
  if constexpr (std::is_void_v<Space>)
    return typename device_backend<Space>::scratch_space{};
  else
    return Space{};
}
template <class Space>
using plan_space = decltype(plan_space_of<Space>());

/// The record of a plan's making for those who read its arrays, which it keeps.
struct plan_reads {
  access_tracker accesses;
  std::shared_ptr<plan_storage> plan;
};

}  // namespace detail

/// The indices of a batch, sorted once, for all verbs of that batch; made by make_plan. Its bounds policy was
/// applied when it was made. Copies share the arrays, which must be used by the execution space kind that
/// made them.
class row_plan {
 public:
  row_plan() = default;
  explicit row_plan(std::shared_ptr<plan_storage> storage) : storage_(std::move(storage)) {}

  /// Number of indices that the plan was made of.
  [[nodiscard]] std::int64_t positions() const { return storage_ ? storage_->positions : 0; }
  /// Number of rows of the tables that it is for.
  [[nodiscard]] std::int64_t rows() const { return storage_ ? storage_->rows : 0; }
  /// Number of different rows. Blocks until the plan has been made and fetches the number: not for the hot
  /// path.
  [[nodiscard]] std::int64_t unique_count() const { return storage_ ? storage_->read_unique_count() : 0; }
  /// The arrays of the plan, as arguments of verbs, as view() for kernels, and where they lie in host memory for host
  /// code. For the indices {7, 2, 7, 5}:
  ///
  ///   order()        {1, 3, 0, 2}  the positions sorted by row, equal rows in the order of the batch
  ///   rows_sorted()  {2, 5, 7, 7}  the row of position order()[k]
  ///   unique_rows()  {2, 5, 7}     the different rows, ascending; unique_count() of them
  ///   segments()     {0, 1, 2, 4}  where each of these begins in order(), and the end; unique_count() + 1 of them
  ///   inverse()      {2, 0, 2, 1}  where the row of each position is found in unique_rows()
  ///
  /// Positions that have no row (bounds::skip, and bad ones under bounds::check, which a verb that uses the plan
  /// reports) come last in order(), with rows() in rows_sorted() and -1 in inverse(); segments() ends before them.
  ///
  /// The arrays lie in device_space; of a plan that a host execution space made, in pageable_space; of one with a
  /// workspace, there. `Space` names that space where it is not the usual one: order<mapped_space>(). Throws
  /// invalid_argument where they do not lie there.
  ///
  /// Verbs know when the plan has been made; host code and other kernels do not: see ferry::after. A plan of a host
  /// execution space has been made when make_plan returns. A view keeps the engine's memory of the plan, not a
  /// workspace; it, or the plan, must live until the work that reads it has ended. unique_rows() and segments() block as
  /// unique_count() does.
  template <class Space = void>
  [[nodiscard]] auto order() const {
    return array<Space>("order", &plan_storage::order, positions());
  }
  template <class Space = void>
  [[nodiscard]] auto rows_sorted() const {
    return array<Space>("rows_sorted", &plan_storage::sorted_rows, positions());
  }
  template <class Space = void>
  [[nodiscard]] auto unique_rows() const {
    return array<Space>("unique_rows", &plan_storage::unique_rows, unique_count());
  }
  template <class Space = void>
  [[nodiscard]] auto segments() const {
    return array<Space>("segments", &plan_storage::segment_begin, storage_ ? unique_count() + 1 : 0);
  }
  template <class Space = void>
  [[nodiscard]] auto inverse() const {
    return array<Space>("inverse", &plan_storage::inverse, positions());
  }

  /// The arrays as they are, for kernels of the user's own.
  [[nodiscard]] const std::shared_ptr<plan_storage>& storage() const { return storage_; }

 private:
  template <class Space, class Member>
  [[nodiscard]] auto array(const char* name, Member member, std::int64_t count) const {
    using space = detail::plan_space<Space>;
    const std::array<std::size_t, 1> sizes{static_cast<std::size_t>(count)};
    const auto extents = shape<dynamic_rank>::make(sizes, name, sizeof(std::int64_t));
    tensor_slice<const std::int64_t, space> made;
    if (storage_ == nullptr) return made;
    require_space<space>(name);
    // Rows are below 2^63, so either sign reads them.
    const auto* data = reinterpret_cast<const std::int64_t*>((*storage_).*member);
    return tensor_slice<const std::int64_t, space>(std::string("plan::") + name, data, extents, accesses());
  }

  template <class Space>
  void require_space(const char* name) const {
    const bool fits = storage_->on_host
                          ? Space::is_host_accessible || device_backend<Space>::device_is_host
                          : Space::name == storage_->space || (std::is_same_v<Space, device_space> &&
                                                               storage_->space != pageable_space::name);
    if (!fits)
      throw invalid_argument("ferry::row_plan::" + std::string(name) + ": the arrays of a plan by the " +
                             std::string(storage_->backend) + " backend lie in " +
                             std::string(storage_->space) + ", not in " + std::string(Space::name) +
                             "; name the space: plan." + name + "<ferry::" + std::string(storage_->space) +
                             ">()");
  }

  [[nodiscard]] std::shared_ptr<access_tracker> accesses() const {
    if (storage_->accesses != nullptr) return storage_->accesses;
    const auto made = std::make_shared<detail::plan_reads>();
    made->plan = storage_;
    made->accesses.add_write(storage_->made, storage_->made_by);
    return {made, &made->accesses};
  }

  std::shared_ptr<plan_storage> storage_;
};

}  // namespace ferry

/// ferry::after takes a plan, too: what is ordered comes after the making of the plan.
template <>
inline constexpr bool ferry::detail::is_earlier_work<ferry::row_plan> = true;
