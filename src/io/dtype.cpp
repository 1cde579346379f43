// SPDX-License-Identifier: Apache-2.0
#include <ferry/io/detail/dtype.hpp>

#include <string>

namespace ferry::detail {

std::string dtype::name() const {
  const std::string bits = std::to_string(bytes * 8);
  switch (kind) {
    case dtype_kind::boolean:
      return "bool";
    case dtype_kind::integer:
      return "int" + bits;
    case dtype_kind::unsigned_integer:
      return "uint" + bits;
    case dtype_kind::real:
      return "float" + bits;
    case dtype_kind::brain:
      return "bfloat16";
    case dtype_kind::complex:
      return "complex" + bits;
    case dtype_kind::e4m3:
      return "float8_e4m3fn";
    case dtype_kind::e5m2:
      return "float8_e5m2";
    case dtype_kind::e8m0:
      return "float8_e8m0fnu";
    case dtype_kind::e2m1:
      return "pairs of float4_e2m1fn";
    case dtype_kind::foreign:
    case dtype_kind::record:
      break;
  }
  return "records of " + std::to_string(bytes) + " bytes";
}

}  // namespace ferry::detail
