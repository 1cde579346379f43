// SPDX-License-Identifier: Apache-2.0
#include <ferry/quantized.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

/// Quantized rows in a program that is compiled with -ffast-math, so that quotients may be products with
/// reciprocals, also where the processor takes subnormal numbers for zero: linking with -ffast-math sets that mode
/// before GCC 13. Here each thread sets it itself.
namespace ferry_test::flushed_subnormals_test {

namespace quantization = ferry::quantization;

#if defined(__x86_64__)

namespace optim = ferry::optim;
using exec_space = Kokkos::DefaultHostExecutionSpace;
using ferry::pageable_space;

constexpr unsigned usual = 0u, flushed = 0x8040u;
constexpr std::size_t rows = 64, width = 64, block = 32;

void set_mode(unsigned mode) { __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~flushed) | mode); }

struct set_mode_of_thread {
  unsigned mode;
  void operator()(int) const { set_mode(mode); }
};

/// Makes subnormal numbers zero, or ordinary again, for every thread.
class processor_mode {
 public:
  processor_mode(const exec_space& exec, unsigned mode)
      : exec_(exec), before_(__builtin_ia32_stmxcsr() & flushed) {
    set(mode);
  }
  ~processor_mode() { set(before_); }

 private:
  void set(unsigned mode) const {
    Kokkos::RangePolicy<exec_space> threads(exec_, 0, exec_.concurrency() * 64);
    threads.set_chunk_size(1);
    Kokkos::parallel_for("ferry_test::mode", threads, set_mode_of_thread{mode});
    exec_.fence("ferry_test::mode");
    set_mode(mode);
  }

  const exec_space& exec_;
  unsigned before_;
};

/// Kinds of rows: zeros of both signs, one small number among zeros, numbers whose scale is the least one, a
/// block of zeros beside another; the rest have ordinary numbers.
bool is_ordinary(std::size_t row, std::size_t column) {
  return row % 8 > 3 || (row % 8 == 3 && column >= block);
}
float number(std::size_t row, std::size_t column) {
  const auto mixed = static_cast<int>(row * 131 + column * 71);
  const float ordinary =
      std::ldexp(static_cast<float>(mixed % 255 - 127) / 64.0f, static_cast<int>(row * 7 % 40) - 20);
  if (is_ordinary(row, column)) return ordinary;
  if (row % 8 == 1) return column == 0 ? 1e-38f : 0.0f;
  if (row % 8 == 2) return std::ldexp(1.0f + static_cast<float>(column) / 64.0f, -125);
  return column % 2 == 0 ? -0.0f : 0.0f;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

/// Numbers that are not ordinary are read as at most 2^-117: those of the tiny rows, or zero.
void check_rows(const ferry::tensor<float, pageable_space>& read,
                const ferry::tensor<float, pageable_space>& expected) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < width; ++c) {
      CAPTURE(r, c, read(r, c), expected(r, c));
      if (is_ordinary(r, c))
        REQUIRE((is_finite(read(r, c)) && std::abs(read(r, c) - expected(r, c)) <=
                                              1e-6f * std::abs(expected(r, c))));  // scales may be products
      else
        REQUIRE((bits_of(read(r, c)) & 0x7fffffffu) <= bits_of(0x1p-117f));
    }
}

TEMPLATE_TEST_CASE("blocks of zeros stay numbers where subnormal ones are flushed", "[flags]",
                   quantization::mxfp8, quantization::mxfp4, quantization::nvfp4,
                   quantization::per_row<quantization::e4m3>, quantization::e4m3) {
  using table_type = ferry::quantized_tensor<TestType, pageable_space>;
  const exec_space exec;
  const processor_mode at_first(exec, usual);
  ferry::tensor<float, pageable_space> source("source", rows, width), expected("expected", rows, width),
      read("read", rows, width);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < width; ++c) source(r, c) = number(r, c);
  table_type before("before", rows, width), quantized("quantized", rows, width),
      scattered("scattered", rows, width);
  ferry::quantize(exec, source, before).wait();
  ferry::dequantize(exec, before, expected).wait();
  const optim::sgd rule{.lr = 1.0};
  ferry::tensor<float, pageable_space> gradients("gradients", rows, width);
  ferry::init::zeros(exec, gradients);
  std::vector<std::int32_t> every(rows);
  for (std::size_t r = 0; r < rows; ++r) every[r] = static_cast<std::int32_t>(r);
  {
    const processor_mode mode(exec, flushed);
    REQUIRE(Kokkos::fabs(source(2, 0) * 0.25f) == 0.0f);  // the mode is on
    ferry::quantize(exec, source, quantized).wait();
    ferry::dequantize(exec, quantized, read).wait();
    check_rows(read, expected);
    ferry::quantize(exec, source, scattered).wait();
    ferry::scatter(exec, scattered, every, source).wait();
    ferry::dequantize(exec, scattered, read).wait();
    check_rows(read, expected);
  }
  // The numbers that were stored are right without the mode, too.
  for (auto* const table : {&quantized, &scattered}) {
    ferry::dequantize(exec, *table, read).wait();
    check_rows(read, expected);
  }
  // Steps without gradients on rows that were quantized without the mode.
  const auto train = [&](auto... policies) {
    table_type table("table", rows, width);
    ferry::quantize(exec, source, table).wait();
    auto state = optim::make_state(rule, table);
    {
      const processor_mode mode(exec, flushed);
      ferry::step(exec, rule, table, state, gradients, policies...).wait();
      ferry::step(exec, rule, table, state, every, gradients, policies...).wait();
    }
    ferry::dequantize(exec, table, read).wait();
    check_rows(read, expected);
  };
  train();
  train(ferry::rounding::stochastic{});
}

TEMPLATE_TEST_CASE("a factor below the normal numbers spoils no zeros", "[flags]", quantization::nvfp4,
                   quantization::e4m3) {
  const exec_space exec;
  const processor_mode at_first(exec, usual);
  ferry::tensor<float, pageable_space> source("source", rows, width), read("read", rows, width);
  ferry::init::zeros(exec, source);
  for (std::size_t r = 0; r < rows; r += 2) source(r, r) = 0x1p-129f;
  ferry::quantized_tensor<TestType, pageable_space> table("table", rows, width);
  table.set_scale(0x1p-130f);
  const auto check = [&] {
    ferry::dequantize(exec, table, read).wait();
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < width; ++c) {
        CAPTURE(r, c, read(r, c));
        REQUIRE((bits_of(read(r, c)) & 0x7fffffffu) <= bits_of(0x1p-128f));
      }
  };
  ferry::quantize(exec, source, table).wait();
  check();
  const processor_mode mode(exec, flushed);
  ferry::quantize(exec, source, table).wait();
  check();
}

#endif

TEST_CASE("a microscaling code divides by each scale", "[flags]") {
  using mx = quantization::mxfp8;
  const exec_space exec;
  for (int e = 0; e <= 254; ++e) {
    CAPTURE(e);
    const auto scale = ferry::ue8m0_t::from_bits(static_cast<std::uint8_t>(e));
    const float step = mx::step_of(scale, 1.0f);
    const float value = static_cast<float>(std::ldexp(1.0, e - 127));
    CHECK(mx::encode(value, step) == ferry::fp8_e4m3_t(1.0f).bits());
    CHECK(mx::encode(-value, step) == ferry::fp8_e4m3_t(-1.0f).bits());
    CHECK(mx::encode(0.0f, step) == 0u);
    CHECK(mx::encode_at_random(value, step, 0xffffffffu) == ferry::fp8_e4m3_t(1.0f).bits());
  }
}

}  // namespace ferry_test::flushed_subnormals_test
