// SPDX-License-Identifier: Apache-2.0
// A tile of a step has one scale.
// expected-error: step trains quantized rows whose blocks are multiples of 16 numbers
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
#ifdef FERRY_XFAIL_FIXED
  static constexpr int block = 16;
#else
  static constexpr int block = 8;
#endif
  static constexpr bool has_tensor_scale = false;
  static constexpr bool in_records = false;

  KOKKOS_FUNCTION static float scale_of(const ferry::block_range& range, float factor) {
    return codes::scale_of(range, factor);
  }
  KOKKOS_FUNCTION static float step_of(float scale, float) { return scale; }
  KOKKOS_FUNCTION static float decode(std::uint32_t code, float step) { return codes::decode(code, step); }
  KOKKOS_FUNCTION static std::uint32_t encode(float value, float step) { return codes::encode(value, step); }
};

void refused([[maybe_unused]] const Kokkos::DefaultExecutionSpace& exec) {
  ferry::quantized_tensor<blocks, ferry::mapped_space> table("table", 10, 32);
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 2, 32);
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::step(exec, rule, table, state, indices, grads));
}
