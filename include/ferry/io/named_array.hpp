// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ferry::io {

/// An array of any type and memory space, with the name that it has in a file: what save_safetensors takes.
/// It refers to the array, which must outlive it; it takes over a temporary tensor, vector or array.
class named_array {
 public:
  /// The name is UTF-8 text.
  template <class Array>
    requires ArrayLike<std::remove_reference_t<Array>> named_array(std::string name, Array&& array) {
      using plain = std::remove_cvref_t<Array>;
      ferry::detail::require_file_elements<plain>();
      using element = ferry::detail::file_element<plain>;
      static_assert(
          ferry::detail::safetensors_place(ferry::detail::dtype_of<element>()) <
              ferry::detail::safetensors_dtypes.size(),
          "ferry: safetensors has types for bool, integers, half_t, bhalf_t, float, double, complex floats and floating-point numbers of 8 and 4 bits only; save structs as .npy.");
      const plain* source = &array;
      if constexpr (ferry::detail::owns_elements_briefly<Array>) {
        auto owner = std::make_shared<const plain>(std::forward<Array>(array));
        source = owner.get();
        owner_ = std::move(owner);
      }
      const auto reference = ferry::detail::read_only(make_ref(*source));
      ferry::detail::require_extents("save_safetensors", reference.note());
      entry_.name = std::move(name);
      entry_.type = ferry::detail::safetensors_place(ferry::detail::dtype_of<element>());
      for (std::size_t i = 0; i < reference.rank; ++i)
        entry_.shape.push_back(static_cast<std::size_t>(reference.extents[i]));
      entry_.shape.back() *= ferry::detail::safetensors_dtypes[entry_.type].elements();
      entry_.end = static_cast<std::uint64_t>(reference.size()) * sizeof(element);
      using erased = content<decltype(reference), ferry::detail::may_have_strides<plain>>;
      content_ = std::make_shared<const erased>(reference);
    }

  /// The description for a file's header; its place begins at 0.
  [[nodiscard]] const ferry::detail::safetensors_entry& entry() const noexcept { return entry_; }
  /// Writes the elements in row-major order.
  void write(const ferry::detail::file& target, std::uint64_t offset) const {
    content_->write(target, offset);
  }

 private:
  struct any_content {
    any_content() = default;
    any_content(const any_content&) = delete;
    any_content& operator=(const any_content&) = delete;
    virtual ~any_content() = default;
    virtual void write(const ferry::detail::file& target, std::uint64_t offset) const = 0;
  };
  template <class Ref, bool Strided>
  struct content final : any_content {
    explicit content(const Ref& array) : source_(array) {}
    void write(const ferry::detail::file& target, std::uint64_t offset) const override {
      ferry::detail::write_rows<Strided>(source_, target, offset);
    }
    Ref source_;
  };

  ferry::detail::safetensors_entry entry_;
  std::shared_ptr<const void> owner_;  ///< of a temporary
  std::shared_ptr<const any_content> content_;
};

}  // namespace ferry::io
