// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/concepts/element.hpp>
#include <ferry/concepts/execution_space.hpp>
#include <ferry/concepts/memory_space.hpp>
#include <ferry/error.hpp>
#include <ferry/io/convert_dtype.hpp>
#include <ferry/io/detail/array_arguments.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/fill_array.hpp>
#include <ferry/io/detail/json_text.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/io/detail/safetensors_header.hpp>
#include <ferry/io/detail/stream_rows.hpp>
#include <ferry/io/file_table.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/tensor/array_traits.hpp>
#include <ferry/tensor/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
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
  template <class...>  // these are compiled only where they are called
  explicit safetensors_file(const std::string& path)
      : from_(ferry::detail::file::open_to_read("open_safetensors", path)),
        header_(ferry::detail::read_safetensors_header(from_)) {}

  /// The names of the tensors, in the order of the file.
  template <class...>
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& each : header_.entries) all.push_back(each.name);
    return all;
  }
  /// Whether there is a tensor of this name.
  template <class...>
  [[nodiscard]] bool contains(std::string_view name) const {
    return find(name) != nullptr;
  }
  /// The extents of a tensor; empty for a single element. Throws out_of_range for a name that is not in the
  /// file.
  template <class...>
  [[nodiscard]] const std::vector<std::size_t>& shape(std::string_view name) const {
    return entry_of(name).shape;
  }
  /// The element type of a tensor in the words of the format, "F32" say; also one that ferry does not know,
  /// whose tensors can't be loaded. Throws out_of_range for a name that is not in the file.
  template <class...>
  [[nodiscard]] std::string_view dtype(std::string_view name) const {
    return entry_of(name).type_name();
  }
  /// The pairs of the file's metadata.
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept {
    return header_.metadata;
  }
  /// The path that the file was opened by.
  [[nodiscard]] const std::string& path() const noexcept { return from_.path(); }

  /// A new tensor with a tensor of the file, or with its rows [begin, end) only; its label is the name. A
  /// single element gives a tensor [1]. Returns when the tensor is filled.
  ///
  ///   T        the element type, which must be the file's: half_t for "F16", bhalf_t for "BF16"
  ///   Space    the tensor's memory space
  ///   Extents  the tensor's extents type; one that fixes an extent refuses others
  ///   exec     the instance that copies to a device
  ///   convert_dtype{}  as the last argument: numbers of another type are converted, as ferry::copy does
  ///
  /// Throws out_of_range where there is no tensor of the name, or no such rows; invalid_argument for elements
  /// or extents that are not those of the types, and for elements of an unknown type; io_error; bad_alloc and
  /// budget_exceeded.
  /// @{
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name) const {
    return load_all<T, Space, Extents, false>(ferry::detail::default_exec_for<Space>(), name);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name, convert_dtype) const {
    return load_all<T, Space, Extents, true>(ferry::detail::default_exec_for<Space>(), name);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, std::integral Begin,
            std::integral End>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name, Begin begin, End end) const {
    return load_rows<T, Space, Extents, false>(ferry::detail::default_exec_for<Space>(), name, begin, end);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, std::integral Begin,
            std::integral End>
  [[nodiscard]] tensor<T, Space, Extents> load(std::string_view name, Begin begin, End end,
                                               convert_dtype) const {
    return load_rows<T, Space, Extents, true>(ferry::detail::default_exec_for<Space>(), name, begin, end);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, ExecutionSpace Exec>
  [[nodiscard]] tensor<T, Space, Extents> load(const Exec& exec, std::string_view name) const {
    return load_all<T, Space, Extents, false>(exec, name);
  }
  template <Element T, MemorySpace Space = pageable_space, class Extents = dynamic_rank, ExecutionSpace Exec,
            std::integral Begin, std::integral End>
  [[nodiscard]] tensor<T, Space, Extents> load(const Exec& exec, std::string_view name, Begin begin,
                                               End end) const {
    return load_rows<T, Space, Extents, false>(exec, name, begin, end);
  }
  /// @}

  /// Fills an array that exists with a tensor of the file, or with its rows [begin, end), which have the same
  /// extents. Returns when it is filled. Arguments and errors are those of load_npy into an array; throws
  /// out_of_range, too, where there is no tensor of the name, or no such rows.
  /// @{
  template <class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(std::string_view name, Array&& array, Convert... convert) const {
    load(ferry::detail::default_exec_for<ferry::detail::file_space<Array>>(), name, array, convert...);
  }
  template <std::integral Begin, std::integral End, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(std::string_view name, Begin begin, End end, Array&& array, Convert... convert) const {
    load(ferry::detail::default_exec_for<ferry::detail::file_space<Array>>(), name, begin, end, array,
         convert...);
  }
  template <ExecutionSpace Exec, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(const Exec& exec, std::string_view name, Array&& array, Convert...) const {
    ferry::detail::fill_array<false, Convert...>(exec, from_, stored(entry_of(name)), array);
  }
  template <ExecutionSpace Exec, std::integral Begin, std::integral End, class Array, class... Convert>
    requires ArrayLike<std::remove_reference_t<Array>>
  void load(const Exec& exec, std::string_view name, Begin begin, End end, Array&& array, Convert...) const {
    ferry::detail::fill_array<false, Convert...>(exec, from_, rows_of(name, begin, end), array);
  }
  /// @}

  /// A read-only table over a tensor of the file, see map_npy. Throws out_of_range for a name that is not in
  /// the file; invalid_argument for other elements and for elements that are not aligned in the file.
  template <Element T>
  [[nodiscard]] file_table<T> map(std::string_view name) const {
    return ferry::detail::map_stored<T>(from_, std::string(name), stored(entry_of(name)));
  }

 private:
  template <class...>
  [[nodiscard]] const ferry::detail::safetensors_entry* find(std::string_view name) const {
    const auto& all = header_.entries;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    return found == all.end() ? nullptr : &*found;
  }
  template <class...>
  [[nodiscard]] const ferry::detail::safetensors_entry& entry_of(std::string_view name) const {
    if (const auto* found = find(name)) return *found;
    throw out_of_range("ferry::io::safetensors_file: " + path() + ": there is no tensor " +
                       ferry::detail::json_quoted(name));
  }
  template <class...>
  [[nodiscard]] ferry::detail::stored_array stored(const ferry::detail::safetensors_entry& entry) const {
    if (entry.shape.size() > max_rank)
      throw invalid_argument("ferry::io::safetensors_file: " + path() + ": the tensor " +
                             ferry::detail::json_quoted(entry.name) + " has rank " +
                             std::to_string(entry.shape.size()) + ", above the largest, " +
                             std::to_string(max_rank));
    if (!entry.has_known_type())
      throw invalid_argument("ferry::io::safetensors_file: " + path() + ": the tensor " +
                             ferry::detail::json_quoted(entry.name) + " has elements of the type " +
                             ferry::detail::json_quoted(entry.unknown_type.substr(0, 40)) +
                             ", which is unknown");
    const auto& type = ferry::detail::safetensors_dtypes[entry.type];
    ferry::detail::stored_array made;
    made.name = ferry::detail::json_quoted(entry.name);
    made.elements = {type.kind, type.bits / 8};
    made.type_text = type.name;
    made.rank = std::max<std::size_t>(1, entry.shape.size());
    made.extents[0] = 1;
    std::copy(entry.shape.begin(), entry.shape.end(), made.extents.begin());
    made.offset = header_.bytes + entry.begin;
    return made;
  }

  template <class T, class Space, class Extents, bool Converts, class Exec>
  tensor<T, Space, Extents> load_all(const Exec& exec, std::string_view name) const {
    return load_stored<T, Space, Extents, Converts>(exec, name, stored(entry_of(name)));
  }
  template <class T, class Space, class Extents, bool Converts, class Exec, class Begin, class End>
  tensor<T, Space, Extents> load_rows(const Exec& exec, std::string_view name, Begin begin, End end) const {
    return load_stored<T, Space, Extents, Converts>(exec, name, rows_of(name, begin, end));
  }
  /// Rows [begin, end) of a tensor.
  template <class Begin, class End>
  [[nodiscard]] ferry::detail::stored_array rows_of(std::string_view name, Begin begin, End end) const {
    auto part = stored(entry_of(name));
    if (std::cmp_less(begin, 0) || std::cmp_less(end, begin) || std::cmp_greater(end, part.extents[0]))
      throw out_of_range("ferry::io::safetensors_file: " + path() + ": the tensor " +
                         ferry::detail::json_quoted(name) + " has " + std::to_string(part.extents[0]) +
                         " rows, and rows " + std::to_string(begin) + " to " + std::to_string(end) +
                         " do not lie inside of them");
    std::uint64_t row_bytes = part.elements.bytes;
    for (std::size_t i = 1; i < part.rank; ++i) row_bytes *= part.extents[i];
    part.extents[0] = static_cast<std::size_t>(end) - static_cast<std::size_t>(begin);
    part.offset += static_cast<std::uint64_t>(begin) * row_bytes;
    return part;
  }
  template <class T, class Space, class Extents, bool Converts, class Exec>
  tensor<T, Space, Extents> load_stored(const Exec& exec, std::string_view name,
                                        const ferry::detail::stored_array& part) const {
    ferry::detail::require_loadable<T, Converts>(from_, part);
    auto made = ferry::detail::tensor_of<T, Space, Extents>(std::string(name),
                                                            ferry::detail::memory_home(exec), part.sizes());
    ferry::detail::read_array<Converts, false>(exec, from_, part, make_ref(made));
    return made;
  }

  ferry::detail::file from_;
  ferry::detail::safetensors_header header_;
};

}  // namespace ferry::io
