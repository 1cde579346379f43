// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/manifest.hpp>
#include <ferry/io/detail/read_array.hpp>
#include <ferry/tensor/fp4.hpp>
#include <ferry/tensor/fp8.hpp>
#include <ferry/tensor/half.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ferry::detail {

/// The names of element types in files.
struct dtype_entry {
  std::string_view name;
  dtype type;
};
inline constexpr dtype_entry checkpoint_dtypes[] = {
    {"f64", dtype_of<double>()},         {"f32", dtype_of<float>()},
    {"f16", dtype_of<half_t>()},         {"bf16", dtype_of<bhalf_t>()},
    {"f8_e4m3", dtype_of<fp8_e4m3_t>()}, {"f8_e5m2", dtype_of<fp8_e5m2_t>()},
    {"f8_e8m0", dtype_of<ue8m0_t>()},    {"f4_e2m1_pair", dtype_of<fp4_e2m1_pair_t>()},
    {"bool", dtype_of<bool>()},          {"u8", dtype_of<std::uint8_t>()},
    {"u16", dtype_of<std::uint16_t>()},  {"u32", dtype_of<std::uint32_t>()},
    {"u64", dtype_of<std::uint64_t>()},  {"i8", dtype_of<std::int8_t>()},
    {"i16", dtype_of<std::int16_t>()},   {"i32", dtype_of<std::int32_t>()},
    {"i64", dtype_of<std::int64_t>()}};

/// The name of T; "struct" for everything else and for enumerations, of which the size alone is compared.
template <class T>
constexpr std::string_view dtype_name() {
  if constexpr (!std::is_enum_v<T>)
    for (const auto& known : checkpoint_dtypes)
      if (known.type == dtype_of<T>()) return known.name;
  return "struct";
}

/// The floating-point type of a name; without bytes if it has none. A load converts these into each other.
dtype floating_dtype(std::string_view name);

/// The rows of an array that do not lie in one piece of memory: in the shards of a table, say. Several
/// threads may call it for ranges that share no byte.
class rows_apart {
 public:
  rows_apart() = default;
  rows_apart(const rows_apart&) = delete;
  rows_apart& operator=(const rows_apart&) = delete;
  virtual ~rows_apart() = default;

  /// Copies bytes [offset, offset + bytes) of the array in row-major order out of the rows, or into them.
  /// Blocks.
  /// @{
  virtual void read(std::uint64_t offset, std::size_t bytes, std::byte* target) const = 0;
  virtual void write(std::uint64_t offset, std::size_t bytes, const std::byte* source,
                     const std::shared_ptr<void>& room) const = 0;
  /// @}
  /// Takes the memory that one thread needs to write at most `bytes` bytes at once; `room` may be that of
  /// other arrays.
  virtual void reserve(std::shared_ptr<void>& room, std::size_t bytes) const = 0;
};

/// An array as a file sees it: bytes in row-major order, wherever they lie. Rows may be further apart than
/// they are long.
struct checkpoint_array {
  manifest_array schema;  ///< without chunks
  std::string label;      ///< of the tensor, for messages
  std::byte* data = nullptr;
  std::uint64_t row_bytes = 0;
  std::uint64_t row_stride = 0;  ///< bytes
  bool read_only = false;
  /// Copies of a device's memory, which block; null if the host reaches the memory.
  void (*read_device)(void* host, const void* device, std::size_t bytes) = nullptr;
  void (*write_device)(void* device, const void* host, std::size_t bytes) = nullptr;
  /// See converter_of; null for elements that are not floating-point numbers.
  stored_converter (*converter_from)(const dtype& source) = nullptr;
  std::shared_ptr<access_tracker> accesses;
  std::shared_ptr<void> owner;              ///< of memory that belongs to the file's part of the work
  std::shared_ptr<const rows_apart> apart;  ///< has the rows instead of `data`, if it is not null

