// SPDX-License-Identifier: Apache-2.0
#include "support/arrays.hpp"

#include <ferry/quantized.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Quantized rows in a program of nvcc's --use_fast_math, whose kernels take subnormal floats for zero.
namespace ferry_test::device_fast_math_cuda_test {

namespace quantization = ferry::quantization;
using ferry::device_space;

constexpr std::size_t rows = 64, width = 64;

/// Rows of zeros, of one small number, of tiny ones, with a block of zeros, and ordinary ones.
float number(std::size_t row, std::size_t column) {
  switch (row % 5) {
    case 0:
      return column % 2 == 0 ? -0.0f : 0.0f;
    case 1:
      return column % 9 == 0 ? 1e-38f : 0.0f;
    case 2:
      return std::ldexp(1.0f + static_cast<float>(column) / 64.0f, -125);
    case 3:
      return column < 32 ? 0.0f : static_cast<float>(column) - 40.0f;
    default:
      return static_cast<float>(column) - 30.0f;
  }
}

TEMPLATE_TEST_CASE("kernels that flush subnormal numbers keep zeros", "[flags]", quantization::mxfp8,
                   quantization::mxfp8_e5m2, quantization::mxfp4, quantization::nvfp4,
                   quantization::per_row<quantization::e4m3>) {
  const exec_space exec;
  std::vector<float> numbers(rows * width);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < width; ++c) numbers[r * width + c] = number(r, c);
  const auto source = make<device_space>("source", rows, width, numbers);
  ferry::tensor<float, device_space> read("read", rows, width), gradients("gradients", rows, width);
  ferry::init::zeros(exec, gradients);
  ferry::quantized_tensor<TestType, device_space> table("table", rows, width);
  const auto check = [&] {
    ferry::dequantize(exec, table, read).wait();
    const auto values = take(read);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < width; ++c) {
        const float value = values[r * width + c], expected = numbers[r * width + c];
        CAPTURE(r, c, value, expected);
        const float largest = r % 5 == 3 || r % 5 == 4 ? 34.0f : 0x1p-117f;
        REQUIRE(std::isfinite(value));
        REQUIRE(std::abs(value - expected) <= largest / 4.0f);
        if (largest == 34.0f && expected == 0.0f) REQUIRE(value == 0.0f);
      }
  };
  ferry::quantize(exec, source, table).wait();
  check();
  std::vector<std::int32_t> every(rows);
  for (std::size_t r = 0; r < rows; ++r) every[r] = static_cast<std::int32_t>(r);
  ferry::scatter(exec, table, every, source).wait();
  check();
  const ferry::optim::sgd rule{.lr = 1.0};
  auto state = ferry::optim::make_state(rule, table);
  ferry::step(exec, rule, table, state, gradients).wait();
  check();
  ferry::step(exec, rule, table, state, every, gradients, ferry::rounding::stochastic{}).wait();
  check();
}

}  // namespace ferry_test::device_fast_math_cuda_test
