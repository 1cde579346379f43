// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/io/detail/file.hpp>
#include <ferry/memory/detail/function_ref.hpp>
#include <ferry/memory/spaces.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/runtime/detail/backend.hpp>
#include <ferry/runtime/detail/change_marks.hpp>
#include <ferry/runtime/detail/engine.hpp>
#include <ferry/runtime/detail/host_side.hpp>
#include <ferry/runtime/ticket.hpp>
#include <ferry/tensor/detail/array_ref.hpp>

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
template <class T>
inline constexpr std::int64_t stream_piece = std::max<std::int64_t>(1, stream_piece_bytes / sizeof(T));

/// Whether the host works on a contiguous array of this space in place.
template <class Space>
inline constexpr bool streams_in_place = Space::is_host_accessible || device_is_host<Space>;

/// The instance for arrays of Space where the user gave none.
template <class Space>
auto default_exec_for() {
  if constexpr (streams_in_place<Space>)
    return Kokkos::DefaultHostExecutionSpace{};
  else
    return Kokkos::DefaultExecutionSpace{};
}

/// Calls work(first, count) for the pieces of [0, all), by the calling thread and the worker pool, in any
/// order. Every `first` is a multiple of `piece`. After an error no further piece is started; the first error
/// is rethrown.
void for_each_piece(std::int64_t all, std::int64_t piece,
                    function_ref<void(std::int64_t, std::int64_t)> work);

/// Calls visit(part, first) for parts of `array` of at most `most` elements, in row-major order. `first` is
/// the position of the part's first element. Parts of a contiguous array are of rank 1.
template <class T, class Space, class Visit>
void for_each_part(const array_ref<T, Space>& array, std::int64_t most, const Visit& visit,
                   std::int64_t before = 0) {
  if (array.size() == 0) return;
  array_ref<T, Space> part = array;
  if (array.is_contiguous()) {
    part.rank = 1;
    part.strides[0] = 1;
    for (std::int64_t first = 0; first < array.size(); first += most) {
      part.data = array.data + first;
      part.extents[0] = std::min(most, array.size() - first);
      visit(part, before + first);
    }
    return;
  }
  const std::int64_t width = array.width();
  if (width <= most) {
    const std::int64_t rows = most / width;
    for (std::int64_t first = 0; first < array.rows(); first += rows) {
      part.data = array.data + first * array.strides[0];
      part.extents[0] = std::min(rows, array.rows() - first);
      visit(part, before + first * width);
    }
    return;
  }
  part.rank = array.rank - 1;
  std::copy(array.extents.begin() + 1, array.extents.end(), part.extents.begin());
  std::copy(array.strides.begin() + 1, array.strides.end(), part.strides.begin());
  for (std::int64_t row = 0; row < array.rows(); ++row) {
    part.data = array.data + row * array.strides[0];
    for_each_part(part, most, visit, before + row * width);
  }
}

/// The dense array of the extents of `like` in a buffer.
template <class T, class Like>
array_ref<T, pinned_space> in_buffer(void* buffer, const Like& like) {
  array_ref<T, pinned_space> made;
  made.data = static_cast<T*>(buffer);
  made.rank = like.rank;
  made.extents = like.extents;
  made.make_dense();
  made.label = "stream buffer";
  return made;
}

/// Two page-locked buffers, and the copy in flight from or to each.
template <class Exec>
class stream_buffers {
 public:
  explicit stream_buffers(std::size_t bytes) {
    const auto home = engine::get<Exec>();
    for (auto& each : memory_) each = home->pinned_scratch(bytes);
  }
  [[nodiscard]] void* memory(int which) const { return memory_[which].get(); }
  [[nodiscard]] ticket& copying(int which) { return copying_[which]; }

 private:
  std::shared_ptr<void> memory_[2];
  ticket copying_[2];  // destroyed first: a ticket waits
};

/// Whether parts of the array may travel as bytes, which makes one kernel for all element types.
template <bool Strided, class T, class Space>
auto as_streamed(const array_ref<T, Space>& array) {
  if constexpr (Strided) {
    return array;
  } else {
    using byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    array_ref<byte, Space> made;
    made.data = reinterpret_cast<byte*>(array.data);
    made.rank = 1;
    made.extents[0] = array.size() * static_cast<std::int64_t>(sizeof(T));
    made.make_dense();
    made.label = array.label;
    made.accesses = array.accesses;
    return made;
  }
}

