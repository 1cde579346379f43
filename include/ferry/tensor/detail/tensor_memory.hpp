// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/memory/detail/access_tracker.hpp>
#include <ferry/memory/detail/allocation.hpp>
#include <ferry/memory/device.hpp>
#include <ferry/memory/spaces.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// The sentences for arguments that constructors can't take, where a compiler would list the constructors.
namespace ferry::detail {

/// True if the arguments of a tensor lack a label or extents, or have extents that are no integers.
/// `FixedExtents`: the type has all of them.
template <bool FixedExtents, class First, class... Rest>
consteval bool is_refused_tensor() {
  if constexpr (std::is_arithmetic_v<First> || ExecutionSpace<First>)
    return true;
  else if constexpr (std::is_convertible_v<const First&, std::string_view>)
    return (sizeof...(Rest) == 0 && !FixedExtents) || (std::is_floating_point_v<Rest> || ...);
  else
    return false;
}

/// `Arguments` are those of the constructor.
template <class First, class... Arguments>
consteval void refuse_tensor() {
  static_assert(
      !ExecutionSpace<First>,
      "ferry: a tensor takes no execution space instance, verbs do; its arguments are its label and extents: tensor<T, Space>(\"weights\", rows, width).");
  static_assert(
      ExecutionSpace<First> || !std::is_arithmetic_v<First>,
      "ferry: the first argument of a tensor is its label, which messages and statistics name: tensor<T, Space>(\"weights\", rows, width).");
  if constexpr (!ExecutionSpace<First> && !std::is_arithmetic_v<First>) {
    static_assert(
        sizeof...(Arguments) > 0,
        "ferry: a tensor needs its extents after the label, rows first: tensor<T, Space>(\"weights\", rows, width).");
    static_assert(sizeof...(Arguments) == 0 || std::is_arithmetic_v<First>,
                  "ferry: the extents of a tensor are integers: tensor<T, Space>(\"weights\", rows, width).");
  }
}

template <class Tensor>
consteval void refuse_tensor_copy() {
  static_assert(
      sizeof(Tensor) == 0,
      "ferry: a tensor is not copied by accident: clone(exec, table).get() is a deep copy, std::move hands the memory on, a function takes it by reference, and a kernel captures a view that was made before it, auto rows = table.view().");
}

/// True if the arguments of a quantized_tensor are not its label, its rows and its width.
template <class First, class... Rest>
consteval bool is_refused_quantized() {
  if constexpr (std::is_convertible_v<const First&, std::string_view>)
    return sizeof...(Rest) != 2 || !(std::is_integral_v<Rest> && ...);
  else
    return std::is_arithmetic_v<First> || ExecutionSpace<First>;
}
template <class First>
consteval void refuse_quantized() {
  static_assert(
      sizeof(First) == 0,
      "ferry: the arguments of a quantized_tensor are its label, its rows and its width in numbers: quantized_tensor<quantization::mxfp8, Space>(\"codes\", rows, width).");
}

/// Refuses the template arguments of a tensor.
template <class T, class Space>
consteval bool refuse_tensor_types() {
  constexpr bool element = Element<T>, space = MemorySpace<Space>;
  static_assert(
      element,
      "ferry: the elements of a tensor must be trivially copyable, because verbs copy their bytes: numbers, or structs of numbers. A std::string or a std::vector owns memory.");
  static_assert(
      space || !element,
      "ferry: the second template argument of a tensor is one of ferry's memory spaces: device_space, pinned_space, mapped_space or pageable_space.");
  return true;
}

/// An argument that a refused call lacks. Never defined.
template <class T>
T absent_argument();

/// `Rows` is a template parameter of the caller, so that the sentence waits for its instantiation.
template <class First, class Rows>
consteval void refuse_sharded_table() {
  static_assert(
      sizeof(First) + sizeof(Rows) == 0,
      "ferry: the arguments of a sharded_table are its label, its communicator and its extents: sharded_table<T, Space>(\"weights\", comm, rows, width).");
}

/// The part of a tensor that does not depend on its elements: label, memory and the record of its use.
template <MemorySpace Space>
class tensor_memory {
 public:
  tensor_memory() noexcept = default;
  /// Allocates.
  tensor_memory(std::shared_ptr<const std::string> label, std::size_t bytes, device placement);
  /// Keeps the owner of memory that exists.
  tensor_memory(std::string label, std::shared_ptr<void> owner, device placement);
  tensor_memory(tensor_memory&& source) noexcept;
  tensor_memory& operator=(tensor_memory&& source) noexcept;
  ~tensor_memory() { end(); }

  [[nodiscard]] const std::string& label() const noexcept;
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_label() const noexcept { return label_; }
  [[nodiscard]] const std::shared_ptr<allocation<Space>>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<access_tracker>& accesses() const noexcept { return accesses_; }
  /// `shape`: the extents as text; `data`: the first element.
  [[nodiscard]] std::string describe(const std::string& shape, const void* data) const;

 private:
  /// The tensor ends, or takes other memory.
  void end() noexcept;

  std::shared_ptr<const std::string> label_;  // stays when the memory is moved, for messages
  std::shared_ptr<allocation<Space>> memory_;
  std::shared_ptr<void> owner_;
  std::shared_ptr<access_tracker> accesses_;
};

template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(std::shared_ptr<const std::string> label, std::size_t bytes,
                                    device placement)
    : label_(std::move(label)),
      memory_([&] {
        if constexpr (has_tensor_pool<Space>)
          return pooled_memory<Space>::allocate("tensor::" + *label_, bytes, placement.id);
        else
          return std::make_shared<allocation<Space>>("tensor::" + *label_, bytes, placement.id);
      }()),
      accesses_(std::make_shared<access_tracker>(memory_->device())) {}
template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(std::string label, std::shared_ptr<void> owner, device placement)
    : label_(std::make_shared<const std::string>(std::move(label))),
      owner_(std::move(owner)),
      accesses_(std::make_shared<access_tracker>(placement.id)) {}
template <MemorySpace Space>
tensor_memory<Space>::tensor_memory(tensor_memory&& source) noexcept
    : label_(source.label_),
      memory_(std::move(source.memory_)),
      owner_(std::move(source.owner_)),
      accesses_(std::move(source.accesses_)) {}
template <MemorySpace Space>
tensor_memory<Space>& tensor_memory<Space>::operator=(tensor_memory&& source) noexcept {
  if (this != &source) {
    std::destroy_at(this);
    std::construct_at(this, std::move(source));
  }
  return *this;
}

template <MemorySpace Space>
void tensor_memory<Space>::end() noexcept {
  if constexpr (has_tensor_pool<Space>)
    if (memory_ != nullptr) pooled_memory<Space>::end(std::move(memory_), *accesses_);
}

template <MemorySpace Space>
const std::string& tensor_memory<Space>::label() const noexcept {
  static const std::string none;
  return label_ ? *label_ : none;
}

template <MemorySpace Space>
std::string tensor_memory<Space>::describe(const std::string& shape, const void* data) const {
  std::string text = joined("'", label(), "' ", shape, " in ");
  if (memory_ != nullptr) return text + memory_->describe();
  return joined(text, Space::name, (data != nullptr ? ": adopted memory" : ": no memory"));
}

// The library holds those of ferry's spaces; a space of a user's compiles its own.
extern template class tensor_memory<device_space>;
extern template class tensor_memory<pinned_space>;
extern template class tensor_memory<mapped_space>;
extern template class tensor_memory<pageable_space>;

}  // namespace ferry::detail
