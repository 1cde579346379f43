// SPDX-License-Identifier: Apache-2.0
// The quantization says how a number becomes one of two codes.
// expected-error: rounding::stochastic is for quantizations with encode_at_random
#include <ferry/ferry.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <vector>

/// Blocks of E4M3 codes with a float.
struct blocks {
  using codes = ferry::quantization::per_row<ferry::quantization::e4m3>;
  static constexpr const char* name = "blocks";
  using code_type = ferry::fp8_e4m3_t;
  using scale_type = float;
  using step_type = float;
  static constexpr int code_bits = 8;
  static constexpr int block = 16;
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static float scale_of(const ferry::block_range& range, float factor) {
    return codes::scale_of(range, factor);
  }
  KOKKOS_FUNCTION static float step_of(float scale, float) { return scale; }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) { return codes::decode(code, step); }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) { return codes::encode(value, step); }
#ifdef FERRY_XFAIL_FIXED
  KOKKOS_FUNCTION static std::uint32_t encode_at_random(float value, float step, std::uint32_t random) {
    return codes::encode_at_random(value, step, random);
  }
#endif
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<blocks, ferry::mapped_space> table("table", 10, 32);
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 2, 32);
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::step(exec, rule, table, state, indices, grads, ferry::rounding::stochastic{}));
}
