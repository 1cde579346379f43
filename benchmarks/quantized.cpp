// SPDX-License-Identifier: Apache-2.0
#include "support/measure.hpp"
#include "support/tables.hpp"
#include "support/traffic.hpp"

#include <ferry/bags.hpp>
#include <ferry/quantized.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// Gathers that decode: from host memory by the rows of language models' lookup tables, and within the device. 8-bit
/// records: encoded and pooled.
namespace ferry_bench::quantized_cases {
namespace {

namespace quantization = ferry::quantization;

/// The codes and scales of a table are bytes of these formulas: no NaN, and products that bhalf_t holds.
struct byte_formulas {
  unsigned code_mask;
  unsigned scale_base;
  unsigned scale_mask;

  KOKKOS_FUNCTION unsigned code(std::int64_t place) const {
    return static_cast<unsigned>(mix(static_cast<std::uint64_t>(place)) >> 32) & code_mask;
  }
  KOKKOS_FUNCTION unsigned scale(std::int64_t place) const {
    return scale_base + (static_cast<unsigned>(mix(~static_cast<std::uint64_t>(place)) >> 32) & scale_mask);
  }
};

template <class Q>
KOKKOS_FUNCTION constexpr byte_formulas formulas_of() {
  if constexpr (Q::code_bits == 4)
    return {0xff, std::is_same_v<typename Q::scale_type, ferry::ue8m0_t> ? 120u : 0x30u, 7};
  else if constexpr (Q::in_records)
    return {0xff, 0, 0};
  else
    return {0xf7, 120, 7};  // e4m3 below 480, no NaN
}

struct fill_bytes {
  unsigned char* bytes;
  byte_formulas formulas;
  bool scales;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    bytes[i] = static_cast<unsigned char>(scales ? formulas.scale(i) : formulas.code(i));
  }
};

/// Records: codes, 2^-7 as scale, -1 as offset.
struct fill_records {
  std::byte* records;
  std::int64_t row_bytes;
  std::int64_t width;
  byte_formulas formulas;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    std::byte* const record = records + row * row_bytes;
    for (std::int64_t c = 0; c < width; ++c)
      record[c] = static_cast<std::byte>(formulas.code(row * width + c));
    const unsigned char tail[8] = {0, 0, 0, 0x3c, 0, 0, 0x80, 0xbf};
    for (std::int64_t b = 0; b < 8; ++b) record[width + b] = static_cast<std::byte>(tail[b]);
  }
};

/// A number with `mantissa` bits behind a leading one, by its code without the sign.
KOKKOS_FUNCTION inline float minifloat_value(unsigned code, int mantissa, int bias) {
  const unsigned exponent = code >> mantissa, fraction = code & ((1u << mantissa) - 1u);
  float value = static_cast<float>(exponent == 0 ? fraction : fraction | 1u << mantissa);
  const int power = static_cast<int>(exponent == 0 ? 1u : exponent) - bias - mantissa;
  for (int k = 0; k < power; ++k) value *= 2.0f;
  for (int k = 0; k > power; --k) value *= 0.5f;
  return value;
}

template <class Q, class Out>
struct wrong_decoded {
  const Out* out;
  const std::int64_t* rows;
  std::int64_t width;
  float tensor_scale;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t row = rows[i / width], column = i % width;
    const std::int64_t place = row * width + column;
    constexpr auto formulas = formulas_of<Q>();
    float value = tensor_scale;
    if constexpr (Q::in_records) {
      value = static_cast<float>(formulas.code(place)) * 0x1p-7f - 1.0f;
    } else if constexpr (Q::code_bits == 8) {
      const unsigned code = formulas.code(place);
      value *= minifloat_value(code & 0x7fu, 3, 7) * ((code & 0x80u) != 0 ? -1.0f : 1.0f);
    } else {
      const unsigned code = formulas.code(place / 2) >> (place % 2 * 4) & 15u;
      value *= minifloat_value(code & 7u, 1, 1) * ((code & 8u) != 0 ? -1.0f : 1.0f);
    }
    if constexpr (ferry::has_scales<Q> && !Q::in_records) {
      const unsigned scale = formulas.scale(row * (width / Q::block) + column / Q::block);
      if constexpr (std::is_same_v<typename Q::scale_type, ferry::ue8m0_t>)
        value *= minifloat_value(scale, 0, 127);
      else
        value *= minifloat_value(scale, 3, 7);
    }
    if (static_cast<float>(out[i]) != value) ++wrong;
  }
};

