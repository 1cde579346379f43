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

  friend std::string operator+(std::string_view left, const array_label& right) {
    return std::string(left).append(right.view());
  }
  friend std::string operator+(const array_label& left, std::string_view right) {
    return std::string(left.view()).append(right);
  }
  friend bool operator==(const array_label& left, std::string_view right) { return left.view() == right; }

 private:
  std::shared_ptr<const std::string> shared_;
  std::array<char, most_copied> short_{};
  unsigned char length_ = 0;
};

}  // namespace ferry::detail
