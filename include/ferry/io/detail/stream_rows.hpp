// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/extend.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/ticket.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

/// Moves arrays of any memory space to and from host code that works on pieces of them, such as reads and
/// writes of a file. Contiguous memory that the host reaches is worked on in place, by several threads. All
/// other arrays go through two page-locked buffers: while one is filled or emptied by the threads, the other
/// is copied from or to the array.
namespace ferry::detail {

/// One call of a piece of work.
inline constexpr std::size_t stream_piece_bytes = std::size_t{8} << 20;
/// One of the two buffers.
inline constexpr std::size_t stream_buffer_bytes = std::size_t{32} << 20;

/// Elements of a piece.
constexpr std::int64_t piece_of(std::size_t element_bytes) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(stream_piece_bytes / element_bytes));
}

/// True if the host works on a contiguous array of this space in place.
template <class Space>
inline constexpr bool streams_in_place = Space::is_host_accessible || device_is_host<Space>;

/// The instance for arrays of Space if the user gave none.
template <class Space>
auto default_exec_for() {
  if constexpr (streams_in_place<Space>)
    return Kokkos::DefaultHostExecutionSpace{};
  else
    return Kokkos::DefaultExecutionSpace{};
}

/// Fills the elements of the row-major positions [first, first + count), or hands them out.
using piece_work = function_ref<void(void* elements, std::int64_t first, std::int64_t count)>;

/// The steps of a stream through buffers that depend on types.
struct part_steps {
  /// Page-locked memory.
  std::shared_ptr<void> (*buffer)(std::size_t bytes);
  /// Copies a part of the array from or to a buffer.
  function_ref<ticket(const array_shape& part, void* data, const array_shape& packed, void* buffer)> copy;
};

/// The streams of an array, see stream: in the memory of the host, and through buffers.
///
///   reads     the array is handed out, not filled
///   as_bytes  the array is contiguous, and its parts are copied as bytes
/// @{
void stream_in_place(const untyped_array& array, void* data, bool reads, piece_work work);
void stream_in_parts(const untyped_array& array, void* data, bool as_bytes, const part_steps& steps,
                     piece_work fill);
void stream_out_parts(const untyped_array& array, void* data, bool as_bytes, const part_steps& steps,
                      piece_work drain);
/// @}

/// The instance that copies between an array of Space and buffers.
template <class Space, class Exec>
auto streaming_instance(const Exec& exec) {
  if constexpr (streams_in_place<Space>)
    return host_side(exec);
  else
    return exec;
}

/// Page-locked memory of the engine of an execution space.
template <class Exec>
std::shared_ptr<void> stream_memory(std::size_t bytes) {
  return engine::get_on<Exec>()->pinned_scratch(bytes);
}

/// Fills an array, or hands it out if T is const: calls work(T* elements, first, count) for pieces of it,
/// from several threads and in any order. The piece holds the elements of the row-major positions [first,
/// first + count); in a contiguous array every `first` is a multiple of piece_of(sizeof(T)). Waits first for
/// the verbs in flight on the array, or for those that write to it, and returns when all is done. After an
/// exception of `work` the array holds some of the pieces.
///
///   exec     an instance that reaches the array; unused for contiguous arrays in memory of the host
///   Strided  whether the array may have strides; false compiles less
template <bool Strided, class Exec, class T, class Space, class Work>
void stream(const Exec& exec, const array_ref<T, Space>& array, const Work& work) {
  constexpr bool reads = std::is_const_v<T>;
  void* const elements_of_array = const_cast<std::remove_const_t<T>*>(array.data);
  const auto typed = [&work](void* elements, std::int64_t first, std::int64_t count) {
    work(static_cast<T*>(elements), first, count);
  };
  if constexpr (streams_in_place<Space>)
    if (!Strided || array.is_contiguous()) return stream_in_place(array, elements_of_array, reads, typed);
  if constexpr (Strided || !streams_in_place<Space>) {
    const auto instance = streaming_instance<Space>(exec);
    // One kernel for all contiguous arrays.
    using element = std::conditional_t<Strided, std::remove_const_t<T>, std::byte>;
    const auto move = [&instance](const array_shape& part, void* data, const array_shape& packed,
                                  void* buffer) {
      const array_ref<element, Space> rows{part, static_cast<element*>(data)};
      const array_ref<element, pinned_space> dense{packed, static_cast<element*>(buffer)};
      if constexpr (reads)
        return copy(instance, read_only(rows), dense);
      else
        return copy(instance, dense, rows);
    };
    const part_steps steps{stream_memory<std::remove_const_t<decltype(instance)>>, move};
    constexpr auto in_parts = reads ? stream_out_parts : stream_in_parts;
    in_parts(array, elements_of_array, !Strided, steps, typed);
  }
}

/// Writes the elements of an array, in row-major order, to byte `offset` of a file.
template <bool Strided, class Exec, class T, class Space>
void write_rows(const Exec& exec, const array_ref<T, Space>& array, const file& target,
                std::uint64_t offset) {
  stream<Strided>(exec, read_only(array),
                  [&target, offset](const T* elements, std::int64_t first, std::int64_t count) {
                    const std::uint64_t position = offset + static_cast<std::uint64_t>(first) * sizeof(T);
                    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
                    target.write_at(elements, bytes, position);
                    target.start_write_back(position, bytes);
                  });
}
template <bool Strided, class T, class Space>
void write_rows(const array_ref<T, Space>& array, const file& target, std::uint64_t offset) {
  write_rows<Strided>(default_exec_for<Space>(), array, target, offset);
}

}  // namespace ferry::detail
