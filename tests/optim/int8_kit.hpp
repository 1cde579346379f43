// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "optim/step_kit.hpp"

/// Tables of 8-bit rows as bytes, and rules applied to them by plain loops, operation by operation as documented.
namespace ferry_test {

/// The records of a table: codes, scale, offset, zeros up to a multiple of 16 bytes.
struct plain_records {
  std::size_t width, row_bytes;
  std::vector<std::byte> bytes;

  plain_records(std::size_t rows, std::size_t row_width)
      : width(row_width), row_bytes((row_width + 8 + 15) / 16 * 16), bytes(rows * row_bytes) {}

  [[nodiscard]] std::size_t rows() const { return bytes.size() / row_bytes; }
  [[nodiscard]] float scale(std::size_t row) const { return number_at(row, 0); }
  [[nodiscard]] float offset(std::size_t row) const { return number_at(row, 4); }
  [[nodiscard]] int code(std::size_t row, std::size_t column) const {
    return std::to_integer<int>(bytes[row * row_bytes + column]);
  }
  [[nodiscard]] double value(std::size_t row, std::size_t column) const {
    return static_cast<double>(offset(row)) + static_cast<double>(scale(row)) * code(row, column);
  }
  void set(std::size_t row, float scale, float offset) {
    std::memcpy(bytes.data() + row * row_bytes + width, &scale, 4);
    std::memcpy(bytes.data() + row * row_bytes + width + 4, &offset, 4);
  }

  /// round(place, column) of an element's place between the codes: (x - min) / scale.
  void encode(std::size_t row, const std::vector<float>& values,
              const std::function<double(double, std::size_t)>& round) {
    float least = values[0], most = values[0];
    bool finite = true;
    for (const float v : values) {
      least = std::fmin(least, v);
      most = std::fmax(most, v);
      finite = finite && std::isfinite(v);
    }
    least += 0.0f;
    const auto scale = static_cast<float>((static_cast<double>(most) - static_cast<double>(least)) / 255.0);
    for (std::size_t offset = row * row_bytes; offset < (row + 1) * row_bytes; ++offset)
      bytes[offset] = std::byte{0};
    if (!finite) return set(row, NAN, NAN);
    set(row, scale, least);
    if (scale == 0.0f) return;
    for (std::size_t c = 0; c < width; ++c) {
      const double place =
          (static_cast<double>(values[c]) - static_cast<double>(least)) / static_cast<double>(scale);
      bytes[row * row_bytes + c] = static_cast<std::byte>(std::fmin(255.0, round(place, c)));
    }
  }

 private:
  [[nodiscard]] float number_at(std::size_t row, std::size_t after) const {
    float result;
    std::memcpy(&result, bytes.data() + row * row_bytes + width + after, 4);
    return result;
  }
};

/// Codes of any value, rows of different range, padding that is not zero.
inline plain_records random_records(std::mt19937_64& random, std::size_t rows, std::size_t width) {
  plain_records result(rows, width);
  for (auto& byte : result.bytes) byte = static_cast<std::byte>(random() & 0xffu);
  std::uniform_real_distribution<float> scale(0.001f, 0.02f), offset(-2.0f, 0.5f);
  for (std::size_t row = 0; row < rows; ++row) result.set(row, scale(random), offset(random));
  return result;
}

inline double to_nearest(double place, std::size_t) { return std::nearbyint(place); }

/// The sum of the gradients of each row in float, in the order of the batch.
inline std::map<std::size_t, std::vector<float>> summed_in_order(const gradient_batch<float>& batch,
                                                                 std::size_t width) {
  std::map<std::size_t, std::vector<float>> result;
  for (std::size_t p = 0; p < batch.rows.size(); ++p) {
    auto& row = result[static_cast<std::size_t>(batch.rows[p])];
    const bool fresh = row.empty();
    row.resize(width);
    for (std::size_t c = 0; c < width; ++c) {
      const float value = batch.values[p * width + c];
      row[c] = fresh ? value : row[c] + value;
    }
  }
  return result;
}

}  // namespace ferry_test