template <class T>
void fill(const exec_space& exec, T* elements, std::size_t count, const byte_formulas& formulas,
          bool scales) {
  Kokkos::parallel_for("ferry_bench::fill",
                       Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(
                           exec, 0, static_cast<std::int64_t>(count)),
                       fill_bytes{reinterpret_cast<unsigned char*>(elements), formulas, scales});
}

template <class Q, class Space, class ScaleSpace>
ferry::quantized_tensor<Q, Space, ScaleSpace> filled(const session& run, std::int64_t rows,
                                                     std::int64_t width) {
  const exec_space& exec = run.exec();
  ferry::quantized_tensor<Q, Space, ScaleSpace> table("table", rows, width);
  constexpr auto formulas = formulas_of<Q>();
  if constexpr (Q::in_records) {
    Kokkos::parallel_for(
        "ferry_bench::fill", Kokkos::RangePolicy<exec_space, Kokkos::IndexType<std::int64_t>>(exec, 0, rows),
        fill_records{table.data(), static_cast<std::int64_t>(table.row_bytes()), width, formulas});
  } else {
    fill(exec, table.codes().data(), table.codes().size(), formulas, false);
    if constexpr (ferry::has_scales<Q>)
      fill(exec, table.scales().data(), table.scales().size(), formulas, true);
    if constexpr (Q::has_tensor_scale) table.set_scale(0.5f);
  }
  exec.fence("ferry_bench::fill");
  return table;
}

/// Times gathers of n random rows and checks one. `bytes`: those of a row that the figure counts.
template <class Out, class Table>
void time_decoding(session& run, const std::string& name, const Table& table, std::int64_t n, double bytes,
                   const traffic& moved, int burst) {
  using Q = typename Table::quantization;
  const auto width = static_cast<std::int64_t>(table.width());
  const exec_space& exec = run.exec();
  const auto sets = index_sets::make<any_row>(run, n, table.rows());
  ferry::tensor<Out, ferry::device_space> batch("batch", n, width);
  figure result;
  result.name = "quantized." + name + ".n" + std::to_string(n);
  result.setting = {{"rows", static_cast<std::int64_t>(table.rows())},
                    {"n", n},
                    {"width", width},
                    {"row_bytes", static_cast<std::int64_t>(table.row_bytes())},
                    {"out_bytes", static_cast<std::int64_t>(width * std::int64_t{sizeof(Out)})},
                    {"burst", std::int64_t{burst}}};
  result.counts = moved.counts;
  result.ceiling = run.ceiling(moved.ceiling);
  result.bytes = bytes * static_cast<double>(n);
  result.time = measure(run, burst, [&](int call) { return ferry::gather(exec, table, sets[call], batch); });
  ferry::gather(exec, table, sets[1], batch).wait();
  float tensor_scale = 1.0f;
  if constexpr (Q::has_tensor_scale) tensor_scale = table.scale();
  conclude(run, result,
           count_of(exec, "ferry_bench::check", n * width,
                    wrong_decoded<Q, Out>{batch.data(), sets[1].data(), width, tensor_scale}));
}

constexpr std::int64_t batches[] = {16, 256, 1024, 16384, 131072, 1048576};

/// Rows in host memory, bhalf_t out: codes cross the link, and scales unless they lie in the device.
template <class Q, class ScaleSpace>
void time_mapped(session& run, const std::string& name, std::int64_t width) {
  const auto rows = static_cast<std::int64_t>(run.host_table_bytes()) / width;
  const auto table = filled<Q, ferry::mapped_space, ScaleSpace>(run, rows, width);
  const double row_bytes = std::is_same_v<ScaleSpace, ferry::device_space>
                               ? static_cast<double>(table.codes().width())
                               : static_cast<double>(table.row_bytes());
  for (const std::int64_t n : batches)
    if (n <= run.chosen().device_n)
      time_decoding<ferry::bhalf_t>(run, "mapped." + name, table, n, row_bytes, over_the_link(), 1);
}

void quantized_mapped(session& run) {
  run.limit_calls(8, 2);
  time_mapped<quantization::mxfp8, ferry::device_space>(run, "mxfp8.256.scales_device", 256);
  time_mapped<quantization::mxfp8, ferry::mapped_space>(run, "mxfp8.256.scales_mapped", 256);
  time_mapped<quantization::e4m3, ferry::mapped_space>(run, "e4m3.160", 160);
}

template <class Q, class Out>
void time_device(session& run, const std::string& name) {
  constexpr std::int64_t width = 256;
  const auto n = std::min<std::int64_t>(1048576, run.chosen().device_n), rows = 8 * n;
  const auto table = filled<Q, ferry::device_space, ferry::device_space>(run, rows, width);
  const auto bytes = static_cast<double>(table.row_bytes()) + static_cast<double>(width * sizeof(Out));
  time_decoding<Out>(run, "device." + name, table, n, bytes, inside_the_device(), 4);
}

