// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/folder.hpp"
#include "support/oracle.hpp"
#include "support/test.hpp"

#include <fstream>
#include <iterator>

namespace ferry_test {

inline std::string golden(const std::string& name) { return tests_folder() + "/io/golden/" + name; }

/// Element i of the golden files, see golden/make_golden.py.
template <class T>
T golden_value(std::size_t i) {
  const int value = static_cast<int>(i * 3 % 11);
  if constexpr (std::is_unsigned_v<T>)
    return static_cast<T>(value);
  else
    return static_cast<T>(value - 4);
}
template <class T>
bool is_golden(const std::vector<T>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != golden_value<T>(i)) return false;
  return true;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream source(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(source), {}};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace ferry_test