/// Fills an array: calls fill(T* to, first, count) for pieces of it, from several threads and in any order.
/// The piece holds the elements of the row-major positions [first, first + count); in a contiguous array
/// every `first` is a multiple of stream_piece<T>. Waits for the verbs in flight on the array first, and
/// returns when it is filled. After an exception of `fill` the array holds some of the pieces.
///
///   exec     an instance that reaches the array; unused for contiguous arrays in memory of the host
///   Strided  whether the array may have strides; false compiles less
template <bool Strided, class Exec, class T, class Space, class Fill>
void stream_in(const Exec& exec, const array_ref<T, Space>& array, const Fill& fill) {
  if (array.size() == 0) return;
  if constexpr (streams_in_place<Space>) {
    if (!Strided || array.is_contiguous()) {
      if (array.accesses != nullptr) array.accesses->wait_for_all();
      const marked_write marking(array);
      for_each_piece(array.size(), stream_piece<T>,
                     [&](std::int64_t first, std::int64_t count) { fill(array.data + first, first, count); });
      return;
    }
  }
  if constexpr (Strided || !streams_in_place<Space>) {
    const auto by = [&exec] {
      if constexpr (streams_in_place<Space>)
        return host_side(exec);
      else
        return exec;
    }();
    const auto all = as_streamed<Strided>(array);
    using element = std::remove_reference_t<decltype(*all.data)>;
    constexpr auto ratio = static_cast<std::int64_t>(sizeof(T) / sizeof(element));
    constexpr std::int64_t most =
        stream_piece<T> * static_cast<std::int64_t>(stream_buffer_bytes / stream_piece_bytes);
    stream_buffers<std::remove_const_t<decltype(by)>> buffers(
        static_cast<std::size_t>(std::min(array.size(), most)) * sizeof(T));
    int turn = 0;
    for_each_part(all, most * ratio, [&](const auto& part, std::int64_t first) {
      buffers.copying(turn).join();
      auto* const to = static_cast<T*>(buffers.memory(turn));
      for_each_piece(part.size() / ratio, stream_piece<T>, [&](std::int64_t begin, std::int64_t count) {
        fill(to + begin, first / ratio + begin, count);
      });
      buffers.copying(turn) = copy(by, in_buffer<element>(to, part), part);
      turn = 1 - turn;
    });
    for (const int which : {turn, 1 - turn}) buffers.copying(which).join();
  }
}

/// Hands out an array: calls drain(const T* from, first, count) for pieces of it, as stream_in does. Waits
/// for verbs in flight that write to the array.
template <bool Strided, class Exec, class T, class Space, class Drain>
void stream_out(const Exec& exec, const array_ref<T, Space>& array, const Drain& drain) {
  using plain = std::remove_const_t<T>;
  if (array.size() == 0) return;
  if constexpr (streams_in_place<Space>) {
    if (!Strided || array.is_contiguous()) {
      if (array.accesses != nullptr) array.accesses->wait_for_writes();
      for_each_piece(array.size(), stream_piece<plain>, [&](std::int64_t first, std::int64_t count) {
        drain(static_cast<const plain*>(array.data + first), first, count);
      });
      return;
    }
  }
  if constexpr (Strided || !streams_in_place<Space>) {
    const auto by = [&exec] {
      if constexpr (streams_in_place<Space>)
        return host_side(exec);
      else
        return exec;
    }();
    const auto all = as_streamed<Strided>(read_only(array));
    using element = std::remove_const_t<std::remove_reference_t<decltype(*all.data)>>;
    constexpr auto ratio = static_cast<std::int64_t>(sizeof(T) / sizeof(element));
    constexpr std::int64_t most =
        stream_piece<plain> * static_cast<std::int64_t>(stream_buffer_bytes / stream_piece_bytes);
    stream_buffers<std::remove_const_t<decltype(by)>> buffers(
        static_cast<std::size_t>(std::min(array.size(), most)) * sizeof(T));
    int turn = 0;
    std::int64_t earlier = 0;  // elements in the other buffer
    std::int64_t earlier_first = 0;
    const auto empty = [&](int which) {
      buffers.copying(which).join();
      const auto* const from = static_cast<const plain*>(buffers.memory(which));
      for_each_piece(earlier, stream_piece<plain>, [&](std::int64_t begin, std::int64_t count) {
        drain(from + begin, earlier_first + begin, count);
      });
    };
    for_each_part(all, most * ratio, [&](const auto& part, std::int64_t first) {
      buffers.copying(turn) = copy(by, part, in_buffer<element>(buffers.memory(turn), part));
      if (earlier != 0) empty(1 - turn);
      earlier = part.size() / ratio;
      earlier_first = first / ratio;
      turn = 1 - turn;
    });
    empty(1 - turn);
  }
}

/// Reads the elements of an array, in row-major order, from byte `offset` of a file.
template <bool Strided, class Exec, class T, class Space>
void read_rows(const Exec& exec, const file& from, std::uint64_t offset, const array_ref<T, Space>& array) {
  stream_in<Strided>(exec, array, [&](T* to, std::int64_t first, std::int64_t count) {
    from.read_at(to, static_cast<std::size_t>(count) * sizeof(T),
                 offset + static_cast<std::uint64_t>(first) * sizeof(T));
  });
}
template <bool Strided, class T, class Space>
void read_rows(const file& from, std::uint64_t offset, const array_ref<T, Space>& array) {
  read_rows<Strided>(default_exec_for<Space>(), from, offset, array);
}

/// Writes the elements of an array, in row-major order, to byte `offset` of a file.
template <bool Strided, class Exec, class T, class Space>
void write_rows(const Exec& exec, const array_ref<T, Space>& array, const file& to, std::uint64_t offset) {
  using plain = std::remove_const_t<T>;
  stream_out<Strided>(exec, array, [&](const plain* from, std::int64_t first, std::int64_t count) {
    const std::uint64_t place = offset + static_cast<std::uint64_t>(first) * sizeof(T);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    to.write_at(from, bytes, place);
    to.start_write_back(place, bytes);
  });
}
template <bool Strided, class T, class Space>
void write_rows(const array_ref<T, Space>& array, const file& to, std::uint64_t offset) {
  write_rows<Strided>(default_exec_for<Space>(), array, to, offset);
}

}  // namespace ferry::detail
