// SPDX-License-Identifier: Apache-2.0
#include <ferry/tensor/detail/array_label.hpp>

#include <memory>

namespace ferry::detail {

array_label::array_label(std::string_view text) {
  if (text.size() > short_.size()) {
    shared_ = std::make_shared<const std::string>(text);
  } else {
    std::copy(text.begin(), text.end(), short_.begin());
    length_ = static_cast<unsigned char>(text.size());
  }
}

}  // namespace ferry::detail
