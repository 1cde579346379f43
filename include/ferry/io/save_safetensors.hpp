// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/execution_space.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/tensor/array_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::io {

/// An array of any type and memory space, with the name that it has in a file: what save_safetensors takes.
/// It refers to the array, which must outlive it; it takes over a temporary tensor, vector or array.
class named_array {
 public:
  /// The name is UTF-8 text.
  template <class Array>
    requires ArrayLike<std::remove_reference_t<Array>> named_array(std::string name, Array&& array) {
      using plain = std::remove_cvref_t<Array>;
      detail::require_file_elements<plain>();
      using element = detail::file_element<plain>;
      static_assert(
          detail::safetensors_index(detail::dtype_of<element>()) < detail::safetensors_dtypes.size(),
          "ferry: safetensors has types for bool, integers, half_t, bhalf_t, float, double, complex floats and floating-point numbers of 8 and 4 bits only; save structs as .npy.");
      const plain* source = &array;
      if constexpr (detail::owns_elements_briefly<Array>) {
        auto owner = std::make_shared<const plain>(std::forward<Array>(array));
        source = owner.get();
        owner_ = std::move(owner);
      }
      const auto reference = detail::read_only(make_ref(*source));
      detail::require_extents("save_safetensors", reference.note());
      entry_.name = std::move(name);
      entry_.type = detail::safetensors_index(detail::dtype_of<element>());
      for (std::size_t i = 0; i < reference.rank; ++i)
        entry_.shape.push_back(static_cast<std::size_t>(reference.extents[i]));
      entry_.shape.back() *= detail::safetensors_dtypes[entry_.type].elements();
      entry_.end = static_cast<std::uint64_t>(reference.size()) * sizeof(element);
      write_ = [reference](const detail::file& target, std::uint64_t offset) {
        detail::write_rows<detail::may_have_strides<plain>>(reference, target, offset);
      };
    }

  /// The description for a file's header; its bytes begin at 0.
  [[nodiscard]] const detail::safetensors_entry& entry() const noexcept { return entry_; }
  /// Writes the elements in row-major order.
  void write(const detail::file& target, std::uint64_t offset) const { write_(target, offset); }

 private:
  detail::safetensors_entry entry_;
  std::shared_ptr<const void> owner_;  ///< of a temporary
  std::function<void(const detail::file& target, std::uint64_t offset)> write_;
};

/// Writes arrays of any memory spaces to one safetensors file, in the reference implementation's layout.
/// Returns when the file is on the disk.
///
///   ferry::io::save_safetensors("m.safetensors", {{"w", table}, {"b", bias}});
///
///   exec      the save comes after the work enqueued on this instance so far; without it, after the verbs in
///             flight that write to a tensor
///   path      the file; it appears as a whole or not at all, so after a failure an old file is as it was. A
///             symbolic link is followed
///   arrays    names and arrays: bool, integers, half_t, bhalf_t, float, double, complex floats
///   metadata  pairs of UTF-8 strings, {{"format", "pt"}} say
///
/// Throws invalid_argument for names that are not UTF-8, come twice or are "__metadata__", and for an empty
/// handle; io_error, which names the path and what failed.
/// @{
void save_safetensors(const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {});
inline void save_safetensors(const std::string& path, std::initializer_list<named_array> arrays,
                             const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  save_safetensors(path, std::span(arrays.begin(), arrays.size()), metadata);
}
template <ExecutionSpace Exec>
void save_safetensors(const Exec& exec, const std::string& path, std::span<const named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  detail::fence_for_file(exec, "save_safetensors");
  save_safetensors(path, arrays, metadata);
}
template <ExecutionSpace Exec>
void save_safetensors(const Exec& exec, const std::string& path, std::initializer_list<named_array> arrays,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  save_safetensors(exec, path, std::span(arrays.begin(), arrays.size()), metadata);
}
/// @}

/// Refuses arrays without names. Does not compile.
template <class... Arguments>
  requires(!(std::is_convertible_v<const Arguments&, std::span<const named_array>> || ...))
void save_safetensors(const Arguments&...) {
  static_assert(
      sizeof...(Arguments) > 16,
      "ferry: save_safetensors is called as save_safetensors(path, {{\"weights\", table}, {\"bias\", bias}}), with a name for each array; an execution space instance may come first.");
}

}  // namespace ferry::io
