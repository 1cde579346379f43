// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/distributed/communicator/detail/call_note.hpp>
#include <ferry/distributed/communicator/detail/payload.hpp>
#include <ferry/rows/copy.hpp>
#include <ferry/tensor/detail/array_ref.hpp>
#include <ferry/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace ferry::detail {

/// A dense array like another one in memory that ranks exchange, see payload().
template <class T, class Wire>
struct wire_copy {
  tensor<T, Wire> buffer;
  array_ref<T, Wire> like;

  template <class Exec, class Space>
  wire_copy(const Exec& exec, const array_ref<T, Space>& array)
      : buffer(payload<T, Wire>(exec, "values of ranks", array.size())) {
    like.rank = array.rank;
    like.extents = array.extents;
    like.make_dense();
    like.data = buffer.data();
  }

  template <class Exec, class Space>
  void take(const Exec& exec, const array_ref<T, Space>& array) {
    copy(exec, array, like).join();
  }
  template <class Exec, class Space>
  void give(const Exec& exec, const array_ref<T, Space>& array) const {
    copy(exec, like, array).join();
  }
  /// The bytes of rows [begin, end).
  [[nodiscard]] std::byte* bytes(std::int64_t begin) {
    return reinterpret_cast<std::byte*>(buffer.data() + begin * like.width());
  }
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(like.width()) * sizeof(T); }
};

/// "<verb> of a x b", and the element type, which must agree. `first` is the first extent that must.
template <class T, class Array>
call_note note_of_array(const char* verb, const Array& array, std::size_t first) {
  call_note note(verb);
  note.add(" of").add_number(array.rank).add(" extents:");
  for (std::size_t i = first; i < array.rank; ++i) note.add_number(array.extents[i]);
  return note.add_hidden(note_part::types, typeid(T).hash_code());
}

}  // namespace ferry::detail
