// SPDX-License-Identifier: Apache-2.0
// Loads tables that other software has quantized, and prints rows of them:
//
//   load_quantized model.safetensors
//
// docs/quantized.md, "Checkpoints of other software", says which tensors these are.
#include <ferry/ferry.hpp>
#include <ferry/io.hpp>
#include <ferry/quantized.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

namespace quantization = ferry::quantization;
using space = ferry::mapped_space;

/// Fills codes or scales from the plain bytes that some files have instead. The host writes to the memory.
template <class Array>
void load_bytes(const ferry::io::safetensors_file& file, const std::string& name, Array& array) {
  const auto bytes = file.map<std::uint8_t>(name);
  std::memcpy(array.data(), bytes.data(), array.rows() * array.width());
}

/// compressed-tensors, a scale for each row: "weight" and "weight_scale".
auto load_rows(const ferry::io::safetensors_file& file, const std::string& name) {
  const auto extents = file.shape(name + ".weight");
  ferry::quantized_tensor<quantization::per_row<quantization::e4m3>, space> table(name, extents[0],
                                                                                  extents[1]);
  file.load(name + ".weight", table.codes());
  file.load(name + ".weight_scale", table.scales(), ferry::io::convert_dtype{});  // often bfloat16
  return table;
}

/// NVIDIA's modelopt, NVFP4: "weight", "weight_scale" and "weight_scale_2".
auto load_nvfp4(const ferry::io::safetensors_file& file, const std::string& name) {
  const auto extents = file.shape(name + ".weight");
  ferry::quantized_tensor<quantization::nvfp4, space> table(name, extents[0], 2 * extents[1]);
  load_bytes(file, name + ".weight", table.codes());
  file.load(name + ".weight_scale", table.scales());
  float factor[1];
  file.load(name + ".weight_scale_2", std::span<float>(factor));
  table.set_scale(factor[0]);
  return table;
}

/// gpt-oss, MXFP4: "..._blocks" and "..._scales". The rows of all experts follow each other.
auto load_mxfp4(const ferry::io::safetensors_file& file, const std::string& name) {
  const auto extents = file.shape(name + "_blocks");  // experts, rows, blocks of 32, 16 bytes
  ferry::quantized_tensor<quantization::mxfp4, space> table(name, extents[0] * extents[1], extents[2] * 32);
  load_bytes(file, name + "_blocks", table.codes());
  load_bytes(file, name + "_scales", table.scales());
  return table;
}

/// Blocks of 128 numbers of a row with a scale of their own, for DeepSeek's blocks of 128 x 128.
struct e4m3_blocks : quantization::per_row<quantization::e4m3> {
  static constexpr const char* name = "e4m3_blocks";
  static constexpr int block = 128;
};

/// DeepSeek-V3: "weight" and "weight_scale_inv", by which codes are multiplied. Rows get the scale of their block.
auto load_blocks(const ferry::io::safetensors_file& file, const std::string& name) {
  const auto extents = file.shape(name + ".weight");
  ferry::quantized_tensor<e4m3_blocks, space> table(name, extents[0], extents[1]);
  file.load(name + ".weight", table.codes());
  const auto scales = file.load<float, ferry::pageable_space>(name + ".weight_scale_inv");
  auto& repeated = table.scales();
  for (std::size_t row = 0; row < repeated.rows(); ++row)
    for (std::size_t block = 0; block < repeated.width(); ++block)
      repeated(row, block) = scales(row / 128, block);
  return table;
}

/// Gathers the last row and the first, and prints both.
template <class Table>
void print(const Table& table) {
  const Kokkos::DefaultExecutionSpace exec;
  const std::vector<std::int64_t> indices{static_cast<std::int64_t>(table.rows()) - 1, 0};
  ferry::tensor<float, space> batch("batch", indices.size(), table.width());
  ferry::gather(exec, table, indices, batch).wait();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::printf("%s[%lld]", table.codes().label().c_str(), static_cast<long long>(indices[i]));
    for (std::size_t c = 0; c < batch.width(); ++c) std::printf(" %.9g", static_cast<double>(batch(i, c)));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s model.safetensors\n", argv[0]);
    return 2;
  }
  const auto file = ferry::io::open_safetensors(argv[1]);
  print(load_rows(file, "rows"));
  print(load_nvfp4(file, "nvfp4"));
  print(load_mxfp4(file, "mxfp4"));
  print(load_blocks(file, "blocks"));
}
