// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ferry/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ferry::detail {

/// The name of an array in error messages. Tensors share theirs. Other names are copied, short ones without
/// heap memory, so describing an array to a verb allocates nothing.
class array_label {
 public:
  /// Characters that are copied without heap memory.
  static constexpr std::size_t most_copied = 31;

  array_label() = default;
  array_label(std::shared_ptr<const std::string> shared) noexcept : shared_(std::move(shared)) {}
  array_label(std::string_view text);
  array_label(const std::string& text) : array_label(std::string_view(text)) {}
  array_label(const char* text) : array_label(std::string_view(text)) {}

  [[nodiscard]] std::string_view view() const noexcept {
    return shared_ != nullptr ? std::string_view(*shared_) : std::string_view(short_.data(), length_);
  }
  [[nodiscard]] bool empty() const noexcept { return view().empty(); }
  operator std::string() const { return std::string(view()); }

  friend std::string operator+(std::string_view text, const array_label& label) {
    return std::string(text).append(label.view());
  }
  friend std::string operator+(const array_label& label, std::string_view text) {
    return std::string(label.view()).append(text);
  }
  friend bool operator==(const array_label& label, std::string_view text) { return label.view() == text; }

 private:
  std::shared_ptr<const std::string> shared_;
  std::array<char, most_copied> short_{};
  unsigned char length_ = 0;
};

}  // namespace ferry::detail
