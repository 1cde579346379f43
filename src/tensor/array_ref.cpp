// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/detail/array_ref.hpp>

namespace ferry::detail {

std::string array_note::shape_text() const {
  std::string text(1, '[');
  for (std::size_t i = 0; i < rank; ++i) {
    text_piece(i == 0 ? "" : " x ").append_to(text);
    text_piece(extents[i]).append_to(text);
  }
  text.push_back(']');
  return text;
}

std::string array_note::describe() const {
  return joined({"'", label.view(), "' ", shape_text(), " in ", space});
}

}  // namespace ferry::detail
