// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/detail/tensor_memory.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {
/// The function that tensor::clone calls; defined in rows/clone.hpp.
template <class Dependent>
struct clone_function;
}  // namespace detail

/// Owning, move-only, row-major array in one memory space. Its elements are not initialised: see ferry::init.
///
///   tensor<float, mapped_space> table("weights", rows, 128);                 // extents from the arguments
///   tensor<float, mapped_space, extents<dyn, 128>> table("weights", rows);   // width fixed by the type
///   tensor<float, device_space> second("weights", ferry::device{1}, rows, 128);   // on the second device
///
/// A *row* is the part of the array with one index of the first extent; a tensor of rank 1 has rows of one
/// element. Extents may be zero. The destructor frees the memory, or keeps it for the next tensor of its
/// size, and does not wait: work in flight that uses the tensor must have ended, see ferry::ticket.
template <class T, class Space, class Extents = dynamic_rank>
class tensor {
  static_assert(!std::is_const_v<T>,
                "ferry::tensor: the element type must not be const; use a view for that");

 public:
  using value_type = T;          ///< elements
  using memory_space = Space;    ///< where they lie
  using extents_type = Extents;  ///< ferry::extents or dynamic_rank

  /// An empty handle: no memory, no label.
  tensor() = default;

  /// Allocates an array with these extents, rows first; if the type fixes some of them, all or only the
  /// others. `label` names the tensor in messages and statistics. Throws invalid_argument for extents that
  /// are negative, contradict the type or overflow; bad_alloc if the memory is not available;
  /// budget_exceeded.
  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1 || detail::is_fixed<Extents>)
  explicit tensor(std::string label, Sizes... sizes)
      : tensor(label, ferry::device{}, detail::checked_extents(label, sizes...)) {}

  /// As above, with the extents as one array, a std::array say.
  tensor(std::string label, std::span<const std::size_t> sizes)
      : tensor(std::move(label), ferry::device{}, sizes) {}

  /// As above, on the device `where`: device_space in its memory; the spaces of host memory on the machine's
  /// node that is nearest to it. Also throws invalid_argument if the machine has no such device.
  /// @{
  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1 || detail::is_fixed<Extents>)
  explicit tensor(std::string label, ferry::device placement, Sizes... sizes)
      : tensor(label, placement, detail::checked_extents(label, sizes...)) {}
  tensor(std::string label, ferry::device placement, std::span<const std::size_t> sizes)
      : tensor(std::make_shared<const std::string>(std::move(label)), placement, sizes) {}
  /// @}

  /// A tensor over existing memory, see adopt. `owner` is released with the tensor. `where` is the device
  /// that works on the memory, if it is known.
  tensor(std::string label, const shape<Extents>& extents, T* data, std::shared_ptr<void> owner,
         ferry::device placement = {})
      : memory_(std::move(label), std::move(owner), placement), shape_(extents), data_(data) {}

  /// Refuses arguments without a label or extents, or with extents that are no integers. Does not compile.
  template <class First, class... Rest>
    requires(detail::is_refused_tensor<detail::is_fixed<Extents>, First, Rest...>())
  explicit tensor(const First&, const Rest&...) { detail::refuse_tensor<First, Rest...>(); }

  tensor(const tensor&) = delete;  // no copy by accident: clone(exec, table), view() in kernels
  tensor& operator=(const tensor&) = delete;
  /// Refuses a copy, for which compilers say the sentence. Does not compile.
  template <std::same_as<tensor> Self>
  tensor(Self&) {
    detail::refuse_tensor_copy<Self>();
  }
  /// Takes the memory of `other`, which becomes an empty handle with its label.
  tensor(tensor&& source) noexcept
      : memory_(std::move(source.memory_)),
        shape_(std::exchange(source.shape_, {})),
        data_(std::exchange(source.data_, nullptr)) {}
  /// Frees its memory and takes that of `other`, which becomes an empty handle.
  tensor& operator=(tensor&& source) noexcept {
    memory_ = std::move(source.memory_);
    shape_ = std::exchange(source.shape_, {});
    data_ = std::exchange(source.data_, nullptr);
    return *this;
  }
  ~tensor() = default;

  /// Element (i, j, ...), one index per extent, for host code. Compiles for pinned_space, mapped_space and
  /// pageable_space, on no backend for device_space. It does not wait: wait for the tickets of verbs that
  /// write to the tensor, and before writing to an element also for those of verbs that read it. assert()
  /// checks the indices.
  /// @{
  template <class... Indices>
  T& operator()(Indices... indices) {
    return detail::host_element<Space>(data_, shape_, indices...);
  }
  template <class... Indices>
  const T& operator()(Indices... indices) const {
    return detail::host_element<Space, const T>(data_, shape_, indices...);
  }
  /// @}

  /// All elements, row by row, as an array of rank 1: the gradients of a matrix as those of a bias, say. Does
  /// not compile for a temporary tensor, whose memory the slice would outlive.
  /// @{
  [[nodiscard]] tensor_slice<T, Space, ferry::extents<dyn>> flat() & {
    return detail::flat_elements<Space>(memory_.shared_label(), data_, shape_, memory_.accesses());
  }
  [[nodiscard]] tensor_slice<const T, Space, ferry::extents<dyn>> flat() const& {
    return detail::flat_elements<Space, const T>(memory_.shared_label(), data_, shape_, memory_.accesses());
  }
  template <std::integral Refused = int>
  void flat() && {
    detail::refuse_brief_slice<Refused>();
  }
  /// @}

  /// The first `rows` rows, as an argument of verbs. Throws out_of_range for a number that is negative or
  /// above rows(). Does not compile for a temporary tensor, whose memory the slice would outlive.
  /// @{
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<T, Space, Extents> first(Rows rows) & {
    return detail::first_rows<Space>(memory_.shared_label(), data_, shape_, memory_.accesses(), rows);
  }
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> first(Rows rows) const& {
    return detail::first_rows<Space, const T>(memory_.shared_label(), data_, shape_, memory_.accesses(),
                                              rows);
  }
  template <std::integral Rows>
  void first(Rows) && {
    detail::refuse_brief_slice<Rows>();
  }
  /// @}

  /// Rows [begin, end), as an argument of verbs. Throws out_of_range if one of the two is negative or
  /// above rows(), and invalid_argument if begin > end. Does not compile for a temporary tensor.
  /// @{
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<T, Space, Extents> rows_between(Begin begin, End end) & {
    return detail::rows_between<Space>(memory_.shared_label(), data_, shape_, memory_.accesses(), begin, end);
  }
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> rows_between(Begin begin, End end) const& {
    return detail::rows_between<Space, const T>(memory_.shared_label(), data_, shape_, memory_.accesses(),
                                                begin, end);
  }
  template <std::integral Begin, std::integral End>
  void rows_between(Begin, End) && {
    detail::refuse_brief_slice<Begin>();
  }
  /// @}

  /// A deep copy in the same memory space, as a future of a tensor; see ferry::clone.
  template <class Exec>
  [[nodiscard]] auto clone(const Exec& exec) const {
    return detail::clone_function<Exec>{}(exec, *this);
  }

  /// The first element, in memory of Space; null for an empty handle.
  /// @{
  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  /// @}
  /// The first extent.
  [[nodiscard]] std::size_t rows() const noexcept { return shape_.rows(); }
  /// Elements of a row: the product of the extents after the first.
  [[nodiscard]] std::size_t width() const noexcept { return shape_.width(); }
  /// Extent i, 1 for i >= rank().
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return shape_.extent(i); }
  /// All extents, rows first.
  [[nodiscard]] std::span<const std::size_t> sizes() const noexcept { return shape_.sizes(); }
  /// Number of extents.
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.rank(); }
  /// Number of elements, rows() * width().
  [[nodiscard]] std::size_t size() const noexcept { return shape_.size(); }
  /// The device that has the memory, for device_space; no device, device{-1}, for host memory, which all
  /// devices share, for memory of other libraries and for an empty handle. Verbs refuse arrays on another
  /// device than that of their execution space instance; ferry::copy moves rows between devices.
  [[nodiscard]] ferry::device device() const noexcept {
    return {accesses() == nullptr ? -1 : accesses()->device()};
  }
  /// The label given to the constructor, which stays when the memory is moved; empty for a default handle.
  [[nodiscard]] const std::string& label() const noexcept { return memory_.label(); }
  /// The label, shared; null for a handle without one.
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept {
    return memory_.shared_label();
  }

  /// A view for kernels, and for verbs; the tensor must outlive their work.
  /// @{
  [[nodiscard]] tensor_view<T, Space, Extents> view() noexcept { return {data_, shape_, lasting_label()}; }
  [[nodiscard]] tensor_view<const T, Space, Extents> view() const noexcept {
    return {data_, shape_, lasting_label()};
  }
  /// @}

  /// Label, extents and how the memory was obtained, with fallbacks, as text.
  [[nodiscard]] std::string describe() const { return memory_.describe(shape_.to_string(), data_); }

  /// The memory; null for an empty handle, and if the tensor has not allocated it. For ferry::share.
  [[nodiscard]] const std::shared_ptr<detail::allocation<Space>>& memory() const noexcept {
    return memory_.memory();
  }
  /// Reads and writes in flight, which verbs record; null for an empty handle.
  [[nodiscard]] const std::shared_ptr<detail::access_tracker>& accesses() const noexcept {
    return memory_.accesses();
  }

 private:
  tensor(std::shared_ptr<const std::string> label, ferry::device placement,
         std::span<const std::size_t> sizes)
      : shape_(shape<Extents>::make(sizes, *label, sizeof(T))) {
    memory_ = {std::move(label), shape_.size() * sizeof(T), placement};
    data_ = static_cast<T*>(memory()->data());
  }

  /// A view of memory of others, or of no memory, may outlive this label.
  [[nodiscard]] const std::string* lasting_label() const noexcept {
    return memory() == nullptr || size() == 0 ? nullptr : shared_label().get();
  }

  detail::tensor_memory<Space> memory_;
  shape<Extents> shape_;
  T* data_ = nullptr;
};

/// Refuses elements that are not copied byte by byte, and other memory spaces than ferry's. Does not compile.
template <class T, class Space, class Extents>
  requires(!(Element<T> && MemorySpace<Space>))
class tensor<T, Space, Extents> {
  static_assert(detail::refuse_tensor_types<T, Space>());

 public:
  /// Takes what is refused.
  template <class... Arguments>
  explicit tensor(const Arguments&...) {}
};

}  // namespace ferry
