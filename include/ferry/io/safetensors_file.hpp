// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/extend.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/io/file_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::io {

/// An open safetensors file, see open_safetensors. Its header is checked; its tensors are read when they are
/// loaded. Move-only. Several threads may load from one file.
class safetensors_file {
 public:
  /// See open_safetensors.
  explicit safetensors_file(const std::string& path);

  /// The names of the tensors, in the order of the file.
  [[nodiscard]] std::vector<std::string> names() const;
  /// True if there is a tensor of this name.
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The extents of a tensor; empty for a single element. Throws out_of_range for a name that is not in the
  /// file.
  [[nodiscard]] const std::vector<std::size_t>& shape(std::string_view name) const {
    return entry_of(name).shape;
  }
  /// The element type of a tensor in the words of the format, "F32" say; also one that ferry does not know,
  /// whose tensors can't be loaded. Throws out_of_range for a name that is not in the file.
  [[nodiscard]] std::string_view dtype(std::string_view name) const { return entry_of(name).type_name(); }
  /// The pairs of the file's metadata.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept {
    return header_.metadata;
  }
  /// The path that the file was opened by.
  [[nodiscard]] const std::string& path() const noexcept { return source_.path(); }

  /// A new tensor with a tensor of the file, or with its rows [begin, end) only; its label is the name. A
  /// single element gives a tensor [1]. Returns when the tensor is filled.
  ///
  ///   T        the element type, which must be the file's: half_t for "F16", bhalf_t for "BF16"
  ///   Space    the tensor's memory space
  ///   Extents  the tensor's extents type; one that fixes an extent refuses others
  ///   exec     the instance that copies to a device
  ///   convert_dtype{}  as the last argument: numbers of another type are converted, as ferry::copy does
  ///
  /// Throws out_of_range if there is no tensor of the name, or no such rows; invalid_argument for elements
  /// or extents that are not those of the types, and for elements of an unknown type; io_error; bad_alloc and
  /// budget_exceeded.
  /// @{
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank,
            std::same_as<convert_dtype>... Convert>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name, Convert... convert) const {
    return load<T, Space, Extents>(detail::default_exec_for<Space>(), name, convert...);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, std::integral Begin,
            std::integral End, std::same_as<convert_dtype>... Convert>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name, Begin begin, End end,
                                               Convert... convert) const {
    return load<T, Space, Extents>(detail::default_exec_for<Space>(), name, begin, end, convert...);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, ExecutionSpace Exec,
            std::same_as<convert_dtype>... Convert>
  [[nodiscard]] tensor<T, Space, Extents> load(const Exec& exec, std::string_view name, Convert...) const {
    return load_stored<T, Space, Extents, sizeof...(Convert) != 0>(exec, name, stored(entry_of(name)));
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, ExecutionSpace Exec,
            std::integral Begin, std::integral End, std::same_as<convert_dtype>... Convert>
  [[nodiscard]] tensor<T, Space, Extents> load(const Exec& exec, std::string_view name, Begin begin, End end,
                                               Convert...) const {
    return load_stored<T, Space, Extents, sizeof...(Convert) != 0>(exec, name, rows_of(name, begin, end));
  }
  /// @}

  /// Fills an array that exists with a tensor of the file, or with its rows [begin, end), which have the same
  /// extents. Returns when it is filled. Arguments and errors are those of load_npy into an array; throws
  /// out_of_range, too, if there is no tensor of the name, or no such rows.
  /// @{
  template <class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(std::string_view name, Array&& array, Convert... convert) const {
    load(detail::default_exec_for<detail::file_space<Array>>(), name, array, convert...);
  }
  template <std::integral Begin, std::integral End, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(std::string_view name, Begin begin, End end, Array&& array, Convert... convert) const {
    load(detail::default_exec_for<detail::file_space<Array>>(), name, begin, end, array, convert...);
  }
  template <ExecutionSpace Exec, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(const Exec& exec, std::string_view name, Array&& array, Convert...) const {
    detail::fill_array<false, Convert...>(exec, source_, stored(entry_of(name)), array);
  }
  template <ExecutionSpace Exec, std::integral Begin, std::integral End, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(const Exec& exec, std::string_view name, Begin begin, End end, Array&& array, Convert...) const {
    detail::fill_array<false, Convert...>(exec, source_, rows_of(name, begin, end), array);
  }
  /// @}

  /// A read-only table over a tensor of the file, see map_npy. Throws out_of_range for a name that is not in
  /// the file; invalid_argument for other elements and for elements that are not aligned in the file.
  template <Element T>
  [[nodiscard]] file_table<T> map(std::string_view name) const {
    return detail::map_stored<T>(source_, std::string(name), stored(entry_of(name)));
  }

 private:
  [[nodiscard]] const detail::safetensors_entry* find(std::string_view name) const;
  [[nodiscard]] const detail::safetensors_entry& entry_of(std::string_view name) const;
  [[nodiscard]] detail::stored_array stored(const detail::safetensors_entry& entry) const;

  /// Rows [begin, end) of a tensor.
  template <class Begin, class End>
  [[nodiscard]] detail::stored_array rows_of(std::string_view name, Begin begin, End end) const {
    const auto whole = stored(entry_of(name));
    if (std::cmp_less(begin, 0) || std::cmp_less(end, begin) || std::cmp_greater(end, whole.extents[0]))
      throw out_of_range(detail::joined("ferry::io::safetensors_file: ", path(), ": the tensor ", whole.name,
                                        " has ", whole.extents[0], " rows, and rows ", begin, " to ", end,
                                        " do not lie inside of them"));
    return whole.rows(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  }
  template <class T, class Space, class Extents, bool Converts, class Exec>
  tensor<T, Space, Extents> load_stored(const Exec& exec, std::string_view name,
                                        const detail::stored_array& part) const {
    detail::require_loadable<T, Converts>(source_, part);
    auto array =
        detail::tensor_of<T, Space, Extents>(std::string(name), detail::memory_home(exec), part.sizes());
    detail::read_array<Converts, false>(exec, source_, part, make_ref(array));
    return array;
  }

  detail::file source_;
  detail::safetensors_header header_;
};

/// Opens a safetensors file and checks its header:
///
///   auto m = ferry::io::open_safetensors("m.safetensors");
///   auto w = m.load<float, ferry::device_space>("w");
///   auto part = m.load<float>("w", 100, 200);   // rows 100 to 199 only
///
/// Throws io_error for a file that can't be read, and for one that the reference implementation refuses: a
/// header above 100 MB, no UTF-8, offsets with holes or overlaps, sizes that are not those of shapes, bytes
/// that are missing or left over. It also refuses names that come twice and keys that the format does not
/// have.
[[nodiscard]] safetensors_file open_safetensors(const std::string& path);

}  // namespace ferry::io
