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
    case dtype_kind::record:
      break;
  }
  return "records of " + std::to_string(bytes) + " bytes";
}

}  // namespace ferry::detail
