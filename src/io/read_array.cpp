// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/read_array.hpp>

#include <ferry/error.hpp>
#include <ferry/io/detail/dtype.hpp>
#include <ferry/io/detail/file.hpp>
#include <ferry/io/detail/stored_array.hpp>
#include <ferry/tensor/detail/numeric.hpp>
#include <ferry/tensor/extents.hpp>

#include <cstddef>

namespace ferry::detail {

bool is_stored_as(const dtype& stored, const dtype& wanted) {
  const auto may_be_either = [](const dtype& type) {
    return type.bytes == 2 && (type.kind == dtype_kind::brain || type.kind == dtype_kind::record);
  };
  return stored == wanted || (may_be_either(stored) && may_be_either(wanted));
}

void refuse_elements(const file& from, const stored_array& stored, const dtype& wanted, bool converts) {
  throw invalid_argument(
      "ferry::io::" + from.verb() + ": " + from.path() + ": " +
      (stored.name.empty() ? "its elements are " : "the elements of " + stored.name + " are ") +
      stored.elements.name() + " (" + stored.type_text + "), not " + wanted.name() +
      (converts ? ", and there is no conversion between these"
                : "; ferry::io::convert_dtype{} as the last argument of a load converts numbers"));
}

void make_booleans(void* elements, std::size_t count) {
  auto* const bytes = static_cast<unsigned char*>(elements);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
}

}  // namespace ferry::detail
