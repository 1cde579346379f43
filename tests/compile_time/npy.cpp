// SPDX-License-Identifier: Apache-2.0
#include <ferry/io.hpp>

void convert(const std::string& source, const std::string& copy) {
  ferry::io::save_npy(copy, ferry::io::load_npy<float>(source));
}
