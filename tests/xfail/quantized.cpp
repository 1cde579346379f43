// SPDX-License-Identifier: Apache-2.0
// Quantized tensors and records. See xfail.py.
#include "arrays.hpp"

#include <ferry/bags.hpp>
#include <ferry/cache.hpp>
#include <ferry/int8.hpp>
#include <ferry/quantized.hpp>

#include <string>

// ---- for_each_table_of_quantized: Their rows are codes and scales.
// expected-errors: 2 for_each_table takes tables of one element type in one memory space
using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space>;
[[maybe_unused]] quantized codes("codes", 10, 32);
[[maybe_unused]] std::vector<quantized> range;
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::for_each_table(table));
#else
static_cast<void>(ferry::for_each_table(codes));
static_cast<void>(ferry::for_each_table(range));
#endif

// ---- gather_bags_staged_between_codes_and_scales: The host pools rows of its own memory.
// expected-error: path::staged pools the rows of host memory there, so codes and scales must both be in host memory
// legal: using scale_space = ferry::mapped_space;
using scale_space = ferry::device_space;
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space, scale_space> table("table", 10, 32);
const std::vector<int> indices{1, 2};
static_cast<void>(ferry::gather_bags(exec, table, indices, 2, pooled, ferry::path::staged{}));

// ---- gather_codes_of_another_quantization: Codes travel as they are.
// expected-first-error: gather into a quantized_tensor copies codes and scales
using ferry::quantization::mxfp8, ferry::quantization::mxfp4;
const ferry::quantized_tensor<mxfp8, ferry::mapped_space> table("table", 10, 32);
// legal: ferry::quantized_tensor<mxfp8, ferry::mapped_space> batch("batch", 2, 32);
ferry::quantized_tensor<mxfp4, ferry::mapped_space> batch("batch", 2, 32);
ferry::gather(exec, table, indices, batch).wait();

// ---- gather_int8_to_integers: 8-bit rows stand for numbers with a fraction.
// expected-error: quantized rows are converted from and to float, double, half_t and bhalf_t only
ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 4);
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<std::int32_t, ferry::device_space> batch("batch", 2, 4);
#endif
static_cast<void>(ferry::gather(exec, table, indices, batch));

// ---- gather_quantized_to_integers: Codes stand for numbers with a fraction.
// expected-first-error: quantized rows are converted from and to float, double, half_t and bhalf_t only
const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
#ifdef FERRY_XFAIL_FIXED
#else
ferry::tensor<std::int32_t, ferry::device_space> batch("batch", 2, 32);
#endif
ferry::gather(exec, table, indices, batch).wait();

// ---- gather_records_into_codes: Records are decoded by a gather, or copied as bytes.
// expected-first-error: gather into a quantized_tensor copies codes and scales
const ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
// legal: ferry::tensor<float, ferry::mapped_space> batch("batch", 2, 32);
ferry::rowwise_int8_tensor<ferry::mapped_space> batch("batch", 2, 32);
ferry::gather(exec, table, indices, batch).wait();

// ---- init_of_quantized: Codes have values together with their scales alone.
// expected-errors: 2 this argument must be an array of numbers, not a table of quantized rows; quantize
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
ferry::tensor<float, ferry::mapped_space> numbers("numbers", 10, 32);
#ifdef FERRY_XFAIL_FIXED
ferry::init::uniform(exec, numbers, -1.0F, 1.0F, 7);
ferry::quantize(exec, numbers, table).wait();
#else
ferry::init::uniform(exec, table, -1.0F, 1.0F, 7);
ferry::init::zeros(exec, table);
#endif

// ---- quantize_ordered: Whole tables have no indices that could be sorted.
// expected-error: quantize and dequantize take whole tables, so there are no rows to sort
ferry::tensor<float, ferry::device_space> values("from", 10, 4);
ferry::rowwise_int8_tensor<ferry::pinned_space> codes("to", 10, 4);
// legal: ferry::quantize(exec, values, codes, ferry::path::direct{}).wait();
ferry::quantize(exec, values, codes, ferry::path::ordered{}).wait();

// ---- quantized_tensor_of_number: A quantization says how numbers are encoded.
// expected-first-error: the template arguments of a quantized_tensor are a quantization
#ifdef FERRY_XFAIL_FIXED
const ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 100, 32);
#else
const ferry::quantized_tensor<float, ferry::mapped_space> table("table", 100, 32);
#endif

// ---- quantized_tensor_without_label: The label comes first, and blocks divide the width.
// expected-first-error: the arguments of a quantized_tensor are its label, its rows and its width
using quantized = ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space>;
// legal: const quantized table("table", 10, 32);
const quantized table(10, 32);
// or: const quantized table("table", 100);

// ---- records_in_two_spaces: A record lies in one memory space.
// expected-error: rows with their scales in records are those of quantization::rowwise_int8, whose table has one memory space
using ferry::quantization::rowwise_int8;
// legal: const ferry::quantized_tensor<rowwise_int8, ferry::mapped_space> table("table", 10, 32);
const ferry::quantized_tensor<rowwise_int8, ferry::mapped_space, ferry::device_space> table("table", 10, 32);