void quantized_device(session& run) {
  run.limit_calls(8, 2);
  time_device<quantization::mxfp8, ferry::bhalf_t>(run, "mxfp8");
  time_device<quantization::mxfp4, ferry::bhalf_t>(run, "mxfp4");
  time_device<quantization::nvfp4, ferry::bhalf_t>(run, "nvfp4");
  time_device<quantization::rowwise_int8, float>(run, "rowwise_int8");
  time_device<quantization::mxfp8, float>(run, "mxfp8_to_float");
}

/// Numbers that 8-bit records hold exactly: each row has the codes 0 and 255, so 2^-7 is its scale.
struct record_value {
  std::int64_t width;

  KOKKOS_FUNCTION float operator()(std::int64_t row, std::int64_t column) const {
    const unsigned code = column < 2 ? static_cast<unsigned>(column) * 255u
                                     : formulas_of<quantization::rowwise_int8>().code(row * width + column);
    return static_cast<float>(code) * 0x1p-7f - 1.0f;
  }
};

struct wrong_record_values {
  const float* out;
  record_value expected;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    if (out[i] != expected(i / expected.width, i % expected.width)) ++wrong;
  }
};

/// Sums of `hotness` rows of the records that fill_records writes.
struct wrong_sums {
  const float* out;
  const std::int64_t* rows;
  std::int64_t width;
  std::int64_t hotness;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t bag = i / width, column = i % width;
    float sum = 0.0f;  // exact in any order
    for (std::int64_t k = bag * hotness; k < (bag + 1) * hotness; ++k)
      sum += static_cast<float>(formulas_of<quantization::rowwise_int8>().code(rows[k] * width + column)) *
                 0x1p-7f -
             1.0f;
    if (out[i] != sum) ++wrong;
  }
};

/// Records of 8-bit rows within the device: encoded and pooled.
void quantized_records(session& run) {
  run.limit_calls(8, 2);
  constexpr std::int64_t width = 128, hotness = 10;
  const exec_space& exec = run.exec();
  const auto n = std::min<std::int64_t>(1048576, run.chosen().device_n), rows = 8 * n;
  auto table = filled<quantization::rowwise_int8, ferry::device_space, ferry::device_space>(run, rows, width);
  const auto row_bytes = static_cast<double>(table.row_bytes());
  const traffic moved = inside_the_device();
  ferry::tensor<float, ferry::device_space> values("values", n, width), out("out", n, width);
  const auto time = [&](const std::string& verb, std::int64_t count, double bytes, const auto& call,
                        const auto& read_back, const auto& wrong, std::int64_t elements) {
    figure result;
    result.name = "quantized.records." + verb;
    result.setting = {{"rows", rows}, {"n", count}, {"width", width}, {"burst", std::int64_t{4}}};
    result.counts = moved.counts;
    result.ceiling = run.ceiling(moved.ceiling);
    result.bytes = bytes;
    result.time = measure(run, 4, call);
    read_back();
    conclude(run, result, count_of(exec, "ferry_bench::check", elements, wrong));
  };
  {
    const std::int64_t bags = std::max<std::int64_t>(1, n / 16);
    const auto sets = index_sets::make<any_row>(run, bags * hotness, table.rows());
    ferry::tensor<float, ferry::device_space> pooled("pooled", bags, width);
    const auto pool = [&](int call) {
      return ferry::gather_bags(exec, table, sets[call], hotness, pooled, ferry::pooling::sum{});
    };
    time(
        "bags", bags, static_cast<double>(bags) * (hotness * row_bytes + 4.0 * width), pool,
        [&] { pool(1).wait(); }, wrong_sums{pooled.data(), sets[1].data(), width, hotness}, bags * width);
  }
  ferry::init::custom(exec, values, record_value{width});
  const double bytes = static_cast<double>(n) * (row_bytes + 4.0 * width);
  const wrong_record_values wrong{out.data(), {width}};
  ferry::quantized_tensor<quantization::rowwise_int8, ferry::device_space> whole("whole", n, width);
  time(
      "quantize", n, bytes, [&](int) { return ferry::quantize(exec, values, whole); },
      [&] {
        ferry::init::zeros(exec, out);
        ferry::dequantize(exec, whole, out).wait();
      },
      wrong, n * width);
}

const registration mapped{"quantized.mapped", quantized_mapped};
const registration device{"quantized.device", quantized_device};
const registration records{"quantized.records", quantized_records};

}  // namespace
}  // namespace ferry_bench::quantized_cases
