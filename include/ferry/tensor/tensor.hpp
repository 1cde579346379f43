#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/detail/host_element.hpp>
#include <ferry/tensor/extents.hpp>
#include <ferry/tensor/slice.hpp>
#include <ferry/tensor/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry {

namespace detail {
/// What tensor::clone calls; algorithm/clone.hpp defines it.
template <class Dependent>
struct clone_function;
}  // namespace detail

/// Owning, move-only, row-major array in one memory space. Its elements are not initialised: see ferry::init.
///
///   Rank and extents from the constructor:
///     tensor<float, mapped_space> table("weights", rows, 128);
///   Width fixed by the type:
///     tensor<float, mapped_space, extents<dyn, 128>> table("weights", rows);
///
/// A *row* is everything behind the first extent; a table of rank 1 has rows of one element. Extents may be
/// zero. The memory is freed at destruction: work in flight that uses it must have ended (its tickets say
/// when). Throws invalid_argument for extents that contradict the type or overflow, bad_alloc where the
/// memory can't be had.
template <Element T, MemorySpace Space, class Extents = dynamic_rank>
class tensor {
  static_assert(!std::is_const_v<T>,
                "ferry::tensor: the element type must not be const; use a view for that");

 public:
  using value_type = T;
  using memory_space = Space;
  using extents_type = Extents;

  tensor() = default;

  template <std::integral... Sizes>
    requires(sizeof...(Sizes) >= 1 || detail::is_fixed<Extents>())
  explicit tensor(std::string label, Sizes... sizes)
      : tensor(label, detail::checked_extents(label, sizes...)) {}

  template <std::size_t N>
  tensor(std::string label, const std::array<std::size_t, N>& sizes)
      : label_(std::make_shared<const std::string>(std::move(label))),
        shape_(shape<Extents>::make(sizes, *label_, sizeof(T))),
        memory_(std::make_shared<allocation<Space>>("tensor::" + *label_, shape_.size() * sizeof(T))),
        data_(static_cast<T*>(memory_->data())),
        accesses_(std::make_shared<access_tracker>()) {}

  /// A tensor over memory of somebody else; `owner` is dropped with the tensor.
  tensor(std::string label, const shape<Extents>& extents, T* data, std::shared_ptr<void> owner)
      : label_(std::make_shared<const std::string>(std::move(label))),
        shape_(extents),
        owner_(std::move(owner)),
        data_(data),
        accesses_(std::make_shared<access_tracker>()) {}

  tensor(const tensor&) = delete;
  tensor& operator=(const tensor&) = delete;
  tensor(tensor&& other) noexcept
      : label_(std::move(other.label_)),
        shape_(std::exchange(other.shape_, {})),
        memory_(std::move(other.memory_)),
        owner_(std::move(other.owner_)),
        data_(std::exchange(other.data_, nullptr)),
        accesses_(std::move(other.accesses_)) {}
  tensor& operator=(tensor&& other) noexcept {
    label_ = std::move(other.label_);
    shape_ = std::exchange(other.shape_, {});
    memory_ = std::move(other.memory_);
    owner_ = std::move(other.owner_);
    data_ = std::exchange(other.data_, nullptr);
    accesses_ = std::move(other.accesses_);
    return *this;
  }
  ~tensor() = default;

  /// Element (i, j, ...), one index for each extent, for host code: compiles for pinned, mapped and pageable space,
  /// and on no backend for device_space. It waits for nothing: the tickets of the verbs that write to the tensor must
  /// have been waited for, and to write to an element those of its readers too. Indices are checked by assert().
  template <class... Indices>
  T& operator()(Indices... indices) {
    return detail::host_element<Space>(data_, shape_, indices...);
  }
  template <class... Indices>
  const T& operator()(Indices... indices) const {
    return detail::host_element<Space, const T>(data_, shape_, indices...);
  }

  /// The first `rows` rows, as an argument of verbs. Throws out_of_range for a number that is negative or above the
  /// tensor's. Not of a temporary, whose memory would go with it.
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<T, Space, Extents> first(Rows rows) & {
    return detail::first_rows<Space>(label_, data_, shape_, accesses_, rows);
  }
  template <std::integral Rows>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> first(Rows rows) const& {
    return detail::first_rows<Space, const T>(label_, data_, shape_, accesses_, rows);
  }
  template <std::integral Rows>
  void first(Rows) && {
    static_assert(
        !std::integral<Rows>,
        "ferry: a slice does not own memory, so it can't be one of a temporary tensor; keep the tensor in a variable.");
  }

  /// The rows from `begin` up to, and without, `end`. Throws out_of_range where one of the two is negative or above the
  /// tensor's number of rows, invalid_argument where begin is above end.
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<T, Space, Extents> rows_between(Begin begin, End end) & {
    return detail::rows_between<Space>(label_, data_, shape_, accesses_, begin, end);
  }
  template <std::integral Begin, std::integral End>
  [[nodiscard]] detail::slice_of<const T, Space, Extents> rows_between(Begin begin, End end) const& {
    return detail::rows_between<Space, const T>(label_, data_, shape_, accesses_, begin, end);
  }
  template <std::integral Begin, std::integral End>
  void rows_between(Begin, End) && {
    static_assert(
        !std::integral<Begin>,
        "ferry: a slice does not own memory, so it can't be one of a temporary tensor; keep the tensor in a variable.");
  }

  /// A deep copy in the same space, see ferry::clone: a future of a tensor.
  template <class Exec>
  [[nodiscard]] auto clone(const Exec& exec) const {
    return detail::clone_function<Exec>{}(exec, *this);
  }

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t rows() const noexcept { return shape_.rows(); }
  /// Elements behind the first extent.
  [[nodiscard]] std::size_t width() const noexcept { return shape_.width(); }
  [[nodiscard]] std::size_t extent(std::size_t i) const noexcept { return shape_.extent(i); }
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.rank(); }
  [[nodiscard]] std::size_t size() const noexcept { return shape_.size(); }
  [[nodiscard]] const std::string& label() const noexcept {
    static const std::string none;
    return label_ ? *label_ : none;
  }
  /// The same, shared; null for an empty tensor.
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept { return label_; }

  [[nodiscard]] tensor_view<T, Space, Extents> view() noexcept { return {data_, shape_}; }
  [[nodiscard]] tensor_view<const T, Space, Extents> view() const noexcept { return {data_, shape_}; }

  /// Label, extents, and how the memory was obtained, fallbacks included.
  [[nodiscard]] std::string describe() const {
    const std::string where = memory_            ? memory_->describe()
                              : data_ != nullptr ? std::string(Space::name) + ": adopted memory"
                                                 : std::string(Space::name) + ": no memory";
    return "'" + label() + "' " + shape_.to_string() + " in " + where;
  }

  /// Reads and writes in flight; null for an empty tensor. Verbs keep it up to date.
  [[nodiscard]] const std::shared_ptr<access_tracker>& accesses() const noexcept { return accesses_; }

 private:
  std::shared_ptr<const std::string> label_;
  shape<Extents> shape_;
  std::shared_ptr<allocation<Space>> memory_;
  std::shared_ptr<void> owner_;
  T* data_ = nullptr;
  std::shared_ptr<access_tracker> accesses_;
};

}  // namespace ferry