// ---- records_of_another_rule: Each rule has records of its own.
// expected-error: step needs the state that make_state made for this optimizer, not for another one
auto records = ferry::optim::make_records<float, ferry::mapped_space>(ferry::optim::adam{}, "records", 10, 4);
// legal: ferry::step(exec, ferry::optim::adam{}, records, indices, batch).wait();
ferry::step(exec, ferry::optim::sgd{}, records, indices, batch).wait();

// ---- records_of_integers: Integers are not trained.
// expected-error: records hold weights and state of float, double, half_t or bhalf_t elements only
#ifdef FERRY_XFAIL_FIXED
auto records = ferry::optim::make_records<float, ferry::mapped_space, float>(rule, "records", 10, 4);
#else
auto records = ferry::optim::make_records<std::int32_t, ferry::mapped_space, float>(rule, "records", 10, 4);
#endif

// ---- records_without_label: Records have a label, as tensors do.
// expected-error: make_records takes the label of the table after the rule
#ifdef FERRY_XFAIL_FIXED
static_cast<void>(ferry::optim::make_records<float, ferry::pageable_space>(ferry::optim::adam{}, "weights",
                                                                           10, 4));
#else
ferry::optim::make_records<float, ferry::pageable_space>(ferry::optim::adam{}, 10, 4);
#endif

// ---- scales_of_one_factor: A table with one factor has no array of scales.
// expected-error: blocks of this quantization have no scales
// legal: ferry::quantized_tensor<ferry::quantization::nvfp4, ferry::mapped_space> table("table", 10, 32);
ferry::quantized_tensor<ferry::quantization::e4m3, ferry::mapped_space> table("table", 10, 32);
static_cast<void>(table.scales());

// ---- scatter_add_to_quantized: Codes have no sums.
// expected-first-error: must be an array of numbers, not a table of quantized rows
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
const ferry::tensor<float, ferry::mapped_space> batch("batch", 2, 32);
// legal: ferry::scatter(exec, table, indices, batch).wait();
ferry::scatter_add(exec, table, indices, batch).wait();

// ---- scatter_int8_in_any_order: A row that is replaced has nothing to add to.
// expected-error: duplicates::sum_any_order adds to rows where they lie
ferry::rowwise_int8_tensor<ferry::device_space> table("table", 10, 4);
// legal: ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum{}).wait();
ferry::scatter(exec, table, indices, batch, ferry::duplicates::sum_any_order{}).wait();

// ---- set_scale_without_factor: Microscaling has no factor for the table.
// expected-error: numbers of this quantization have no factor for the table
// legal: ferry::quantized_tensor<ferry::quantization::nvfp4, ferry::mapped_space> table("table", 10, 32);
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
table.set_scale(2.0f);

// ---- step_bags_of_cached_codes: A step on bags pools rows of numbers and records, also behind a cache.
// expected-error: of quantized tables step_bags trains a rowwise_int8_tensor
// legal: ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
ferry::cached_table hot(table, ferry::cache::first{2});
const ferry::optim::sgd rule{};
ferry::tensor<float, ferry::device_space> grads("grads", 1, 32);
auto state = ferry::optim::make_state(rule, hot);
const std::vector<int> indices{1, 2};
ferry::step_bags(exec, rule, hot, state, indices, 2, grads).wait();

// ---- step_bags_quantized: A step on bags pools rows of numbers and records.
// expected-first-error: of quantized tables step_bags trains a rowwise_int8_tensor
// legal: ferry::rowwise_int8_tensor<ferry::mapped_space> table("table", 10, 32);
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space> table("table", 10, 32);
const ferry::optim::sgd rule{};
ferry::tensor<float, ferry::device_space> grads("grads", 1, 32);
auto state = ferry::optim::make_state(rule, table);
const std::vector<int> indices{1, 2};
static_cast<void>(ferry::step_bags(exec, rule, table, state, indices, 2, grads));

// ---- step_rounds_codes_at_random: The quantization says how a number becomes one of two codes.
// expected-error: rounding::stochastic is for quantizations with encode_at_random
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

void refused() {
  ferry::quantized_tensor<blocks, ferry::mapped_space> table("table", 10, 32);
  const ferry::optim::sgd rule{};
  ferry::tensor<float, ferry::device_space> grads("grads", 2, 32);
  auto state = ferry::optim::make_state(rule, table);
  const std::vector<int> indices{1, 2};
  static_cast<void>(ferry::step(exec, rule, table, state, indices, grads, ferry::rounding::stochastic{}));
}

// ---- step_staged_between_codes_and_scales: A staged step runs where the table lies.
// expected-error: path::staged steps where the table lies, so codes and scales must both be in host memory
// legal: using scale_space = ferry::mapped_space;
using scale_space = ferry::device_space;
ferry::quantized_tensor<ferry::quantization::mxfp8, ferry::mapped_space, scale_space> table("table", 10, 32);
const ferry::optim::sgd rule{};
ferry::tensor<float, ferry::device_space> grads("grads", 2, 32);
auto state = ferry::optim::make_state(rule, table);
const std::vector<int> indices{1, 2};
static_cast<void>(ferry::step(exec, rule, table, state, indices, grads, ferry::path::staged{}));