  [[nodiscard]] bool is_dense() const { return row_stride == row_bytes; }
  /// The bytes themselves if the host may use them in place, else null.
  [[nodiscard]] std::byte* in_place(std::uint64_t offset) const;

  /// Calls visit(bytes in the array, bytes in the file's order, count) for the runs of adjacent bytes of
  /// [offset, offset + bytes).
  template <class Visit>
  void for_each_run(std::uint64_t offset, std::size_t bytes, const Visit& visit) const {
    if (is_dense()) return visit(offset, std::size_t{0}, bytes);
    for (std::size_t position = 0; position < bytes;) {
      const std::uint64_t row = (offset + position) / row_bytes;
      const std::uint64_t row_offset = (offset + position) % row_bytes;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(row_bytes - row_offset, bytes - position));
      visit(row * row_stride + row_offset, position, count);
      position += count;
    }
  }
  /// The bytes of scratch that write() needs at most.
  [[nodiscard]] std::size_t most_scratch_bytes(std::size_t bytes) const;
  /// Copies bytes [offset, offset + bytes) of the file's order out of the array, or into it. Blocks. An array
  /// of rows that lie apart is written by these. `scratch` is for strided rows in a device's memory: they
  /// travel with what lies between them.
  /// @{
  void read(std::uint64_t offset, std::size_t bytes, std::byte* target,
            std::vector<std::byte>& scratch) const;
  void write(std::uint64_t offset, std::size_t bytes, const std::byte* source,
             std::vector<std::byte>& scratch) const;
  /// @}

 private:
  /// Reads the memory that a range of the file's order spans. Returns the number of its first byte.
  std::uint64_t read_span(std::uint64_t offset, std::size_t bytes, std::vector<std::byte>& scratch) const;
};

/// An array with its memory. Chunks have about 4 MiB. Units are a row, or neighbouring rows of at most 4
/// KiB; about 4 KiB if rows are longer than 64 KiB.
checkpoint_array array_in_memory(manifest_array schema, std::uint64_t row_bytes, std::string label,
                                 void* data = nullptr, std::shared_ptr<void> owner = nullptr);
/// An array of adjacent rows, without its memory. Throws invalid_argument for an empty handle, or for rows
/// whose elements are not adjacent.
checkpoint_array describe_array(std::string name, const array_note& array, bool has_dense_rows,
                                std::string_view dtype, std::size_t element_bytes, const std::string& owner);

template <class T>
consteval void require_whole_element() {
  static_assert(sizeof(T) <= (std::size_t{1} << 22),
                "ferry: a checkpoint writes pieces of whole elements, so an element has at most 4 MiB.");
}

/// An array as a file sees it. Throws invalid_argument for an empty handle and for rows whose elements are
/// not adjacent.
template <class T, class Space>
checkpoint_array as_stored(std::string name, const array_ref<T, Space>& array, const std::string& owner) {
  using plain = std::remove_const_t<T>;
  require_whole_element<plain>();
  checkpoint_array description = describe_array(std::move(name), array.note(), array.has_dense_rows(),
                                                dtype_name<plain>(), sizeof(plain), owner);
  description.data = reinterpret_cast<std::byte*>(const_cast<plain*>(array.data));
  if (!array.is_contiguous())
    description.row_stride = static_cast<std::uint64_t>(array.row_stride()) * sizeof(plain);
  description.read_only = std::is_const_v<T>;
  if constexpr (!Space::is_host_accessible && !device_is_host<Space>) {
    description.read_device = &device_backend<Space>::read;
    description.write_device = &device_backend<Space>::write;
  }
  if constexpr (FloatingElement<plain> || is_byte_float<plain>)
    description.converter_from = &converter_of<plain>;
  description.accesses = array.accesses;
  return description;
}

/// Number of threads for the chunks of a checkpoint.
int chunk_threads();

/// `most` threads that end with the call. They are not those of the worker pool: a save in the background may
/// outlive Kokkos.
constexpr thread_choice threads_for_chunks(int most) { return {most, helper_threads::temporary}; }

}  // namespace ferry::detail
