// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/io/detail/file_elements.hpp>
#include <ferry/io/detail/manifest.hpp>
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

/// The name of an element type in files: f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f8_e8m0, f4_e2m1_pair, i8 to
/// i64, u8 to u64, bool, or "struct" for everything else, of which the size alone is compared.
template <class T>
constexpr std::string_view dtype_name() {
  if constexpr (std::is_same_v<T, double>) return "f64";
  if constexpr (std::is_same_v<T, float>) return "f32";
  if constexpr (std::is_same_v<T, half_t>) return "f16";
  if constexpr (std::is_same_v<T, bhalf_t>) return "bf16";
  if constexpr (std::is_same_v<T, fp8_e4m3_t>) return "f8_e4m3";
  if constexpr (std::is_same_v<T, fp8_e5m2_t>) return "f8_e5m2";
  if constexpr (std::is_same_v<T, ue8m0_t>) return "f8_e8m0";
  if constexpr (std::is_same_v<T, fp4_e2m1_pair_t>) return "f4_e2m1_pair";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_integral_v<T> && sizeof(T) <= 8) {
    constexpr std::string_view names[2][4] = {{"u8", "u16", "u32", "u64"}, {"i8", "i16", "i32", "i64"}};
    return names[std::is_signed_v<T> ? 1 : 0][sizeof(T) == 1   ? 0
                                              : sizeof(T) == 2 ? 1
                                              : sizeof(T) == 4 ? 2
                                                               : 3];
  }
  return "struct";
}

/// True if a file's elements can be converted on load: floating-point numbers into each other.
std::size_t floating_dtype_bytes(std::string_view dtype);

/// Converts `count` elements of a file's floating-point type to T, one after the other.
template <class T>
void convert_from_file(std::string_view dtype, const std::byte* source, std::byte* target,
                       std::size_t count) {
  const auto look = [&]<class... From>(std::type_identity<From>...) {
    ((dtype == dtype_name<From>() ? convert_stored<From, T>(source, target, count) : void()), ...);
  };
  look(std::type_identity<double>{}, std::type_identity<float>{}, std::type_identity<half_t>{},
       std::type_identity<bhalf_t>{}, std::type_identity<fp8_e4m3_t>{}, std::type_identity<fp8_e5m2_t>{},
       std::type_identity<ue8m0_t>{});
}

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
  /// See convert_from_file; null for elements that are not floating-point numbers.
  void (*convert)(std::string_view dtype, const std::byte* source, std::byte* target,
                  std::size_t count) = nullptr;
  std::shared_ptr<access_tracker> accesses;
  std::shared_ptr<void> owner;              ///< of memory that belongs to the file's part of the work
  std::shared_ptr<const rows_apart> apart;  ///< has the rows in the place of `data`, if it is not null

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
    description.convert = &convert_from_file<plain>;
  description.accesses = array.accesses;
  return description;
}

/// Number of threads for the chunks of a checkpoint.
int chunk_threads();

/// `most` threads that end with the call. They are not those of the worker pool: a save in the background may
/// outlive Kokkos.
constexpr thread_choice threads_for_chunks(int most) { return {most, helper_threads::temporary}; }

}  // namespace ferry::detail
