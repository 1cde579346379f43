// SPDX-License-Identifier: Apache-2.0
#include <ferry/interop/from_dlpack.hpp>

#include "../../backends/enabled.hpp"

#include <ferry/error.hpp>

namespace ferry::detail {

std::string dlpack_type_text(DLDataType type) {
  const auto name = [&]() -> std::string {
    switch (type.code) {
      case kDLInt:
        return "int";
      case kDLUInt:
        return "uint";
      case kDLFloat:
        return "float";
      case kDLBfloat:
        return "bfloat";
      case kDLComplex:
        return "complex";
      case kDLBool:
        return "bool";
      case dlpack_e4m3:
        return "float8_e4m3fn";
      case dlpack_e5m2:
        return "float8_e5m2";
      case dlpack_e8m0:
        return "float8_e8m0fnu";
      case dlpack_e2m1:
        return "float4_e2m1fn";
      default:
        return "type code " + std::to_string(type.code) + ", bits ";
    }
  };
  const bool tells_bits = type.code == dlpack_e4m3 || type.code == dlpack_e5m2 || type.code == dlpack_e8m0 ||
                          type.code == dlpack_e2m1;
  return name() + (tells_bits ? "" : std::to_string(type.bits)) +
         (type.lanes == 1 ? "" : " x " + std::to_string(type.lanes) + " lanes");
}

std::string numbers_text(const std::int64_t* numbers, std::int32_t count) {
  std::string text = "[";
  for (std::int32_t i = 0; numbers != nullptr && i < count; ++i)
    text += (i == 0 ? "" : " x ") + std::to_string(numbers[i]);
  return text + "]";
}

std::size_t dlpack_extents(const std::string& subject, const DLTensor& source,
                           std::array<std::size_t, max_rank>& extents) {
  if (source.ndim < 0 || source.ndim > static_cast<std::int32_t>(max_rank))
    throw invalid_argument(subject + " has " + std::to_string(source.ndim) + " extents, must have 0 to " +
                           std::to_string(max_rank));
  if (source.ndim == 0) {
    extents[0] = 1;
    return 1;
  }
  if (source.shape == nullptr)
    throw invalid_argument(subject + " has no extents: the pointer to them is null");
  const auto rank = static_cast<std::size_t>(source.ndim);
  for (std::size_t i = 0; i < rank; ++i) {
    if (source.shape[i] < 0)
      throw invalid_argument(subject + ": extent " + std::to_string(i) + " is " +
                             std::to_string(source.shape[i]));
    extents[i] = static_cast<std::size_t>(source.shape[i]);
  }
  return rank;
}

void require_compact(const std::string& subject, const DLTensor& source, std::size_t size) {
  if (source.strides == nullptr || size == 0) return;
  std::int64_t expected = 1;
  for (std::int32_t i = source.ndim; i-- > 0;) {
    if (source.shape[i] != 1 && source.strides[i] != expected)
      throw invalid_argument(subject + " has strides " + numbers_text(source.strides, source.ndim) +
                             ", but a ferry::tensor is row-major without gaps; make it contiguous first");
    expected *= source.shape[i];
  }
}

void* dlpack_data(const std::string& subject, const DLTensor& source, std::size_t size,
                  std::size_t alignment) {
  if (size == 0) return nullptr;
  if (source.data == nullptr) throw invalid_argument(subject + " has no memory: its pointer is null");
  const auto address = reinterpret_cast<std::uintptr_t>(source.data) + source.byte_offset;
  if (address % alignment != 0)
    throw invalid_argument(subject + " begins at an address that is no multiple of " +
                           std::to_string(alignment) + ", the alignment of its elements");
  return static_cast<char*>(source.data) + source.byte_offset;
}

}  // namespace ferry::detail
